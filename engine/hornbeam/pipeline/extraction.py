"""The ledger's chunks through the model: what has no result yet, each text once; facts verified if wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hornbeam.errors import ModelError
from hornbeam.extract.result import ChunkExtraction, ChunkVerification, Reason
from hornbeam.extract.verification import Chunk, Outcome
from hornbeam.pipeline.executing import Extracting
from hornbeam.pipeline.graph_inputs import portions, read_texts
from hornbeam.pipeline.recipe import Recipe
from hornbeam.progress import Progress, Stage
from hornbeam.records import ChunkState, Retry
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import ChunkRow, DocumentRow, Ledger

#: Results that wait for their transaction at most. Normally one poll's; chunks in which there is nothing to
#: ask for come without a poll.
_RESULTS_AT_ONCE = 256
#: Model errors without a success between them after which a run stops: a server that is gone would fail all
#: that is left within seconds.
_MODEL_IS_GONE = 32
#: Different errors of the model that are shown while a run goes on.
_ERRORS_TOLD = 3
#: In the ledger's facts about the whole: a mark of the results that took the place of other ones.
_REPLACED = "replaced_results"


@dataclass(slots=True)
class ExtractionReport:
    total: int
    reused: int = 0  # chunks whose text had a result before or is another chunk's too
    dropped: int = 0  # items in answers that a grammar would have ruled out
    unsettled: set[str] = field(default_factory=set)  # keys of results that the next run tries again


def extract_chunks(
    ledger: Ledger,
    run: int,
    extract: Extracting,
    recipe: Recipe,
    progress: Progress,
    stop: StopRequest,
    retry: Collection[Retry] = (),
    arriving: Iterable[list[str]] = (),
) -> ExtractionReport:
    """Extract every chunk that has no result, or one that a failure of the model left incomplete.

    Reading and extraction overlap: documents are read when the model has room for their chunks, in this
    thread, so that nothing piles up between them however many there are.

    Args:
        extract: asks about chunks, and about the facts of those that come with an extraction.
        arriving: brings documents into the ledger as it is gone through, and gives the ids of those that
            came; their chunks are asked about at once, those of all others afterwards.
        retry: extract these chunks alone; a result takes the place of the one before.

    Raises:
        ModelError: the model is gone; what was finished is in the ledger.
        Interrupted: the user stopped the run; so are the chunks that were in flight.
    """
    known = ledger.counts()["chunks"]
    report = ExtractionReport(known)
    reusable, unsettled = _scan(ledger, recipe)
    if reusable:
        progress.say(f"extract: reusing {reusable} of {known} chunks")
    # Documents that have all their results need no second look, unless some are to be asked about again.
    looked_at = unsettled if not retry and recipe.verification is None else None
    with progress.stage("extract", None if arriving else known, "chunks") as stage:
        results = _Results(ledger, run, stage, report, recipe, progress)

        def portions_to_do() -> Iterator[list[DocumentRow]]:
            source, taken, chunks = iter(arriving), set[str](), 0
            while not stop.requested:
                results.write()  # before a batch takes its time
                if (ids := next(source, None)) is None:
                    break
                new = [document_id for document_id in dict.fromkeys(ids) if document_id not in taken]
                taken.update(new)
                chunks += ledger.chunk_count(new)
                yield list(ledger.documents_of(new))
            if stop.requested:
                return
            report.total = ledger.counts()["chunks"]
            stage.expect(report.total)
            rest = None if looked_at is None else looked_at - taken
            if rest is not None:
                settled = max(0, report.total - chunks - ledger.chunk_count(rest))
                report.reused += settled
                stage.advance(settled)
            for rows in portions(ledger, rest):
                yield [row for row in rows if row.document_id not in taken]

        def missing() -> Iterator[Chunk]:
            todo = portions_to_do()
            for chunk in _missing(ledger, todo, recipe, stage, report, retry or (Retry.FAILED,)):
                if stop.requested:
                    return
                # The extractor asks for the next chunk when it has given out all that the model had: the
                # moment to make it durable, before it spends time on the new chunk's grammar.
                results.write()
                results.expect(chunk)
                yield chunk

        def waiting(in_flight: int) -> None:
            results.write()

        failed_in_a_row = 0
        for key, outcome in extract(missing(), waiting):
            results.add(key, outcome)
            failed_in_a_row = failed_in_a_row + 1 if _model_failed(outcome) else 0
            if failed_in_a_row >= _MODEL_IS_GONE:
                results.write()
                raise ModelError(
                    f"the model failed {failed_in_a_row} chunks in a row, the last with: {outcome.detail}; "
                    "what was finished is kept, run again to go on"
                )
        results.write()
        stop.check(f"{results.done} chunks were extracted in this run")
    return report


def _model_failed(outcome: Outcome) -> bool:
    if isinstance(outcome, ChunkExtraction):
        return Reason.MODEL_ERROR in outcome.reasons
    return all(answer is None for answer in (*outcome.relations, *outcome.attributes))


def replaced_results(ledger: Ledger) -> str:
    """Tells a ledger in which results were replaced by other ones; "" where none was."""
    return ledger.meta(_REPLACED) or ""


def _chunks_of(
    ledger: Ledger, recipe: Recipe, rows: list[DocumentRow]
) -> tuple[list[tuple[str, ChunkRow]], set[str]]:
    """The documents' chunks with the keys of their results, and the keys whose result is there and final."""
    of_document = ledger.chunks(row.document_id for row in rows)
    chunks = [
        (recipe.extraction_key(chunk.text_hash, row.chunking, row.language), chunk)
        for row in rows
        for chunk in of_document[row.document_id]
    ]
    keys = [key for key, _ in chunks]
    return chunks, ledger.present("extraction", keys) - ledger.failures(keys).keys()


