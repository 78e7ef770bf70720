"""Facts that a method gave for a sentence, with what a fit of their probability reads of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from hornbeam.extract.guided_facts import GuidedFact
from hornbeam.extract.known_facts import Fact
from hornbeam.extract.result import ChunkExtraction

#: Confidences are kept to three decimals; one that was rounded to 0 was not.
_LEAST = 0.0005


@dataclass(frozen=True, slots=True)
class Given:
    fact: Fact
    confidence: float
    figures: tuple[float, ...]  # the inputs of a logistic model
    parts: Mapping[str, float]  # what they were made of


def of_guided(facts: Sequence[GuidedFact]) -> Iterator[Given]:
    """All facts of one sentence."""
    others = [fact.figures for fact in facts]
    for fact in facts:
        own = fact.figures
        yield Given((fact.head, fact.predicate, fact.tail), fact.confidence, own.values(others), asdict(own))


def of_staged(result: ChunkExtraction) -> Iterator[Given]:
    """The relations, then the attributes. Figures are logarithms of the parts of the confidence: c(head);
    c(type | head) · c(tail | head, type); and the tail's own c(tail) as an entity, of a value 1."""
    entities = result.entities
    for relation in result.relations:
        head, tail = entities[relation.head], entities[relation.tail]
        fact = (head.name, relation.type, tail.name)
        yield _staged(fact, relation.confidence, head.confidence, tail.confidence)
    for attribute in result.attributes:
        owner = entities[attribute.entity]
        fact = (owner.name, attribute.type, attribute.value)
        yield _staged(fact, attribute.confidence, owner.confidence, 1.0)


def _staged(fact: Fact, confidence: float, head: float, tail: float) -> Given:
    of_head = math.log(max(head, _LEAST))
    rest = math.log(max(confidence, _LEAST)) - of_head
    of_tail = math.log(max(tail, _LEAST))
    return Given(fact, confidence, (of_head, rest, of_tail), {"head": head, "tail": tail})
