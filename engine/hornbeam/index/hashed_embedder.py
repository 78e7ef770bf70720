"""Text → unit vectors without a model: hashed character n-grams.

It tells spelling apart, not meaning: "Warsaw" is near "Warsaw University" and as far from "Poland" as from
anything else. For graphs of hundreds of thousands of names, where a language model's vectors would take hours
on a CPU; communities and rankings then rest on the links.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.index.embedder import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "hashed-ngrams"
#: Raise when the vectors change.
_VERSION = "1"
_DIMENSION = 128
_LENGTHS = (3, 4, 5)
#: Texts hashed together: the arrays for some thousand characters each, a few times over.
_TEXTS_AT_ONCE = 2048
#: Of a longer text.
_MAX_CHARACTERS = 4096
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class HashedEmbedder:
    """Signed feature hashing (Weinberger et al., 2009) of the character 3-, 4- and 5-grams of each word.

    Words are case folded and padded with blanks, so that their beginnings and ends count; every n-gram adds
    ±1 to one of the dimensions. Needs no files, gives the same vectors everywhere.
    """

    name = NAME
    dimension = _DIMENSION
    fingerprint = f"{NAME}-{_DIMENSION}-v{_VERSION}"
    #: It is a blurred count of shared words: BM25 says the same better. See bench/RESULTS.md.
    meaning = 0.03

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        """Unit rows, float32 [len(texts), 128]; the zero row for a text without letters. `batch_size` is for
        models and has no effect."""
        rows = np.zeros((len(texts), _DIMENSION), np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = texts[start : start + _TEXTS_AT_ONCE]
            rows[start : start + len(some)] = _hashed(some)
        return rows

    def encode_question(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encode([text])[0]
        return vector


def _hashed(texts: Sequence[str]) -> NDArray[np.float32]:
    padded = [_padded(text) for text in texts]
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    lengths = np.fromiter(map(len, padded), np.int64, len(padded))
    owner = np.repeat(np.arange(len(texts)), lengths)
    blank = codes == np.uint64(ord(" "))
    sums = np.zeros(len(texts) * _DIMENSION)
    for n in _LENGTHS:
        count = len(codes) - n + 1
        if count < 1:
            continue
        grams = np.zeros(count, np.uint64)
        inside = owner[:count] == owner[n - 1 :]
        for place in range(n):
            grams = grams * _MULTIPLIER + codes[place : place + count]
            if 0 < place < n - 1:
                inside &= ~blank[place : place + count]  # of one word: blanks only at its ends
        grams ^= grams >> np.uint64(29)
        grams *= _MULTIPLIER
        grams ^= grams >> np.uint64(32)
        grams = grams[inside]
        cell = owner[:count][inside] * _DIMENSION + (grams % np.uint64(_DIMENSION)).astype(np.int64)
        sign = np.where((grams >> np.uint64(40)) & np.uint64(1), 1.0, -1.0)
        sums += np.bincount(cell, weights=sign, minlength=len(sums))
    return unit_rows(sums.reshape(len(texts), _DIMENSION).astype(np.float32))


def _padded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text[:_MAX_CHARACTERS]).casefold().replace("_", " ")
    return f" {' '.join(folded.split())} "