def _scan(ledger: Ledger, recipe: Recipe) -> tuple[int, set[str]]:
    """The number of chunks whose result is there, and the documents that have others."""
    count, unsettled = 0, set()
    for rows in portions(ledger):
        chunks, settled = _chunks_of(ledger, recipe, rows)
        left = {chunk.document_id for key, chunk in chunks if key not in settled}
        count += sum(key in settled for key, _ in chunks)
        unsettled |= left
    return count, unsettled


def _missing(
    ledger: Ledger,
    todo: Iterable[list[DocumentRow]],
    recipe: Recipe,
    stage: Stage,
    report: ExtractionReport,
    retry: Collection[Retry],
) -> Iterator[Chunk]:
    """The chunks to ask about. Texts are read only of documents that have some.

    Args:
        todo: documents, each once.
    """
    asked: set[str] = set()
    for rows in todo:
        chunks, settled = _chunks_of(ledger, recipe, rows)
        if Retry.FAILED not in retry:
            report.unsettled.update({key for key, _ in chunks} - settled)
            settled.update(key for key, _ in chunks)
        if Retry.DEGRADED in retry:
            settled -= _degraded(ledger, [key for key, _ in chunks])
        unverified = _unverified(ledger, recipe, settled) if recipe.verification else {}
        wanted = []
        for key, chunk in chunks:
            if key in settled or key in asked:
                report.reused += 1
                stage.advance()
            if key not in asked and (key not in settled or key in unverified):
                asked.add(key)
                wanted.append((key, chunk))
        texts = read_texts(ledger, [chunk.document_id for _, chunk in wanted])
        language_of = {row.document_id: row.language for row in rows}
        for key, chunk in wanted:
            text = texts[chunk.document_id][chunk.start : chunk.end]
            language = language_of[chunk.document_id]
            yield Chunk(key, text, unverified.get(key), chunk.document_id, language)


