"""The frozen probe set: does a new version still find what the promoted one finds?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hornbeam.errors import StoreError, UsageError, reason
from hornbeam.index.embedder import TextEmbedder
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.settings import Settings
from hornbeam.store.gates import Gate
from hornbeam.store.versions import Version, current_version_id, read_version

_OFFENDERS = 5


class Probe(BaseModel):
    """A question and the documents that answer it, each by id, source or title."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: str = Field(min_length=1)
    documents: tuple[str, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ProbeGate:
    """Compares retrieval of a version that is being built with the promoted one's, by recall@k."""

    index: Path
    settings: Settings
    embedder: TextEmbedder
    probes: tuple[Probe, ...]

    def __call__(self, building: Path) -> Gate:
        """The gate: mean recall@k, at least the promoted version's less `gates.max_recall_drop`.

        With no promoted version, or one of another embedder, there is nothing to compare with and it passes.
        """
        now = self._recalls(KnowledgeBase.open(building, self.embedder))
        before = self._before()
        value = sum(now) / len(now)
        if before is None:
            return Gate("probe_recall", value, 0.0, passed=True)
        threshold = sum(before) / len(before) - self.settings.gates.max_recall_drop
        worse = sorted(range(len(now)), key=lambda place: (now[place] - before[place], place))
        lost = tuple(self.probes[at].question for at in worse[:_OFFENDERS] if now[at] < before[at])
        # A sum of floats may fall a hair below a bound that it meets.
        return Gate("probe_recall", value, threshold, value >= threshold - 1e-9, lost)

    def _before(self) -> list[float] | None:
        version = _promoted(self.index)
        if version is None or version.manifest["embedder"]["fingerprint"] != self.embedder.fingerprint:
            return None
        try:
            return self._recalls(KnowledgeBase.open(version.directory, self.embedder))
        except StoreError:
            return None  # damaged: `hornbeam audit` says how; a new version must be able to take its place

    def _recalls(self, kb: KnowledgeBase) -> list[float]:
        return [self._recall(kb, probe) for probe in self.probes]

    def _recall(self, kb: KnowledgeBase, probe: Probe) -> float:
        found: dict[str, set[str]] = {}
        for item in search(kb, probe.question, self.settings.retrieve).items:
            where = item.provenance
            if where is not None:
                found.setdefault(where.document_id, {where.document_id, where.source, where.title})
        first = list(found.values())[: self.settings.gates.probe_k]
        met = sum(any(wanted in names for names in first) for wanted in probe.documents)
        return met / len(probe.documents)


def probe_gate(index: Path, settings: Settings, embedder: TextEmbedder) -> ProbeGate | None:
    """The gate that the settings ask for.

    Raises:
        UsageError: the file of probes cannot be read or has none.
    """
    if settings.gates.probes is None:
        return None
    return ProbeGate(index, settings, embedder, read_probes(Path(settings.gates.probes)))


def read_probes(path: Path) -> tuple[Probe, ...]:
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"gates.probes {path}: {reason(error)}") from error
    probes = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            probes.append(Probe.model_validate(json.loads(line)))
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "the line"
            raise UsageError(f"gates.probes {path}: line {number}: {where}: {problem['msg']}") from error
        except ValueError as error:
            raise UsageError(
                f"gates.probes {path}: line {number}: not valid JSON: {reason(error)}"
            ) from error
    if not probes:
        raise UsageError(f"gates.probes {path}: there is no question in it")
    return tuple(probes)


def _promoted(index: Path) -> Version | None:
    version_id = current_version_id(index)
    try:
        return read_version(index, version_id) if version_id else None
    except StoreError:
        return None
