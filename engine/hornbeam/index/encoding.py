"""The vectors of texts, in the order of their rows: each distinct text is encoded once, and only what an
earlier version does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.index.embedder import TextEmbedder
from hornbeam.index.vectors import VectorIndex, mapped_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Texts encoded at once: enough to sort by length, few enough to bound the memory and to tell of progress.
_ENCODE_BLOCK = 1024
#: Rows whose vectors are given out at once.
_ROWS_AT_ONCE = 16_384

#: The texts of a kind: of the rows that it is given, ascending, or all of them.
Texts = Callable[["NDArray[np.int64] | None"], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encodes rows of a table by their texts.

    Args:
        texts: read twice: facts that share a sentence are found first.
        scratch: file for the vectors of distinct texts, while they are given out.
        on_encoded: told of rows as they are done.
    """

    texts: Texts
    embedder: TextEmbedder
    batch_size: int
    scratch: Path
    on_encoded: Callable[[int], None]

    def of(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
        """The vectors of `rows` [n], ascending: batches [b, d] in their order."""
        first, number = _distinct(self.texts(rows), len(rows))
        if len(first) == len(rows):
            yield from self._encoded(rows)
            return
        with mapped_rows(self.scratch, len(first), self.embedder.dimension) as vectors:
            done = 0
            for batch in self._encoded(rows[first]):
                vectors[done : done + len(batch)] = batch
                done += len(batch)
            self.on_encoded(len(rows) - len(first))
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                yield vectors[number[start : start + _ROWS_AT_ONCE]]

    def beside(self, before: NDArray[np.int64], earlier: VectorIndex) -> Iterator[NDArray[np.float32]]:
        """The vectors of all rows: of `earlier` where `before` [n] says which, −1: encoded."""
        missing = np.flatnonzero(before < 0)
        new = np.concatenate([np.zeros((0, self.embedder.dimension), np.float32), *self.of(missing)])
        for start in range(0, len(before), _ROWS_AT_ONCE):
            some = before[start : start + _ROWS_AT_ONCE]
            there = some >= 0
            vectors = np.empty((len(some), self.embedder.dimension), np.float32)
            vectors[there] = earlier.rows(some[there])
            first = int(np.searchsorted(missing, start))
            vectors[~there] = new[first : first + int((~there).sum())]
            yield vectors
            self.on_encoded(int(there.sum()))

    def _encoded(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
        texts = self.texts(rows)
        while block := list(islice(texts, _ENCODE_BLOCK)):
            yield self.embedder.encode(block, batch_size=self.batch_size)
            self.on_encoded(len(block))


def _distinct(texts: Iterator[str], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of `count` texts: where each distinct one comes first, ascending, and of every text which one it is."""
    digests = np.empty(count, "S16")
    for place, text in enumerate(texts):
        digests[place] = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    _, first, number = np.unique(digests, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[number]
