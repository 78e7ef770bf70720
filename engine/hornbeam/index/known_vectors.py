"""An embedder that takes from an earlier version the vectors of the texts that it has.

A vector depends on its text alone, up to the last bit: which texts are encoded side by side moves it by some
1e-7. So a version whose vectors are partly taken over is not the one, byte for byte, that embeds everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.index.build import VersionTexts
from hornbeam.index.embedder import TextEmbedder
from hornbeam.index.vectors import VECTOR_KINDS, VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 65_536
_DIGEST = np.dtype([("first", np.uint64), ("second", np.uint64)])


class KnownVectors:
    """A `TextEmbedder` over another one. Memory: 24 bytes for each vector of the version.

    Args:
        embedder: the one that the version's vectors were made with.
        version_directory: an indexed version.

    Attributes:
        reused: texts whose vector was taken over; `encoded`: those that were not there.
    """

    def __init__(self, embedder: TextEmbedder, version_directory: Path) -> None:
        self._embedder = embedder
        self.reused = self.encoded = 0
        texts = VersionTexts(version_directory)
        streams = {
            "entities": texts.entity_texts,
            "triples": texts.triple_texts,
            "chunks": texts.chunks_texts,
            "communities": texts.community_texts,
        }
        rows = {
            "entities": len(texts.entities),
            "triples": len(texts.relations),
            "chunks": len(texts.chunks),
            "communities": len(texts.communities),
        }
        self._indexes = [
            VectorIndex.open(version_directory / "vectors" / f"{kind}.faiss", rows[kind], embedder.dimension)
            for kind in VECTOR_KINDS
        ]
        digests = [np.concatenate(list(_digests(streams[kind]()))) for kind in VECTOR_KINDS]
        starts = np.cumsum([0, *(len(some) for some in digests)])
        self._starts: NDArray[np.int64] = starts
        together = np.concatenate(digests)
        self._order = np.argsort(together["first"], kind="stable")
        self._sorted: NDArray[np.void] = together[self._order]

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        places = self._places(texts)
        for number, index in enumerate(self._indexes):
            inside = (places >= self._starts[number]) & (places < self._starts[number + 1])
            if inside.any():
                vectors[inside] = index.rows(places[inside] - self._starts[number])
        missing = np.flatnonzero(places < 0)
        if len(missing):
            vectors[missing] = self._embedder.encode(
                [texts[row] for row in missing.tolist()], batch_size=batch_size
            )
        self.encoded += len(missing)
        self.reused += len(texts) - len(missing)
        return vectors

    def encode_question(self, text: str) -> NDArray[np.float32]:
        return self._embedder.encode_question(text)

    def _places(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Where each text's vector lies among all of the version, −1 where it has none."""
        if not len(self._sorted) or not texts:
            return np.full(len(texts), -1, np.int64)
        asked = np.concatenate(list(_digests(iter(texts))))
        at = np.searchsorted(self._sorted["first"], asked["first"])
        at = np.minimum(at, len(self._sorted) - 1)
        places: NDArray[np.int64] = np.where(self._sorted[at] == asked, self._order[at], -1)
        return places


def _digests(texts: Iterator[str]) -> Iterator[NDArray[np.void]]:
    yield np.empty(0, _DIGEST)
    while block := list(islice(texts, _BLOCK)):
        joined = b"".join(
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in block
        )
        yield np.frombuffer(joined, _DIGEST)
