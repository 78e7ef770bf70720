"""The stage that asks for types which the schema lacks. The schema is only read."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from hornbeam.evolve.accepting import gates_of
from hornbeam.evolve.asking import Answer, Asker, Question, things_of
from hornbeam.evolve.gathering import gather, sightings_of
from hornbeam.evolve.suggestions import ChunkSuggestions
from hornbeam.extract.result import ChunkExtraction
from hornbeam.index.embedder import TextEmbedder
from hornbeam.pipeline.graph_inputs import portions, read_texts
from hornbeam.pipeline.recipe import Recipe
from hornbeam.progress import Progress, Stage
from hornbeam.records import content_id
from hornbeam.schema.evolution import objections
from hornbeam.schema.model import GraphSchema
from hornbeam.schema.proposals import Sighting
from hornbeam.settings import EvolveSettings
from hornbeam.store.ledger import ChunkRow, Ledger
from hornbeam.store.type_evidence import TypeTraces

STAGE = "proposals"  # in the ledger's usage
#: Surfaces by which a proposed type is looked for in other chunks.
_SURFACES = 200
#: Different errors of the model that are shown while a run goes on.
_ERRORS_TOLD = 3


@dataclass(slots=True)
class ProposingReport:
    chunks: int = 0  # asked about, now or before
    questions: int = 0  # two a chunk at most
    reused: int = 0  # of them, answered before
    cut: int = 0  # of them, answered up to the token limit
    failed: int = 0  # of them, without an answer: the next run asks again
    proposals: int = 0
    passing: list[str] = field(default_factory=list)  # `kind name` of those that pass the gates

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Proposing:
    """Collects proposals from one index.

    Args:
        model_fingerprint: of the model that the asker asks.
    """

    def __init__(
        self,
        ledger: Ledger,
        run: int,
        asker: Asker,
        recipe: Recipe,
        model_fingerprint: str,
        schema: GraphSchema,
        embedder: TextEmbedder,
        settings: EvolveSettings,
        progress: Progress,
    ) -> None:
        self._ledger = ledger
        self._run = run
        self._asker = asker
        self._recipe = recipe
        self._answers = content_id("", asker.version, model_fingerprint)
        self._schema = schema
        self._embedder = embedder
        self._settings = settings
        self._progress = progress
        self._report = ProposingReport()
        self._told: set[str] = set()

    def collect(self) -> ProposingReport:
        """Ask what has no answer yet, then make proposals anew from all answers and keep them."""
        chosen = self._choose()
        report = self._report
        report.chunks = len(chosen)
        with self._progress.stage("propose types", 2 * len(chosen), "questions") as stage:
            for attempt in range(self._settings.retries + 1):
                report.failed = self._ask(chosen, stage, first=attempt == 0)
                if not report.failed:
                    break
        self._keep(chosen)
        return report

    def _choose(self) -> set[str]:
        """Hashes of the texts to ask about: the lowest, so an index that grows keeps most of its answers."""
        texts = {
            chunk.text_hash
            for rows in portions(self._ledger)
            for some in self._ledger.chunks(row.document_id for row in rows).values()
            for chunk in some
        }
        limit = self._settings.max_chunks
        return texts if limit is None else set(heapq.nsmallest(limit, texts))

    def _ask(self, chosen: set[str], stage: Stage, *, first: bool) -> int:
        """Ask the open questions once; how many have no answer after that."""
        failed = 0

        def open_questions() -> Iterator[Question]:
            met: set[str] = set()
            for portion in self._portions(chosen):
                questions = {
                    question.key: question
                    for asked in portion
                    for question in asked.questions
                    if question.key not in met
                }
                met.update(questions)
                present = self._ledger.present("proposal", questions)
                if first:
                    self._report.questions += len(questions)
                    self._report.reused += len(present)
                    stage.advance(len(present))
                yield from (question for key, question in questions.items() if key not in present)

        for answers in self._asker.ask(open_questions()):
            with self._ledger.transaction():
                for answer in answers:
                    self._store(answer)
            self._ledger.seal()
            failures = sum(answer.found is None for answer in answers)
            failed += failures
            stage.advance(len(answers) - failures)
        return failed

    def _store(self, answer: Answer) -> None:
        usage = answer.usage
        if usage.prompt or usage.output:
            self._ledger.runs.add_usage(
                self._run, STAGE, calls=1, prompt=usage.prompt, cached=usage.cached, output=usage.output
            )
        if answer.found is not None:
            self._ledger.put("proposal", answer.key, answer.found.model_dump_json().encode())
        elif answer.error not in self._told and len(self._told) < _ERRORS_TOLD:
            self._told.add(answer.error)
            self._progress.say(f"propose types: {answer.error}")

    def _keep(self, chosen: set[str]) -> None:
        gathered = gather(self._sightings(chosen), self._schema, self._embedder, self._settings)
        with self._ledger.transaction():
            types = self._ledger.types
            types.replace_proposals(
                self._schema.to_json(), (proposal.model_dump_json() for proposal, _ in gathered)
            )
            for proposal, tally in gathered:
                names = (proposal.name, *proposal.also)
                surfaces = tuple(tally.surfaces(_SURFACES))
                types.keep(
                    TypeTraces(proposal.kind, proposal.name, names, surfaces), sorted(tally.text_hashes)
                )
        gates = gates_of(self._settings)
        self._report.proposals = len(gathered)
        self._report.passing = [
            f"{proposal.kind} {proposal.name}"
            for proposal, _ in gathered
            if not objections(proposal, self._schema, gates)
        ]

    def _sightings(self, chosen: set[str]) -> Iterator[Sighting]:
        """All that was answered, in every document that has the text."""
        cut: set[str] = set()
        documents = self._ledger.counts()["documents"]
        for portion in self._portions(chosen):
            keys = [question.key for asked in portion for question in asked.questions]
            payloads = self._ledger.get_many("proposal", keys)
            for asked in portion:
                for question in asked.questions:
                    if question.key not in payloads:
                        continue
                    found = ChunkSuggestions.model_validate_json(payloads[question.key])
                    if not found.complete:
                        cut.add(question.key)
                    chunk = asked.chunk
                    yield from sightings_of(
                        found,
                        chunk.document_id,
                        chunk.text_hash,
                        chunk.chunk_id,
                        question.text,
                        documents=documents,
                    )
        self._report.cut = len(cut)

    def _portions(self, chosen: set[str]) -> Iterator[list[_Asked]]:
        """The chosen chunks with their questions, those of many documents at once."""
        for rows in portions(self._ledger):
            found = self._ledger.chunks(row.document_id for row in rows)
            chunks = [
                (chunk, self._recipe.extraction_key(chunk.text_hash, row.chunking, row.language))
                for row in rows
                for chunk in found[row.document_id]
                if chunk.text_hash in chosen
            ]
            texts = read_texts(self._ledger, [chunk.document_id for chunk, _ in chunks])
            payloads = self._ledger.get_many("extraction", (key for _, key in chunks))
            yield [
                _Asked(
                    chunk,
                    self._questions(
                        chunk.text_hash,
                        texts[chunk.document_id][chunk.start : chunk.end],
                        payloads.get(key),
                    ),
                )
                for chunk, key in chunks
            ]

    def _questions(self, text_hash: str, text: str, extraction: bytes | None) -> tuple[Question, ...]:
        """Of the chunk's things; and of their facts, where extraction has found any."""
        questions = [Question(content_id("p", self._answers, text_hash), text)]
        things = things_of(ChunkExtraction.model_validate_json(extraction)) if extraction else ()
        if things:
            named = [part for thing in things for part in (thing.name, thing.type)]
            questions.append(Question(content_id("p", self._answers, text_hash, *named), text, things))
        return tuple(questions)


@dataclass(frozen=True, slots=True)
class _Asked:
    chunk: ChunkRow
    questions: tuple[Question, ...]