def _degraded(ledger: Ledger, keys: list[str]) -> set[str]:
    payloads = ledger.get_many("extraction", keys)
    return {
        key
        for key, payload in payloads.items()
        if ChunkExtraction.model_validate_json(payload).state is ChunkState.DEGRADED
    }


def _unverified(ledger: Ledger, recipe: Recipe, keys: Collection[str]) -> dict[str, ChunkExtraction]:
    """The extractions with facts of which not all are verified."""
    found = {
        key: ChunkExtraction.model_validate_json(payload)
        for key, payload in ledger.get_many("extraction", keys).items()
    }
    places = {recipe.verification_key(key, one): key for key, one in found.items() if one.facts}
    settled = ledger.present("verification", places) - ledger.failures(places).keys()
    return {key: found[key] for place, key in places.items() if place not in settled}


class _Results:
    """Results on their way into the ledger, a transaction for what one poll of the model brought."""

    def __init__(
        self,
        ledger: Ledger,
        run: int,
        stage: Stage,
        report: ExtractionReport,
        recipe: Recipe,
        progress: Progress,
    ) -> None:
        self._ledger = ledger
        self._run = run
        self._stage = stage
        self._report = report
        self._recipe = recipe
        self._progress = progress
        self._told: set[str] = set()
        self._waiting: list[tuple[str, Outcome]] = []
        self._documents: dict[str, str] = {}  # of the chunks that are on their way
        self.done = 0  # durable

    def expect(self, chunk: Chunk) -> None:
        self._documents[chunk.key] = chunk.document_id

    def add(self, key: str, outcome: Outcome) -> None:
        self._waiting.append((key, outcome))
        if len(self._waiting) >= _RESULTS_AT_ONCE:
            self.write()

    def write(self) -> None:
        if not self._waiting:
            return
        with self._ledger.transaction():
            for key, outcome in self._waiting:
                if isinstance(outcome, ChunkVerification):
                    self._keep_verification(key, outcome)
                else:
                    self._keep(key, outcome)
                document_id = self._documents.get(key, "")
                if isinstance(outcome, ChunkVerification) or not self._recipe.verification:
                    self._documents.pop(key, None)  # nothing more comes of it
                for name, usage in outcome.usage.items():
                    spent = usage.model_dump()
                    self._ledger.runs.add_usage(self._run, name, **spent)
                    self._ledger.runs.add_document_usage(self._run, document_id, name, **spent)
        self._ledger.seal()
        extracted = sum(isinstance(outcome, ChunkExtraction) for _, outcome in self._waiting)
        self._stage.advance(extracted)
        self.done += extracted
        self._waiting = []

    def _keep(self, key: str, result: ChunkExtraction) -> None:
        self._report.dropped += result.dropped
        if result.state is not ChunkState.FAILED:
            self._replace(key, result)
            self._ledger.put("extraction", key, result.model_dump_json().encode())
        if result.state is ChunkState.FAILED or Reason.MODEL_ERROR in result.reasons:
            # Also where the first stage's entities could be kept: another run may get the relations.
            self._fail(key, result.reasons[-1].value, result.detail)
        else:
            self._ledger.clear_failure(key)

    def _keep_verification(self, extraction_key: str, verification: ChunkVerification) -> None:
        payload = self._ledger.get_many("extraction", [extraction_key])[extraction_key]
        key = self._recipe.verification_key(extraction_key, ChunkExtraction.model_validate_json(payload))
        self._ledger.put("verification", key, verification.model_dump_json().encode())
        if verification.complete:
            self._ledger.clear_failure(key)
        else:
            self._fail(key, "unverified", verification.detail)

    def _fail(self, key: str, reason: str, detail: str) -> None:
        self._ledger.put_failure(key, reason, detail)
        self._report.unsettled.add(key)
        if detail not in self._told and len(self._told) < _ERRORS_TOLD:
            self._told.add(detail)
            self._progress.say(f"extract: {reason}: {detail}")

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
