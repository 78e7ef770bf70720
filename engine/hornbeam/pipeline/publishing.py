"""From what the ledger holds to a version: tables, communities, indexes, gates, the manifest."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hornbeam
from hornbeam.extract.stages import GRAMMAR_VERSION
from hornbeam.index.embedder import Embedder, TextEmbedder
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.index.kept_vectors import KeptVectors, forget_vectors
from hornbeam.index.texts import TEXTS_VERSION
from hornbeam.llm.opening import server_urls
from hornbeam.llm.protocol import LanguageModel
from hornbeam.organise.fact_names import names_from_facts
from hornbeam.organise.naming import CommunityNamer, Names
from hornbeam.pipeline.finished import all_passed, version_inputs
from hornbeam.pipeline.graph_inputs import graph_inputs, staged_with
from hornbeam.pipeline.public_record import without_secrets
from hornbeam.pipeline.recipe import Recipe, version_recipe
from hornbeam.progress import Progress, Stage
from hornbeam.prompts import Prompts, shipped_prompts
from hornbeam.resolve.answers import Answers
from hornbeam.resolve.consolidate import Consolidated, write_graph_tables
from hornbeam.resolve.separations import read_separations
from hornbeam.resolve.staged_parts import StagedParts
from hornbeam.resolve.staging import DocumentInput
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest
from hornbeam.store.gates import Gate, evaluate_gates
from hornbeam.store.ledger import Ledger
from hornbeam.store.promotions import promote
from hornbeam.store.retention import prune
from hornbeam.store.versions import (
    Version,
    begin_version,
    current_version_id,
    publish_version,
    read_version,
    version_identity,
)

if TYPE_CHECKING:
    from hornbeam.index.carried_rows import CarriedRows
    from hornbeam.organise.carrying import CarriedCommunities
    from hornbeam.organise.communities import GraphArrays, Hierarchy
    from hornbeam_kernels.backend import Backend

#: DuckDB needs about this much for each of its threads, whatever it does.
_LEAST_MEMORY_MIB = 512

Timer = Callable[[str], AbstractContextManager[None]]


@dataclass(slots=True)
class Publisher:
    """Makes versions of one index.

    `schema` is the graph's, with the types of imported facts. Without a `model` communities are named from
    their facts. `texts_read_by` and `prompt_versions` are for the manifest.
    """

    index: Path
    settings: Settings
    schema: GraphSchema
    model: LanguageModel | None
    texts_read_by: dict[str, Any]
    embedder: TextEmbedder
    recipe: Recipe
    prompt_versions: Mapping[str, str]
    progress: Progress
    timed: Timer
    probe: Callable[[Path], Gate | None] | None = None  # retrieval of the frozen questions, if there are any
    stop: StopRequest = field(default_factory=StopRequest)
    prompts: Prompts = field(default_factory=shipped_prompts)

    def inputs(self, ledger: Ledger, unsettled: Collection[str]) -> str:
        """Of the version that `publish` would make."""
        made_by = version_recipe(self.settings, self.recipe, self.schema, self.embedder.fingerprint)
        return version_inputs(ledger, self.recipe, made_by, unsettled)

    def publish(self, ledger: Ledger, run: int, inputs: str, *, full: bool = True) -> Version:
        """Write a version, and promote it if its gates pass. Old versions go, as `versions.keep` says.

        Args:
            full: organise and embed everything; else take over from the current version what still holds.
        """
        base = None if full else self._base()
        building = begin_version(self.index)
        try:
            return self._write(ledger, run, inputs, building, base)
        except BaseException:
            # Also where the disk is full: what is left of it is room for the next run.
            shutil.rmtree(building, ignore_errors=True)
            raise

    def _keeping(self) -> TextEmbedder:
        """The embedder, its vectors kept for a run that goes on from a stop, unless they cost nothing."""
        if isinstance(self.embedder, HashedEmbedder):
            return self.embedder
        return KeptVectors(self.embedder, self.index, self.progress.say)

    def _base(self) -> Version | None:
        """The current version, if what this one is made with has made it, too."""
        version_id = current_version_id(self.index)
        if version_id is None:
            return None
        base = read_version(self.index, version_id)
        made_with = (
            ("schema", "hash", self.schema.hash()),
            ("model", "fingerprint", self.texts_read_by["fingerprint"]),
            ("embedder", "fingerprint", self.embedder.fingerprint),
            ("embedder", "texts", TEXTS_VERSION),
            ("prompt", "all", self.recipe.prompts),
            ("settings", "organise", self.settings.organise.model_dump(mode="json")),
        )
        same = all(base.manifest[section].get(name) == value for section, name, value in made_with)
        return base if same and base.manifest["hornbeam"] == hornbeam.__version__ else None

    def _write(self, ledger: Ledger, run: int, inputs: str, building: Path, base: Version | None) -> Version:
        consolidated = self._consolidate(ledger, run, building)
        counts = consolidated.rows
        rows: CarriedRows | None = None
        if base is not None:
            self.progress.say(f"organise: going on from {base.version_id}")
            from hornbeam.index.carried_rows import CarriedRows

            rows = CarriedRows(base.directory, building, self.embedder.dimension)
        graph, communities = self._organise(ledger, run, building / "tables", counts["entities"], rows, base)
        (building / "schema.json").write_text(self.schema.to_json(), "utf-8")
        texts = counts["relations"] + counts["chunks"] + communities["all"]
        # What is learned from the vectors is learned anew when the communities are.
        near = communities["clustering"]["carried_from"] is not None
        counts |= self._write_indexes(building, graph, texts, rows, near)
        with self.timed("gate"):
            gates = self._gates(building)
        with self.timed("publish"):
            version_id = version_identity(building, inputs=inputs)
            manifest = self._manifest(inputs, gates, consolidated, communities)
            version = publish_version(self.index, building, version_id, manifest)
            if all_passed(version):
                promote(self.index, version_id)
            # After the swap: what readers opened before is not the newest any more.
            prune(self.index, ledger, self.settings.versions.keep)
            forget_vectors(self.index)
        return version

    def _consolidate(self, ledger: Ledger, run: int, building: Path) -> Consolidated:
        scratch = building / "scratch"
        scratch.mkdir()
        with self.timed("consolidate"):
            separations = read_separations(ledger)
            threshold = self.settings.extract.verify_threshold
            made_with = staged_with(self.recipe, self.settings.resolve, threshold, separations)
            kept = StagedParts(self.index / "staged", made_with, self.progress.say)
            kept.open()
            consolidated = write_graph_tables(
                self._counted(ledger, kept),
                building / "tables",
                scratch,
                settings=self.settings.resolve,
                schema=self.schema,
                embedder=self.embedder,
                separations=separations,
                min_confidence=self.settings.extract.min_confidence,
                memory_limit_mib=self._memory_mib(),
                kept=kept,
                answers=Answers(
                    ledger,
                    str(self.texts_read_by["fingerprint"]),
                    self.prompts,
                    self.model,
                    run,
                    self.stop,
                ),
            )
        shutil.rmtree(scratch)
        return consolidated

    def _counted(self, ledger: Ledger, kept: StagedParts) -> Iterator[DocumentInput]:
        total = ledger.counts()["documents"]
        threshold = self.settings.extract.verify_threshold
        with self.progress.stage("consolidate", total, "documents") as stage:
            for document in graph_inputs(ledger, self.recipe, threshold, kept.has):
                self.stop.check()
                yield document
                stage.advance()

    def _organise(
        self,
        ledger: Ledger,
        run: int,
        tables: Path,
        entities: int,
        rows: CarriedRows | None,
        base: Version | None,
    ) -> tuple[GraphArrays, dict[str, Any]]:
        # These bring SciPy and the kernels: not before there is something to organise.
        from hornbeam.organise.carrying import keep_unchanged
        from hornbeam.organise.communities import find_communities, read_graph
        from hornbeam.organise.tree import write_community_tables
        from hornbeam_kernels.backend import select_backend
        from hornbeam_kernels.memory import within_budget

        with self.timed("organise"):
            with self.progress.stage("embed", entities, "entities") as stage:
                graph = read_graph(
                    tables,
                    self.schema,
                    self._keeping(),
                    self.settings.embedder.batch_size,
                    self._advancing(stage),
                    rows,
                )
            carried, drift = self._carried(tables, graph, rows, base)
            self.progress.say("organise: communities")
            backend = select_backend("cpu" if self.settings.device == "cpu" else "auto")
            limit = self.settings.memory_limit_mib
            if isinstance(self.embedder, Embedder):
                self.embedder.release()  # the graph is next on the device
            with within_budget(backend, self._device_budget(backend)):
                hierarchy = find_communities(
                    graph, self.settings.organise, backend, limit * 2**20 if limit else None, carried
                )
            kept: dict[str, tuple[str, str]] = {}
            clustering: dict[str, Any] = {"carried_from": None, "drift": 0.0}
            if base is not None and carried is not None:
                unnamed = {entry["community_id"] for entry in base.manifest["communities"]["unnamed"]}
                hierarchy, kept = keep_unchanged(hierarchy, graph, carried, unnamed)
                clustering = {
                    "carried_from": base.version_id,
                    "drift": round(drift, 6),
                    "entities_changed": int(carried.changed.sum()),
                    "communities_kept": len(kept),
                }
        total = len(hierarchy.nodes)
        with self.timed("summarise"), self.progress.stage("summarise", total, "communities") as stage:
            if self.model is None or self.settings.organise.namer == "facts":
                names = names_from_facts(graph, self.schema, hierarchy, stage.advance)
            else:
                names = CommunityNamer(
                    graph,
                    self.schema,
                    self.model,
                    ledger,
                    self.settings.organise,
                    run=run,
                    grounded=self._grounded_summaries(),
                    kept=kept,
                    on_named=stage.advance,
                    stop=self.stop,
                    prompts=self.prompts,
                ).name(hierarchy)
        write_community_tables(tables, graph, hierarchy, names)
        return graph, _community_report(graph, hierarchy, names) | {"clustering": clustering}

    def _carried(
        self, tables: Path, graph: GraphArrays, rows: CarriedRows | None, base: Version | None
    ) -> tuple[CarriedCommunities | None, float]:
        """The communities of `base` and the drift since they were last found from scratch; None: find all
        anew, because there is no base or the drift is over its bound."""
        if base is None or rows is None:
            return None, 0.0
        from hornbeam.organise.carrying import carry_communities
        from hornbeam_kernels.signals import Signals

        before = base.manifest["communities"]
        measured = before.get("signals")
        signals = None if measured is None else Signals(**measured)
        carried = carry_communities(base.directory, tables, graph, rows, signals)
        if carried is None:
            return None, 0.0
        # The sum over updates: an upper bound, of which each version keeps its part.
        drift = before.get("clustering", {}).get("drift", 0.0) + carried.drift
        bound = self.settings.update.max_drift
        if drift > bound:
            self.progress.say(f"organise: drift {drift:.3f} is over {bound} (update.max_drift): all anew")
            return None, 0.0
        return carried, drift

    def _device_budget(self, backend: Backend) -> int | None:
        """Bytes of the device that are not the model's; None on the CPU."""
        if not backend.on_device:
            return None
        from hornbeam_kernels.memory import device_budget

        _, total = backend.xp.cuda.runtime.memGetInfo()
        here = self.model is not None and not server_urls(self.settings.model.path)
        return device_budget(int(total), self.settings.model.gpu_memory_utilization if here else 0.0)

    def _advancing(self, stage: Stage) -> Callable[[int], None]:
        """Tell of progress, and stop there if the user asked for it."""

        def advance(steps: int) -> None:
            stage.advance(steps)
            self.stop.check()

        return advance

    def _grounded_summaries(self) -> bool:
        words = self.settings.organise.summary_words
        return words == "facts" or (words == "auto" and self.settings.model.path is None)

    def _write_indexes(
        self, building: Path, graph: GraphArrays, texts: int, rows: CarriedRows | None, near: bool
    ) -> dict[str, int]:
        from hornbeam.index.build import build_indexes

        with self.timed("index"):
            self.progress.say("index: words, adjacency, then vectors")
            # Vectors of entities are there already.
            with self.progress.stage("index", texts, "texts") as stage:
                built = build_indexes(
                    building,
                    self._keeping(),
                    self.settings.embedder,
                    entity_vectors=graph.entity_vectors,
                    carried=rows,
                    near=near,
                    on_encoded=self._advancing(stage),
                )
        return built.counts

    def _gates(self, building: Path) -> list[Gate]:
        from hornbeam.index.consistency import check_stores

        stores = check_stores(building, self.embedder.dimension)
        verified = self.recipe.verification is not None
        gates = evaluate_gates(building, self.schema, self.settings.gates, stores, verified)
        probed = self.probe(building) if self.probe else None
        return [*gates, probed] if probed else gates

    def _memory_mib(self) -> int:
        if self.settings.memory_limit_mib:
            return max(_LEAST_MEMORY_MIB, self.settings.memory_limit_mib)
        import psutil

        return max(_LEAST_MEMORY_MIB, int(psutil.virtual_memory().available) // 4 // 2**20)

    def _manifest(
        self, inputs: str, gates: list[Gate], consolidated: Consolidated, communities: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "inputs": inputs,
            "parent": current_version_id(self.index),
            "created": time.time(),
            "hornbeam": hornbeam.__version__,
            "settings": without_secrets(self.settings.model_dump(mode="json")),
            "seeds": {"model": self.settings.model.seed, "organise": self.settings.organise.seed},
            "schema": {
                "name": self.schema.name,
                "version": self.schema.version,
                "hash": self.schema.hash(),
            },
            "model": self.texts_read_by,
            "prompt": {
                "version": self.prompt_versions.get("", ""),
                "by_language": {name: one for name, one in self.prompt_versions.items() if name},
                "all": self.recipe.prompts,
                "grammar": GRAMMAR_VERSION,
            },
            "embedder": {
                "name": self.embedder.name,
                "fingerprint": self.embedder.fingerprint,
                "dimension": self.embedder.dimension,
                "texts": TEXTS_VERSION,
            },
            "counts": consolidated.rows,
            "resolution": {
                "names": consolidated.names,
                "homonyms": consolidated.homonyms,
                "merges": consolidated.merges,
                "dropped": consolidated.dropped,
                "asked": consolidated.asked,
            },
            "communities": communities,
            "gates": {gate.name: gate.to_json() for gate in gates},
        }


def _community_report(graph: GraphArrays, hierarchy: Hierarchy, names: Names) -> dict[str, Any]:
    leaves = [node for node in hierarchy.nodes if node.level == 0]
    covered = len({row for leaf in leaves for row in leaf.members})
    return {
        "levels": hierarchy.levels,
        "all": len(hierarchy.nodes),
        "leaf": len(leaves),
        "coverage": covered / len(graph.entity_ids) if graph.entity_ids else 1.0,
        "modularity": round(hierarchy.modularity, 4),
        # To the last bit: an update takes them over.
        "signals": None if hierarchy.signals is None else asdict(hierarchy.signals),
        "unnamed": [
            {"community_id": community, "reason": reason.value}
            for community, reason in sorted(names.unnamed.items())
        ],
    }
