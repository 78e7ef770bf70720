"""Which stored results a new type could change.

A result under an older schema stays valid under one that only adds types. It may lack facts of the new types
where the text holds some. A chunk is *touched* by a new type when one of these says so:

- the type was proposed for this very text;
- a name of the type, or a thing that was said to be of it, stands in the text;
- the text's vector is as like the type's (name and description) as a bound, or as most of the texts in which
  the type was seen: a text says little of a broad type ("person"), and no bound serves all types;

and, for relation and attribute types, the stored result holds entities that it can have, or may hold some
when the chunk is extracted anew. What none of them sees is missed: that is the price of not reading
everything again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hornbeam.evolve.gathering import type_text
from hornbeam.extract.result import ChunkExtraction
from hornbeam.index.embedder import TextEmbedder
from hornbeam.schema.evolution import NewType
from hornbeam.schema.type_names import name_words, stem
from hornbeam.store.type_evidence import TypeEvidence, TypeTraces

#: Shorter ones stand in any text by chance.
_SHORTEST_SURFACE = 3


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk with its result under the older schema."""

    text_hash: str
    text: str
    result: ChunkExtraction


class Touch:
    """Tells touched chunks from the others, for one step from an older schema to a newer.

    Args:
        new_types: what the newer schema has beyond the older.
        similarity: the bound of the third sign.
        seen: texts in which a new type was seen, by kind and name; a few dozen will do.
        share: of the seen texts, those that must reach the bound; it falls for them.
    """

    def __init__(
        self,
        new_types: Sequence[NewType],
        evidence: TypeEvidence,
        embedder: TextEmbedder,
        similarity: float,
        seen: Mapping[tuple[str, str], Sequence[str]],
        share: float,
    ) -> None:
        # Entity types first: what they touch may have ends of the new relation types.
        self._types = sorted(new_types, key=lambda each: each.kind != "entity")
        self._evidence = evidence
        self._signs = [_word_signs(evidence.traces(each.kind, each.name)) for each in self._types]
        self._embedder = embedder
        texts = [type_text(each.name, each.description) for each in self._types]
        self._vectors = embedder.encode(texts) if texts else np.zeros((0, 0), np.float32)
        self._bounds = np.full(len(texts), similarity)
        for place, each in enumerate(self._types if share else ()):
            if known := seen.get((each.kind, each.name)):
                likeness = embedder.encode(known) @ self._vectors[place]
                self._bounds[place] = fallen_bound(similarity, likeness, share)

    def touched(self, chunks: Sequence[StoredChunk]) -> list[bool]:
        if not chunks or not self._types:
            return [False] * len(chunks)
        likeness = self._embedder.encode([chunk.text for chunk in chunks]) @ self._vectors.T
        hashes = {chunk.text_hash for chunk in chunks}
        seen = [self._evidence.seen_in(each.kind, each.name, hashes) for each in self._types]
        return [
            self._is_touched(chunk, likeness[row] >= self._bounds, seen) for row, chunk in enumerate(chunks)
        ]

    def _is_touched(self, chunk: StoredChunk, alike: Sequence[bool], seen: Sequence[Collection[str]]) -> bool:
        stems = {stem(word) for word in name_words(chunk.text)}
        folded = chunk.text.casefold()
        entity_types = {entity.type for entity in chunk.result.entities}
        touched = False
        for place, new in enumerate(self._types):
            if new.kind != "entity" and not _can_have(new, entity_types):
                continue
            if chunk.text_hash in seen[place] or alike[place] or self._signs[place](stems, folded):
                touched = True
                if new.kind == "entity":
                    entity_types.add(new.name)
        return touched


def fallen_bound(bound: float, likeness: NDArray[np.float32], share: float) -> float:
    """The bound, or the highest that so large a share of these likenesses reaches."""
    number = max(1, math.ceil(share * len(likeness) - 1e-9))  # the product has a rounding error
    return min(bound, float(np.sort(likeness)[-number]))


def _can_have(new: NewType, entity_types: Collection[str]) -> bool:
    sides = (new.heads, new.tails) if new.kind == "relation" else (new.heads,)
    return all(not side.isdisjoint(entity_types) for side in sides)


def _word_signs(traces: TypeTraces) -> Callable[[Collection[str], str], bool]:
    """Whether a name of the type, in any form, or a thing of it stands in a text."""
    names = [frozenset(stem(word) for word in name_words(name)) for name in traces.names]
    unspaced = [name.casefold() for name in traces.names if not name.isascii()]
    surfaces = [" ".join(surface.casefold().split()) for surface in traces.surfaces]
    surfaces = [surface for surface in surfaces if len(surface) >= _SHORTEST_SURFACE]

    def stand_in(stems: Collection[str], folded: str) -> bool:
        if any(name and all(each in stems for each in name) for name in names):
            return True
        return any(text in folded for text in (*unspaced, *surfaces))

    return stand_in
