"""Types that a schema lacks, as they were seen in texts, gathered into proposals.

A *sighting* is one place where a text was said to hold something of a type that the schema does not have. A
*proposal* is what all sightings of one type come to: support, confidence, examples.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from hornbeam.schema.model import ValueKind
from hornbeam.schema.type_names import name_key

TypeKind = Literal["entity", "relation", "attribute"]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Place(_Stored):
    """A span of a chunk."""

    start: int  # characters of the chunk's text
    end: int
    surface: str


class Example(_Stored):
    """Where a proposed type was seen: an entity, or head and tail, or owner and value."""

    chunk_id: str
    places: tuple[Place, ...]
    confidence: float


class Proposal(_Stored):
    """A type that the schema may lack.

    What was measured, not what is thought of it: whether it passes the gates is for `evolution.objections`.
    """

    kind: TypeKind
    name: str  # as it was said most often
    also: tuple[str, ...] = ()  # other names that say the same, the most frequent first
    support: int  # distinct documents; of a corpus of very few, distinct chunks
    sightings: int
    confidence: float  # mean over the sightings
    nearest: str | None = None  # existing type of the kind, by embedding; None: the schema has none
    similarity: float = 0.0  # cosine to it
    domain: tuple[str, ...] = ()  # entity types that were seen as heads or owners
    range: tuple[str, ...] = ()  # that were seen as tails
    value_kind: ValueKind = "text"  # of an attribute
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Sighting:
    kind: TypeKind
    name: str
    source: str  # the document; in a corpus of very few, the chunk
    text_hash: str  # of the chunk's text
    example: Example
    types: tuple[str, ...] = ()  # entity types of head and tail, or of the owner
    value_kind: ValueKind = "text"


class Tally:
    """What is known of one proposed type so far."""

    def __init__(self, kind: TypeKind, max_examples: int) -> None:
        self.kind = kind
        self._max_examples = max_examples
        self._sources: set[str] = set()
        self._names: Counter[str] = Counter()
        self._heads: Counter[str] = Counter()
        self._tails: Counter[str] = Counter()
        self._values: Counter[ValueKind] = Counter()
        self._confidence = 0.0
        #: what was said to be of the type: entities; heads, tails and owners say nothing about it
        self._surfaces: Counter[str] = Counter()
        self.text_hashes: set[str] = set()  # of chunks in which it was seen
        #: the best, as a heap: (confidence, chunk id, places, example); the middle ones decide among equals
        self._examples: list[tuple[float, str, list[tuple[int, int]], Example]] = []

    def add(self, sighting: Sighting) -> None:
        self._sources.add(sighting.source)
        self._names[sighting.name] += 1
        self._confidence += sighting.example.confidence
        self._heads.update(sighting.types[:1])
        self._tails.update(sighting.types[1:])
        self._values[sighting.value_kind] += 1
        self.text_hashes.add(sighting.text_hash)
        if self.kind == "entity":
            self._surfaces.update(place.surface for place in sighting.example.places)
        self._keep(sighting.example)

    def absorb(self, other: Tally) -> None:
        """Take in another type that says the same."""
        self._sources |= other._sources
        self._names += other._names
        self._heads += other._heads
        self._tails += other._tails
        self._values += other._values
        self._confidence += other._confidence
        self._surfaces += other._surfaces
        self.text_hashes |= other.text_hashes
        for *_, example in other._examples:
            self._keep(example)

    def _keep(self, example: Example) -> None:
        places = [(place.start, place.end) for place in example.places]
        entry = (example.confidence, example.chunk_id, places, example)
        if any(entry[:3] == kept[:3] for kept in self._examples):
            return  # said twice
        if len(self._examples) < self._max_examples:
            heapq.heappush(self._examples, entry)
        elif entry[:3] > self._examples[0][:3]:
            heapq.heapreplace(self._examples, entry)

    @property
    def names(self) -> list[str]:
        """The most frequent first, equals by name."""
        return sorted(self._names, key=lambda name: (-self._names[name], name))

    def surfaces(self, most: int) -> list[str]:
        """The most frequent, equals by themselves."""
        ordered = sorted(self._surfaces, key=lambda surface: (-self._surfaces[surface], surface))
        return ordered[:most]

    @property
    def entity_types(self) -> list[str]:
        """Seen as heads, owners or tails, by name."""
        return sorted({*self._heads, *self._tails})

    @property
    def rank(self) -> tuple[int, int, str]:
        """Sorts tallies: the best supported first, then the most frequent, then by name."""
        return -len(self._sources), -self._names.total(), self.names[0]

    def proposal(self, type_order: Sequence[str], nearest: str | None, similarity: float) -> Proposal:
        """
        Args:
            type_order: entity types in the order in which domain and range name them.
        """
        name, *also = self.names
        count = self._names.total()
        best = sorted(self._examples, key=lambda entry: (-entry[0], *entry[1:3]))
        only = next(iter(self._values)) if len(self._values) == 1 else "text"
        return Proposal(
            kind=self.kind,
            name=name,
            also=tuple(also),
            support=len(self._sources),
            sightings=count,
            confidence=round(self._confidence / count, 3),
            nearest=nearest,
            similarity=round(similarity, 3),
            domain=tuple(known for known in type_order if known in self._heads),
            range=tuple(known for known in type_order if known in self._tails),
            value_kind=only,
            examples=tuple(entry[3] for entry in best),
        )


def tally(sightings: Iterable[Sighting], max_examples: int) -> list[Tally]:
    """Sightings by kind and name; forms of one name together. The best supported first.

    Memory grows with the number of different types and of documents that hold them, not with sightings.
    """
    found: dict[tuple[TypeKind, str], Tally] = {}
    for sighting in sightings:
        key = (sighting.kind, name_key(sighting.name))
        if key not in found:
            found[key] = Tally(sighting.kind, max_examples)
        found[key].add(sighting)
    return sorted(found.values(), key=lambda each: each.rank)
