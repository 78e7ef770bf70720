"""What a reader of another system's graph gives: documents that bring their chunks and facts with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hornbeam.extract.result import ChunkExtraction, FoundAttribute, FoundEntity, FoundRelation
from hornbeam.schema.vocabulary import Spelling, Vocabulary

#: The type of entities whose source knows no types.
UNTYPED = "entity"


@dataclass(frozen=True, slots=True)
class ImportedChunk:
    start: int  # characters of the document's text
    end: int
    extraction: ChunkExtraction


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    source: str
    title: str
    text: str
    form: str  # format and its version: another reading of the same text is another document
    chunks: tuple[ImportedChunk, ...]
    vocabulary: Vocabulary


@dataclass(frozen=True, slots=True)
class RejectedInput:
    """A line or record that gave nothing, and why."""

    place: str  # file:line or file#record
    reason: str


@dataclass(slots=True)
class Reading:
    """What reading an import takes along and counts; one for all its files."""

    entity_types: Spelling = field(default_factory=Spelling)
    relation_types: Spelling = field(default_factory=Spelling)
    #: facts: read, repetitions included; rejected: lines or facts that could not be read; self_loops: facts
    #: from an entity to itself; ungrounded: names that stand nowhere in their text
    counts: Counter[str] = field(default_factory=Counter)


def vocabulary_of(extractions: Iterable[ChunkExtraction]) -> Vocabulary:
    """The types that some facts use."""
    types: set[str] = set()
    relations: set[tuple[str, str, str]] = set()
    attributes: set[tuple[str, str]] = set()
    for extraction in extractions:
        entities = extraction.entities
        types.update(entity.type for entity in entities)
        relations.update((entities[r.head].type, r.type, entities[r.tail].type) for r in extraction.relations)
        attributes.update((entities[a.entity].type, a.type) for a in extraction.attributes)
    return Vocabulary(
        entity_types=tuple(sorted(types)),
        relations=tuple(sorted(relations)),
        attributes=tuple(sorted(attributes)),
    )


class FactCollector:
    """The facts of one chunk, each entity and each relation once.

    Args:
        confidence: of all of them; by default they are certain: the source says so.
    """

    def __init__(self, confidence: float = 1.0) -> None:
        self._confidence = confidence
        self._places: dict[tuple[str, str, str | None], int] = {}
        self._spans: list[dict[tuple[int, int], None]] = []
        self._relations: dict[tuple[int, str, int], None] = {}
        self._attributes: dict[tuple[int, str, int, int], str] = {}
        self.repeated = 0

    def entity(self, name: str, kind: str, identity: str | None, spans: Iterable[tuple[int, int]]) -> int:
        """The entity's number in this chunk; its spans are added to those that it has."""
        place = self._places.setdefault((name, kind, identity), len(self._spans))
        if place == len(self._spans):
            self._spans.append({})
        self._spans[place].update(dict.fromkeys(spans))
        return place

    def relation(self, head: int, kind: str, tail: int) -> None:
        fact = (head, kind, tail)
        self.repeated += fact in self._relations
        self._relations[fact] = None

    def attribute(self, owner: int, kind: str, value: str, start: int, end: int) -> None:
        self._attributes[owner, kind, start, end] = value

    def extraction(self) -> ChunkExtraction:
        sure = self._confidence
        return ChunkExtraction(
            entities=tuple(
                FoundEntity(name=name, type=kind, confidence=sure, spans=tuple(spans), identity=identity)
                for (name, kind, identity), spans in zip(self._places, self._spans, strict=True)
            ),
            relations=tuple(
                FoundRelation(head=head, type=kind, tail=tail, confidence=sure)
                for head, kind, tail in self._relations
            ),
            attributes=tuple(
                FoundAttribute(entity=owner, type=kind, value=value, start=start, end=end, confidence=sure)
                for (owner, kind, start, end), value in self._attributes.items()
            ),
            repeated=self.repeated,
        )
