"""An import: another system's graph into an index, organised, indexed and published; no language model.

read → consolidate → organise → index → gate → promote
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hornbeam.errors import UsageError
from hornbeam.exchange.imported import ImportedDocument, Reading, RejectedInput
from hornbeam.index.embedder import TextEmbedder
from hornbeam.opening import open_embedder
from hornbeam.pipeline.extraction import ExtractionReport
from hornbeam.pipeline.finished import all_passed, find_finished
from hornbeam.pipeline.importing import import_documents, published_schema, spellings
from hornbeam.pipeline.inheritance import inherited_results
from hornbeam.pipeline.public_record import NO_MODEL
from hornbeam.pipeline.publishing import Publisher
from hornbeam.pipeline.recipe import Recipe
from hornbeam.pipeline.report import make_report
from hornbeam.pipeline.text_recipe import text_recipe
from hornbeam.probes import probe_gate
from hornbeam.progress import Progress
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest
from hornbeam.store.disk import explained
from hornbeam.store.ledger import Ledger
from hornbeam.store.lock import write_lock
from hornbeam.store.promotions import promote

Reader = Callable[[Path, Reading], Iterator[ImportedDocument | RejectedInput]]


class Import:
    """One import into one index."""

    def __init__(
        self, index: Path, settings: Settings, progress: Progress, stop: StopRequest | None = None
    ) -> None:
        self._index = index
        self._settings = settings
        self._progress = progress
        self._stop = stop or StopRequest()
        self._seconds: dict[str, float] = {}

    def run(self, paths: Sequence[Path], read: Reader) -> dict[str, Any]:
        """Read the files, replace what the index had from them, publish a version.

        Returns:
            the report of a build, with `import`: what reading counted; `embedder`: which and why.

        Raises:
            UsageError: a file cannot be read or has no fact.
            StoreError: the index cannot be written, or another process writes it.
            Interrupted: the user stopped it; what was read is in the ledger.
        """
        for path in paths:
            if not path.exists():
                raise UsageError(f"input path '{path}' does not exist")
        with (
            explained(self._index),
            write_lock(self._index),
            Ledger(self._index, create=True) as ledger,
        ):
            run = ledger.runs.start()
            relation_types, entity_types = spellings(ledger)
            reading = Reading(entity_types=entity_types, relation_types=relation_types)
            with self._timed("read"):
                found = import_documents(
                    _documents(paths, read, reading), ledger, run, self._progress, self._stop
                )
            publisher, why = self._publisher(ledger, reading.counts["facts"])
            inputs = publisher.inputs(ledger, ())
            version = existing = find_finished(self._index, inputs)
            if version is None:
                version = publisher.publish(ledger, run, inputs)
            elif all_passed(version):
                promote(self._index, version.version_id)
            report = make_report(
                reading=found,
                extraction=ExtractionReport(ledger.counts()["chunks"]),
                inherited=inherited_results(ledger, publisher.recipe).chunks,
                version=version,
                unchanged=existing is not None,
                usage=ledger.runs.usage(run),
                seconds=self._seconds,
                cost=self._settings.cost,
            )
            told = report.to_json() | {
                "import": dict(sorted(reading.counts.items())),
                "embedder": {"name": publisher.embedder.name, "reason": why},
            }
            with ledger.transaction():
                for stage, seconds in self._seconds.items():
                    ledger.runs.add_usage(run, stage, seconds=seconds)
                ledger.runs.finish(run, version.version_id, json.dumps(told, ensure_ascii=False))
        return told

    def _publisher(self, ledger: Ledger, facts: int) -> tuple[Publisher, str]:
        texts = text_recipe(ledger)
        embedder, why = self._embedder(facts)
        return Publisher(
            self._index,
            self._settings,
            published_schema(ledger, texts.schema if texts else None),
            None,
            texts.model if texts else NO_MODEL,
            embedder,
            texts.recipe if texts else Recipe("", ""),
            texts.prompt_versions if texts else {},
            self._progress,
            self._timed,
            probe_gate(self._index, self._settings, embedder),
            self._stop,
        ), why

    def _embedder(self, facts: int) -> tuple[TextEmbedder, str]:
        kind, bound = self._settings.embedder.kind, self._settings.embedder.max_facts_for_model
        why = "asked for"
        if kind == "auto":
            kind = "hashed" if facts > bound else "model"
            why = f"{facts} facts, embedder.max_facts_for_model is {bound}"
        chosen = self._settings.embedder.model_copy(update={"kind": kind})
        return open_embedder(self._settings.model_copy(update={"embedder": chosen})), why

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._seconds[stage] = time.perf_counter() - started


def _documents(
    paths: Sequence[Path], read: Reader, reading: Reading
) -> Iterable[tuple[str, ImportedDocument | RejectedInput]]:
    for path in paths:
        before = reading.counts["facts"]
        first: RejectedInput | None = None
        for item in read(path, reading):
            if isinstance(item, RejectedInput):
                first = first or item
            yield str(path), item
        if reading.counts["facts"] == before:
            hint = f" ({first.place}: {first.reason})" if first else ""
            raise UsageError(f"{path}: there is no fact in it{hint}")
