"""What a fit of the confidence of two-stage extraction reads.

What is fitted on are the parts of its confidence, of which the product is the raw value: how sure the model
was of the head, of what it says of it, and of the tail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from hornbeam.extract.result import ChunkExtraction


class Figures(NamedTuple):
    """Logarithms; the raw confidence is the product of the first two."""

    head: float  # c(head)
    rest: float  # c(type | head) · c(tail | head, type)
    tail: float  # the tail's own c(tail) as an entity, 0 of a value


#: Confidences are kept to three decimals; one that was rounded to 0 was not.
_LEAST = 0.0005


def figures_of(result: ChunkExtraction) -> Iterator[Figures]:
    """The inputs of the fit, of each relation and then each attribute."""
    for relation in result.relations:
        head, tail = result.entities[relation.head], result.entities[relation.tail]
        yield _figures(relation.confidence, head.confidence, tail.confidence)
    for attribute in result.attributes:
        yield _figures(attribute.confidence, result.entities[attribute.entity].confidence, 1.0)


def _figures(raw: float, head: float, tail: float) -> Figures:
    sure_of_head = math.log(max(head, _LEAST))
    return Figures(sure_of_head, math.log(max(raw, _LEAST)) - sure_of_head, math.log(max(tail, _LEAST)))
