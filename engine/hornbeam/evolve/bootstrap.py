"""A first schema from documents alone.

The model is asked twice: for the kinds of things in the sampled chunks; then, with the kinds that pass the
gates, for relations and attributes between the things that it named. No index is made.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.errors import GateRefused, ModelError, UsageError
from hornbeam.evolve.accepting import gates_of
from hornbeam.evolve.asking import Asker, Question, as_many_as_fit, asker_of
from hornbeam.evolve.gathering import gather, sightings_of
from hornbeam.evolve.suggestions import ChunkSuggestions, Thing
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.protocol import LanguageModel, Usage
from hornbeam.progress import Progress
from hornbeam.records import Chunk, Document, content_id
from hornbeam.schema.evolution import extended, new_entity_type, objections
from hornbeam.schema.model import GraphSchema
from hornbeam.schema.proposals import Proposal, Sighting
from hornbeam.schema.type_names import name_key
from hornbeam.settings import EvolveSettings, Settings


@dataclass(slots=True)
class Bootstrap:
    schema: GraphSchema
    chunks: int  # asked about
    proposed: int
    rejected: int  # inputs that could not be read
    failed: int  # questions without an answer
    usage: Usage = field(default_factory=Usage)

    def lines(self) -> list[str]:
        """What came of it, for people."""
        found = self.schema
        unasked = f", {self.failed} questions without an answer" if self.failed else ""
        return [
            f"{found.name}: {len(found.entity_types)} entity types, {len(found.relation_types)} relation "
            f"types, {len(found.attribute_types)} attribute types",
            f"of {self.proposed} proposals in {self.chunks} chunks{unasked}; {self.usage.prompt} tokens "
            f"read, {self.usage.output} written",
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": self.schema.to_dict(),
            "chunks": self.chunks,
            "proposed": self.proposed,
            "rejected": self.rejected,
            "failed": self.failed,
            "tokens": {
                "prompt": self.usage.prompt,
                "cached": self.usage.cached,
                "output": self.usage.output,
            },
        }


class _Answers:
    """Answers by question key, with what they cost."""

    def __init__(self, asker: Asker, progress: Progress) -> None:
        self._asker = asker
        self._progress = progress
        self.usage = Usage()
        self.failed = 0

    def to(self, name: str, questions: Sequence[Question]) -> dict[str, ChunkSuggestions]:
        found: dict[str, ChunkSuggestions] = {}
        error = ""
        with self._progress.stage(name, len(questions), "chunks") as stage:
            for answers in self._asker.ask(questions):
                for answer in answers:
                    self.usage += answer.usage
                    if answer.found is None:
                        self.failed += 1
                        error = answer.error
                    else:
                        found[answer.key] = answer.found
                stage.advance(len(answers))
        if questions and not found:
            raise ModelError(f"the model answered none of {len(questions)} questions, the last with: {error}")
        return found


def bootstrap_schema(
    paths: Sequence[Path | str],
    name: str,
    sample: int,
    settings: Settings,
    model: LanguageModel,
    embedder: TextEmbedder,
    progress: Progress,
) -> Bootstrap:
    """
    Args:
        name: of the schema.
        sample: chunks that the model is asked about, drawn evenly from all documents.

    Raises:
        UsageError: a path does not exist, or nothing in them can be read.
        ModelError: the question does not fit the model, or it answers none.
        GateRefused: no entity type passes the gates.
    """
    limits = settings.evolve
    asker = asker_of(settings, None, model)
    asker.check_room(settings.chunk.max_tokens)
    corpus = read_corpus(paths, settings.corpus)
    chunker = Chunker(model.tokenizer, settings.chunk.max_tokens, settings.chunk.overlap_tokens)
    chunks, rejected = _drawn(corpus, chunker, sample, progress)
    if not chunks:
        raise UsageError(f"no text in {', '.join(str(path) for path in paths)} ({rejected} inputs rejected)")
    answers = _Answers(asker, progress)
    said = answers.to("kinds of things", [Question(chunk.chunk_id, chunk.text) for chunk in chunks])
    things = [each for each, _ in gather(_sightings(chunks, said), None, embedder, limits)]
    passing = _passing(things, None, limits)
    if not passing:
        raise GateRefused(
            f"none of {len(things)} proposed entity types passes the gates (best: {_best(things)}); lower "
            "evolve.min_support or evolve.min_confidence, raise --sample, or use a larger model"
        )
    of_type = {name_key(said): each.name for each in passing for said in (each.name, *each.also)}
    typed = {chunk.chunk_id: _typed_things(said.get(chunk.chunk_id), chunk, of_type) for chunk in chunks}
    questions = [
        Question(chunk.chunk_id, chunk.text, typed[chunk.chunk_id])
        for chunk in chunks
        if typed[chunk.chunk_id]
    ]
    said = answers.to("relations and attributes", questions)
    base = GraphSchema(name=name, entity_types=tuple(new_entity_type(each) for each in passing))
    facts = [each for each, _ in gather(_sightings(chunks, said), base, embedder, limits)]
    facts = [each for each in facts if each.kind != "entity"]
    schema = extended(base, _passing(facts, base, limits), version=1)
    schema = schema.model_copy(update={"parent": None, "changes": ()})  # a first version
    proposed = len(things) + len(facts)
    return Bootstrap(schema, len(chunks), proposed, rejected, answers.failed, answers.usage)


def _drawn(
    corpus: Iterable[Any], chunker: Chunker, sample: int, progress: Progress
) -> tuple[list[Chunk], int]:
    """The chunks with the lowest hashes, each text once, and how many inputs were rejected."""
    rejected = 0

    def chunks() -> Iterator[tuple[str, Chunk]]:
        nonlocal rejected
        seen: set[str] = set()
        with progress.stage("read", unit="documents") as stage:
            for item in corpus:
                stage.advance()
                if not isinstance(item, Document):
                    rejected += 1
                    continue
                for chunk in chunker.chunk(item):
                    key = content_id("t", chunk.text)
                    if key not in seen:
                        seen.add(key)
                        yield key, chunk

    lowest = heapq.nsmallest(sample, chunks(), key=lambda pair: pair[0])
    return [chunk for _, chunk in lowest], rejected


def _sightings(chunks: Sequence[Chunk], said: Mapping[str, ChunkSuggestions]) -> Iterator[Sighting]:
    documents = len({chunk.document_id for chunk in chunks})
    for chunk in chunks:
        if chunk.chunk_id in said:
            yield from sightings_of(
                said[chunk.chunk_id],
                chunk.document_id,
                chunk.chunk_id,
                chunk.chunk_id,
                chunk.text,
                documents=documents,
            )


def _typed_things(
    said: ChunkSuggestions | None, chunk: Chunk, of_type: Mapping[str, str]
) -> tuple[Thing, ...]:
    """What the model named in the chunk, of the kinds that passed."""
    things: dict[str, Thing] = {}
    for suggestion in said.suggestions if said else ():
        kind = of_type.get(name_key(suggestion.name))
        start, end = suggestion.places[0]
        surface = " ".join(chunk.text[start:end].split())
        if kind is not None:
            things.setdefault(surface, Thing(surface, kind, (start, end)))
    return as_many_as_fit(list(things.values()))


def _passing(
    proposals: Iterable[Proposal], schema: GraphSchema | None, settings: EvolveSettings
) -> list[Proposal]:
    gates = gates_of(settings)
    return [each for each in proposals if not objections(each, schema, gates)]


def _best(proposals: Sequence[Proposal]) -> str:
    if not proposals:
        return "none"
    best = max(proposals, key=lambda each: (each.support, each.confidence))
    return f"{best.name}, support {best.support}, confidence {best.confidence:.2f}"
