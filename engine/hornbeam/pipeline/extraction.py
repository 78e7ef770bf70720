"""The ledger's chunks through the model: what has no result yet, each text once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from hornbeam.errors import ModelError
from hornbeam.extract.result import ChunkExtraction, Reason
from hornbeam.extract.tiers import ChunkExtractor
from hornbeam.pipeline.graph_inputs import portions, read_texts
from hornbeam.pipeline.recipe import Recipe
from hornbeam.progress import Progress, Stage
from hornbeam.records import ChunkState, Retry
from hornbeam.store.ledger import Ledger

#: Results that wait for their transaction at most. Normally one poll's; chunks in which there is nothing to
#: ask for come without a poll.
_RESULTS_AT_ONCE = 256
#: Model errors without a success between them after which a run stops: a server that is gone would fail all
#: that is left within seconds.
_MODEL_IS_GONE = 32
#: In the ledger's facts about the whole: a mark of the results that took the place of other ones.
_REPLACED = "replaced_results"
#: Different errors of the model that are shown while a run goes on.
_ERRORS_TOLD = 3


@dataclass(slots=True)
class ExtractionReport:
    total: int
    reused: int = 0  # chunks whose text had a result before or is another chunk's too
    unsettled: set[str] = field(default_factory=set)  # keys of results that the next run tries again


def extract_chunks(
    ledger: Ledger,
    run: int,
    extractor: ChunkExtractor,
    recipe: Recipe,
    progress: Progress,
    retry: Collection[Retry] = (),
) -> ExtractionReport:
    """Extract every chunk that has no result, or one that a failure of the model left incomplete.

    Args:
        retry: extract these chunks alone; a result takes the place of the one before.
    """
    report = ExtractionReport(ledger.counts()["chunks"])
    with progress.stage("extract", report.total, "chunks") as stage:
        results = _Results(ledger, run, stage, report, progress)

        def missing() -> Iterator[tuple[str, str]]:
            for pair in _missing(ledger, recipe, stage, report, retry or (Retry.FAILED,)):
                # The extractor asks for the next chunk when it has given out all that the model had: the
                # moment to make it durable, before it spends time on the new chunk's grammar.
                results.write()
                yield pair

        failed_in_a_row = 0
        for key, result in extractor.run(missing(), lambda in_flight: results.write()):
            results.add(key, result)
            failed_in_a_row = failed_in_a_row + 1 if Reason.MODEL_ERROR in result.reasons else 0
            if failed_in_a_row >= _MODEL_IS_GONE:
                results.write()
                raise ModelError(
                    f"the model failed {failed_in_a_row} chunks in a row, the last with: {result.detail}; "
                    "what was finished is kept, run again to go on"
                )
        results.write()
    return report


def replaced_results(ledger: Ledger) -> str:
    """Tells a ledger in which results were replaced by other ones; "" where none was."""
    return ledger.meta(_REPLACED) or ""


def _missing(
    ledger: Ledger, recipe: Recipe, stage: Stage, report: ExtractionReport, retry: Collection[Retry]
) -> Iterator[tuple[str, str]]:
    """(key, text) of the chunks to extract. Texts are read only of documents that have some."""
    asked: set[str] = set()
    for rows in portions(ledger):
        of_document = ledger.chunks(row.document_id for row in rows)
        chunks = [chunk for row in rows for chunk in of_document[row.document_id]]
        keys = [
            recipe.extraction_key(chunk.text_hash, row.chunking)
            for row in rows
            for chunk in of_document[row.document_id]
        ]
        settled = ledger.present("extraction", keys) - ledger.failures(keys).keys()
        if Retry.FAILED not in retry:
            report.unsettled.update(set(keys) - settled)
            settled.update(keys)
        if Retry.DEGRADED in retry:
            settled -= _degraded(ledger, keys)
        wanted = []
        for key, chunk in zip(keys, chunks, strict=True):
            if key in settled or key in asked:
                report.reused += 1
                stage.advance()
            else:
                asked.add(key)
                wanted.append((key, chunk))
        texts = read_texts(ledger, [chunk.document_id for _, chunk in wanted])
        for key, chunk in wanted:
            yield key, texts[chunk.document_id][chunk.start : chunk.end]


def _degraded(ledger: Ledger, keys: list[str]) -> set[str]:
    payloads = ledger.get_many("extraction", keys)
    return {
        key
        for key, payload in payloads.items()
        if ChunkExtraction.model_validate_json(payload).state is ChunkState.DEGRADED
    }


class _Results:
    """Results on their way into the ledger, a transaction for what one poll of the model brought."""

    def __init__(
        self, ledger: Ledger, run: int, stage: Stage, report: ExtractionReport, progress: Progress
    ) -> None:
        self._ledger = ledger
        self._run = run
        self._stage = stage
        self._report = report
        self._progress = progress
        self._told: set[str] = set()
        self._waiting: list[tuple[str, ChunkExtraction]] = []

    def add(self, key: str, result: ChunkExtraction) -> None:
        self._waiting.append((key, result))
        if len(self._waiting) >= _RESULTS_AT_ONCE:
            self.write()

    def write(self) -> None:
        if not self._waiting:
            return
        with self._ledger.transaction():
            for key, result in self._waiting:
                self._keep(key, result)
        self._ledger.seal()
        self._stage.advance(len(self._waiting))
        self._waiting = []

    def _keep(self, key: str, result: ChunkExtraction) -> None:
        if result.state is not ChunkState.FAILED:
            self._replace(key, result)
            self._ledger.put("extraction", key, result.model_dump_json().encode())
        if result.state is ChunkState.FAILED or Reason.MODEL_ERROR in result.reasons:
            # Also where the first stage's entities could be kept: another run may get the relations.
            self._ledger.put_failure(key, result.reasons[-1].value, result.detail)
            self._report.unsettled.add(key)
            self._tell(result)
        else:
            self._ledger.clear_failure(key)
        for name, usage in result.usage.items():
            self._ledger.runs.add_usage(self._run, name, **usage.model_dump())

    def _replace(self, key: str, result: ChunkExtraction) -> None:
        """Note that a result that a version may hold gives way to another one."""
        payload = self._ledger.get_many("extraction", [key]).get(key)
        if payload is None:
            return
        before = ChunkExtraction.model_validate_json(payload)
        found = result.model_dump_json(exclude={"usage"})
        # What a failure left is no lasting result: versions name it among their inputs.
        if Reason.MODEL_ERROR in before.reasons or found == before.model_dump_json(exclude={"usage"}):
            return
        # Whatever the order in which results come.
        mark = int(replaced_results(self._ledger) or "0", 16)
        mark ^= int(hashlib.sha256(f"{key} {found}".encode()).hexdigest(), 16)
        self._ledger.set_meta(_REPLACED, f"{mark:064x}")

    def _tell(self, result: ChunkExtraction) -> None:
        if result.detail not in self._told and len(self._told) < _ERRORS_TOLD:
            self._told.add(result.detail)
            self._progress.say(f"extract: {result.reasons[-1].value}: {result.detail}")
