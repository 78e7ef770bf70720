"""The pipeline from paths to a promoted version, stage by stage.

    read → chunk → extract → consolidate → organise → index → gate → promote

Every stage's results live in the ledger by content, so a build that was stopped goes on where it was, and
one without changes makes no model call.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.extract.result import ChunkExtraction, StageUsage
from hornbeam.extract.stages import GRAMMAR_VERSION, Extractor
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.protocol import LanguageModel
from hornbeam.progress import Progress
from hornbeam.records import ChunkState, Document, Rejection, content_id
from hornbeam.resolve.consolidate import ChunkInput, DocumentInput, write_graph_tables
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings
from hornbeam.store.gates import Gate, evaluate_gates
from hornbeam.store.ledger import ChunkRow, DocumentRow, Ledger
from hornbeam.store.versions import (
    Version,
    begin_version,
    find_version_with_inputs,
    promote,
    publish_version,
    version_identity,
)

#: Raise when the chunker's cuts change: stored chunks are then made anew.
CHUNKER_VERSION = "1"
_DOCUMENTS_AT_ONCE = 128


@dataclass(slots=True)
class BuildReport:
    """What `hornbeam index` says at the end; DESIGN §9."""

    documents: dict[str, Any] = field(default_factory=dict)
    chunks: dict[str, int] = field(default_factory=dict)
    entities: int = 0
    relations: int = 0
    attributes: int = 0
    communities: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    tokens_per_second: float = 0.0
    cost: dict[str, Any] = field(default_factory=dict)
    gates: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: str | None = None
    promoted: bool = False
    unchanged: bool = False  # the version existed already

    @property
    def exit_code(self) -> int:
        """0 done, 1 done with degraded, failed or rejected items, 3 a gate refused."""
        if not all(gate["passed"] for gate in self.gates.values()):
            return 3
        lost = self.chunks.get("degraded", 0) + self.chunks.get("failed", 0)
        return 1 if lost or self.documents.get("rejected") or self.communities.get("unnamed") else 0


class Build:
    """One run over one index."""

    def __init__(
        self,
        index: Path,
        settings: Settings,
        schema: GraphSchema,
        model: LanguageModel,
        embedder: TextEmbedder,
        progress: Progress,
    ) -> None:
        self._index = index
        self._settings = settings
        self._schema = schema
        self._model = model
        self._embedder = embedder
        self._progress = progress
        self._extractor = Extractor(model, schema, settings.extract)
        self._report = BuildReport()

    def run(self, paths: Sequence[Path | str]) -> BuildReport:
        """Read `paths`, bring the index up to date and publish a version.

        Raises:
            UsageError: a path does not exist. ModelError, StoreError: see there.
        """
        self._extractor.check_room(self._settings.chunk.max_tokens)
        corpus = read_corpus(paths, self._settings.corpus)  # complains before anything is written
        with Ledger(self._index, create=True) as ledger:
            run = ledger.start_run()
            with self._timed("read"):
                self._read(ledger, corpus)
            with self._timed("extract"):
                self._extract(ledger, run)
            version = self._publish(ledger, run)
            self._summarise(ledger, run, version)
            report = json.dumps(self.to_json(), ensure_ascii=False)
            ledger.finish_run(run, version.version_id, report)
        return self._report

    def to_json(self) -> dict[str, Any]:
        report = self._report
        return {name: getattr(report, name) for name in BuildReport.__slots__} | {
            "exit_code": report.exit_code
        }

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._report.seconds[stage] = round(time.perf_counter() - started, 3)

    # Read and chunk

    def _chunking(self) -> str:
        chunk = self._settings.chunk
        return content_id(
            "", CHUNKER_VERSION, self._model.identity.fingerprint, str(chunk.max_tokens), str(chunk.overlap_tokens)
        )

    def _read(self, ledger: Ledger, corpus: Iterator[Document | Rejection]) -> None:
        chunk = self._settings.chunk
        chunker = Chunker(self._model.tokenizer, chunk.max_tokens, chunk.overlap_tokens)
        chunking = self._chunking()
        seen = indexed = unchanged = duplicates = 0
        rejected: list[dict[str, str]] = []
        new: set[str] = set()
        with self._progress.stage("read", unit="documents") as stage:
            while batch := list(islice(corpus, _DOCUMENTS_AT_ONCE)):
                with ledger.transaction():
                    for item in batch:
                        seen += 1
                        if isinstance(item, Rejection):
                            rejected.append({"path": item.path, "reason": item.reason})
                            ledger.add_rejection(item.path, item.reason)
                            continue
                        known = ledger.chunking_of(item.document_id)
                        if item.document_id in new:
                            duplicates += 1
                        elif known is not None and ledger.source_document(item.source) == item.document_id:
                            unchanged += 1
                        elif known is not None and ledger.has_source(item.document_id):
                            duplicates += 1
                        else:
                            indexed += 1
                            new.add(item.document_id)
                        if known != chunking:
                            self._add_document(ledger, chunker, item, chunking)
                        ledger.add_source(item.source, item.document_id)
                stage.advance(len(batch))
        ledger.seal()
        self._report.documents = {
            "seen": seen,
            "indexed": indexed,
            "unchanged": unchanged,
            "duplicates": duplicates,
            "rejected": rejected,
        }

    def _add_document(self, ledger: Ledger, chunker: Chunker, document: Document, chunking: str) -> None:
        rows = [ChunkRow(c.chunk_id, c.document_id, c.start, c.end, c.tokens) for c in chunker.chunk(document)]
        ledger.put("document", document.document_id, document.text.encode("utf-8"))
        ledger.add_document(
            document.document_id, document.title, document.language, len(document.text), chunking, rows
        )

    # Extract

    def _extraction_key(self, text: str) -> str:
        return content_id(
            "x",
            text,
            self._extractor.prompt.version,
            self._schema.hash(),
            GRAMMAR_VERSION,
            self._model.identity.fingerprint,
            self._settings.fingerprint("extract"),
        )

    def _documents(self, ledger: Ledger) -> Iterator[tuple[DocumentRow, str, list[ChunkRow]]]:
        """Every document of the index with its text and chunks, by id."""
        # Listed first: the loop writes to the same database that it would otherwise be reading.
        rows = iter(list(ledger.documents()))
        while batch := list(islice(rows, _DOCUMENTS_AT_ONCE)):
            texts = ledger.get_many("document", [row.document_id for row in batch])
            for row in batch:
                yield row, texts[row.document_id].decode("utf-8"), ledger.chunks(row.document_id)

    def _extract(self, ledger: Ledger, run: int) -> None:
        total = ledger.counts()["chunks"]
        asked: set[str] = set()
        reused = 0
        with self._progress.stage("extract", total, "chunks") as stage:

            def missing() -> Iterator[tuple[str, str]]:
                nonlocal reused
                for _, text, chunks in self._documents(ledger):
                    for chunk in chunks:
                        body = text[chunk.start : chunk.end]
                        key = self._extraction_key(body)
                        if key in asked or ledger.has("extraction", key):
                            reused += 1
                            stage.advance()
                        else:
                            asked.add(key)
                            yield key, body

            for key, result in self._extractor.run(missing()):
                with ledger.transaction():
                    if result.state is ChunkState.FAILED:
                        ledger.put_failure(key, result.reasons[-1].value, result.detail)
                    else:
                        ledger.put("extraction", key, result.model_dump_json().encode())
                    for name, usage in result.usage.items():
                        _add_usage(ledger, run, name, usage)
                ledger.seal()
                stage.advance()
        if reused and not self._report.unchanged:
            self._progress.say(f"extract: {reused} of {total} chunks were done before")
        self._report.chunks["reused"] = reused

    # Publish

    def _publish(self, ledger: Ledger, run: int) -> Version:
        inputs = self._inputs(ledger)
        existing = find_version_with_inputs(self._index, inputs)
        if existing is not None:
            self._report.unchanged = True
            promote_needed = all(gate["passed"] for gate in existing.manifest["gates"].values())
            if promote_needed:
                promote(self._index, existing.version_id)
            return existing
        building = begin_version(self._index)
        tables = building / "tables"
        scratch = building / "scratch"
        scratch.mkdir()
        with self._timed("consolidate"):
            write_graph_tables(
                self._inputs_of_graph(ledger),
                tables,
                scratch,
                min_confidence=self._settings.extract.min_confidence,
                memory_limit_mib=self._memory_mib(),
            )
        shutil.rmtree(scratch)
        communities = self._organise(ledger, run, tables)
        (building / "schema.json").write_text(self._schema.to_json(), "utf-8")
        with self._timed("index"):
            from hornbeam.index.build import build_indexes
            from hornbeam.index.vectors import VECTOR_KINDS

            self._progress.say("index: vectors, words, adjacency")
            built = build_indexes(
                building, self._embedder, self._settings.embedder, entity_vectors=communities.vectors
            )
        with self._timed("gate"):
            rows = {table: built.counts[table] for table in VECTOR_KINDS.values()}
            gates = evaluate_gates(building, self._schema, self._settings.gates, rows)
        version_id = version_identity(building, inputs=inputs)
        version = publish_version(
            self._index, building, version_id, self._manifest(inputs, gates, built.counts, communities.report)
        )
        if all(gate.passed for gate in gates):
            promote(self._index, version_id)
        return version

    def _inputs(self, ledger: Ledger) -> str:
        """Hash of all that a version is made from."""
        digest = hashlib.sha256()
        settings = self._settings.fingerprint("extract", "organise", "chunk", "gates")
        for part in (self._chunking(), self._schema.hash(), self._embedder.fingerprint, settings):
            digest.update(part.encode() + b"\0")
        digest.update(self._extraction_key("").encode())
        for row, text, chunks in self._documents(ledger):
            digest.update("\0".join([row.document_id, row.title, *row.sources]).encode("utf-8", "surrogatepass"))
            for chunk in chunks:
                key = self._extraction_key(text[chunk.start : chunk.end])
                if not ledger.has("extraction", key):
                    digest.update(f"failed {key}".encode())
        return digest.hexdigest()

    def _inputs_of_graph(self, ledger: Ledger) -> Iterator[DocumentInput]:
        total = ledger.counts()["documents"]
        with self._progress.stage("consolidate", total, "documents") as stage:
            for row, text, chunks in self._documents(ledger):
                keys = [self._extraction_key(text[c.start : c.end]) for c in chunks]
                payloads = ledger.get_many("extraction", keys)
                inputs = []
                for chunk, key in zip(chunks, keys, strict=True):
                    payload = payloads.get(key)
                    found = ChunkExtraction.model_validate_json(payload) if payload else None
                    state = found.state if found else ChunkState.FAILED
                    reason = ",".join(found.reasons) if found else ledger.failure(key) or ""
                    body = text[chunk.start : chunk.end]
                    inputs.append(
                        ChunkInput(
                            chunk.chunk_id, row.document_id, chunk.start, chunk.end, body, chunk.tokens, state, reason, found
                        )
                    )
                yield DocumentInput(row.document_id, row.sources, row.title, text, row.language, tuple(inputs))
                stage.advance()

    def _organise(self, ledger: Ledger, run: int, tables: Path) -> _Communities:
        from hornbeam.organise.communities import find_communities, read_graph
        from hornbeam.organise.naming import CommunityNamer
        from hornbeam.organise.tree import write_community_tables
        from hornbeam_kernels.backend import select_backend

        with self._timed("organise"):
            self._progress.say("organise: communities")
            graph = read_graph(tables, self._schema, self._embedder, self._settings.embedder.batch_size)
            backend = select_backend("cpu" if self._settings.device == "cpu" else "auto")
            limit = self._settings.memory_limit_mib
            hierarchy = find_communities(
                graph, self._settings.organise, backend, limit * 2**20 if limit else None
            )
        with self._timed("summarise"), self._progress.stage(
            "summarise", len(hierarchy.nodes), "communities"
        ) as stage:
            done = 0

            def on_named(named: int) -> None:
                nonlocal done
                stage.advance(named - done)
                done = named

            namer = CommunityNamer(graph, self._schema, self._model, ledger, self._settings.organise, on_named)
            names = namer.name(hierarchy)
        _add_usage(ledger, run, "summaries", names.usage)
        write_community_tables(tables, graph, hierarchy, names)
        leaves = sum(node.level == 0 for node in hierarchy.nodes)
        covered = sum(len(node.members) for node in hierarchy.nodes if node.level == 0)
        return _Communities(
            graph.entity_vectors,
            {
                "levels": hierarchy.levels,
                "leaf": leaves,
                "coverage": covered / len(graph.entity_ids) if graph.entity_ids else 1.0,
                "modularity": round(hierarchy.modularity, 4),
                "unnamed": len(names.unnamed),
            },
        )

    def _memory_mib(self) -> int:
        if self._settings.memory_limit_mib:
            return self._settings.memory_limit_mib
        import psutil

        return max(512, int(psutil.virtual_memory().available) // 4 // 2**20)

    def _manifest(
        self, inputs: str, gates: list[Gate], counts: dict[str, int], communities: dict[str, Any]
    ) -> dict[str, Any]:
        identity = self._model.identity
        return {
            "inputs": inputs,
            "created": time.time(),
            "settings": self._settings.model_dump(mode="json"),
            "schema": {"name": self._schema.name, "version": self._schema.version, "hash": self._schema.hash()},
            "model": {"name": identity.name, "fingerprint": identity.fingerprint, "backend": identity.backend},
            "prompt": {"version": self._extractor.prompt.version, "grammar": GRAMMAR_VERSION},
            "embedder": {
                "name": self._embedder.name,
                "fingerprint": self._embedder.fingerprint,
                "dimension": self._embedder.dimension,
            },
            "counts": counts,
            "communities": communities,
            "gates": {gate.name: gate.to_json() for gate in gates},
        }

    # Report

    def _summarise(self, ledger: Ledger, run: int, version: Version) -> None:
        import duckdb

        report = self._report
        chunks = str(version.directory / "tables" / "chunks.parquet").replace("'", "''")
        states = dict(
            duckdb.sql(f"SELECT state, count(*) FROM read_parquet('{chunks}') GROUP BY state").fetchall()
        )
        report.chunks = {
            "total": sum(states.values()),
            **{state.value: int(states.get(state.value, 0)) for state in (ChunkState.DONE, ChunkState.DEGRADED, ChunkState.FAILED)},
            "reused": report.chunks["reused"],
        }  # fmt: skip
        counts = version.manifest["counts"]
        report.entities, report.relations = counts["entities"], counts["relations"]
        report.attributes = counts["attributes"]
        report.communities = version.manifest["communities"]
        report.gates = version.manifest["gates"]
        report.version = version.version_id
        report.promoted = all(gate["passed"] for gate in report.gates.values())
        usage = ledger.usage(run)
        report.tokens = {
            stage: {name: int(row[name]) for name in ("calls", "prompt", "cached", "output")}
            for stage, row in usage.items()
            if row["calls"]
        }
        busy = report.seconds.get("extract", 0.0) + report.seconds.get("summarise", 0.0)
        output = sum(row["output"] for row in report.tokens.values())
        report.tokens_per_second = round(output / busy, 1) if busy and output else 0.0
        report.cost = self._cost(sum(report.seconds.values()))
        for stage, seconds in report.seconds.items():
            ledger.add_usage(run, stage, seconds=seconds)

    def _cost(self, seconds: float) -> dict[str, Any]:
        cost = self._settings.cost
        documents = self._report.documents["indexed"]
        per_document = None
        if cost.gpu_hour_price is not None and documents:
            per_document = cost.gpu_hour_price * seconds / 3600 / documents
        return {
            "per_document": per_document,
            "currency": cost.currency,
            "gpu_hour_price": cost.gpu_hour_price,
        }


@dataclass(frozen=True, slots=True)
class _Communities:
    vectors: Any  # float32 [entities, d]
    report: dict[str, Any]


def _add_usage(ledger: Ledger, run: int, stage: str, usage: StageUsage) -> None:
    ledger.add_usage(
        run, stage, calls=usage.calls, prompt=usage.prompt, cached=usage.cached, output=usage.output
    )

