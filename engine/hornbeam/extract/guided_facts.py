"""What guided extraction says of a sentence, which of it is kept, and the result of a chunk made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hornbeam.extract.fact_scores import FactFigures
from hornbeam.extract.result import ChunkExtraction, FoundAttribute, FoundEntity, FoundRelation


@dataclass(frozen=True, slots=True)
class GuidedFact:
    """A fact of a sentence; places are characters of the chunk."""

    head: str
    head_type: str
    head_place: tuple[int, int]
    predicate: str
    tail: str
    tail_type: str  # "": a value
    tail_place: tuple[int, int]
    figures: FactFigures
    confidence: float  # P(right)


def strongest(ranked: Sequence[GuidedFact], threshold: float) -> list[GuidedFact]:
    """Of facts by falling confidence those from the threshold on and the first; every tail once."""
    kept: list[GuidedFact] = []
    taken: set[str] = set()
    for fact in ranked:
        if fact.tail not in taken and (not kept or fact.confidence >= threshold):
            taken.add(fact.tail)
            kept.append(fact)
    return kept


def as_extraction(facts: Sequence[GuidedFact]) -> ChunkExtraction:
    """Entities are the ends of facts; a name with two types is two."""
    entities: dict[tuple[str, str], FoundEntity] = {}
    relations: dict[tuple[int, str, int], FoundRelation] = {}
    attributes: dict[tuple[int, str, str], FoundAttribute] = {}

    def entity(name: str, entity_type: str, place: tuple[int, int], confidence: float) -> int:
        key = (name, entity_type)
        known = entities.get(key)
        entities[key] = FoundEntity(
            name=name,
            type=entity_type,
            confidence=max(confidence, known.confidence if known else 0.0),
            spans=tuple(sorted({*(known.spans if known else ()), place})),
        )
        return list(entities).index(key)

    for fact in facts:
        head = entity(fact.head, fact.head_type, fact.head_place, fact.confidence)
        if not fact.tail_type:
            attributes.setdefault(
                (head, fact.predicate, fact.tail),
                FoundAttribute(
                    entity=head,
                    type=fact.predicate,
                    value=fact.tail,
                    start=fact.tail_place[0],
                    end=fact.tail_place[1],
                    confidence=fact.confidence,
                ),
            )
            continue
        tail = entity(fact.tail, fact.tail_type, fact.tail_place, fact.confidence)
        relations.setdefault(
            (head, fact.predicate, tail),
            FoundRelation(head=head, type=fact.predicate, tail=tail, confidence=fact.confidence),
        )
    return ChunkExtraction(
        entities=tuple(entities.values()),
        relations=tuple(relations.values()),
        attributes=tuple(attributes.values()),
    )
