"""BM25 over chunks and over entity names, in `lexical/<kind>/`."""

from __future__ import annotations

import array
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.errors import StoreError
from hornbeam.index.mapped_arrays import map_arrays, save_arrays
from hornbeam.index.tokens import tokenise
from hornbeam.store.damage import reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Names of the indexes, one folder each.
LEXICAL_KINDS = ("chunks", "entities")
#: Distinct words of one query; of a longer one the rarest count.
MAX_QUERY_TOKENS = 256

#: One row in so many is looked at for a bound of the best scores.
_SAMPLED = 16

_DESCRIPTION = "index.json"
#: What an index that follows this one takes over: the words of every row.
_WORDS = "words.npz"
_VOCABULARY = "vocab.index.json"
_K1, _B = 1.5, 0.75


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """BM25 (Lucene's variant, k1 1.5, b 0.75) over rows 0..rows-1 of a table; memory-mapped."""

    rows: int
    bm25: Any  # bm25s.BM25; None when no row has a token

    @staticmethod
    def open(directory: Path) -> LexicalIndex:
        """Raises StoreError when a file of it is missing or damaged."""
        with reading(directory / _DESCRIPTION):
            description = json.loads((directory / _DESCRIPTION).read_text("utf-8"))
            rows, tokens = int(description["rows"]), int(description["tokens"])
        if not tokens:
            return LexicalIndex(rows=rows, bm25=None)
        import bm25s

        with reading(directory):
            return LexicalIndex(rows=rows, bm25=bm25s.BM25.load(directory, mmap=True))

    def idf_of(self, frequency: int) -> float:
        """log(1 + (N − n + 0.5) / (n + 0.5)) of a token that n of the N rows have."""
        return math.log1p((self.rows - frequency + 0.5) / (frequency + 0.5))

    def idf(self, token: str) -> float:
        """`idf_of` the number of rows that have the token: 0 for one that is unknown."""
        frequency = 0
        if self.bm25 is not None and (token_id := self.bm25.vocab_dict.get(token)) is not None:
            pointers = self.bm25.scores["indptr"]
            frequency = int(pointers[token_id + 1]) - int(pointers[token_id])
        return self.idf_of(frequency)

    def search(self, tokens: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best `k` rows that share a token with the query, best first, ties by row.

        Scores are divided by the most that a row could reach: Σ idf over the query's distinct tokens, those
        that no row has included. So they lie in [0, 1), compare between questions, and stay low for a
        question about things that are not here.

        Returns:
            rows, int64 [≤ k], and scores, float32 [≤ k].
        """
        weights, known = self._query(tokens)
        if not known or k < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        scores: NDArray[np.float32] = self.bm25.get_scores(known)  # [rows]
        found = np.flatnonzero(scores > _bound(scores, k))
        if len(found) > k:
            # Everything that ties with the k-th stays in, so that the choice among ties is by row.
            threshold = np.partition(scores[found], len(found) - k)[len(found) - k]
            found = found[scores[found] >= threshold]
        order = np.lexsort((found, -scores[found]))[:k]
        rows = found[order].astype(np.int64)
        return rows, (scores[rows] / np.float32(sum(weights.values()))).astype(np.float32)

    def scores_of(self, tokens: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of `rows` [m] on the scale of `search`, float32 [m]; 0 where no token is shared."""
        weights, known = self._query(tokens)
        scores = np.zeros(len(rows), np.float32)
        for token in known if len(rows) else ():
            start, stop = self.bm25.scores["indptr"][self.bm25.vocab_dict[token] :][:2]
            holders = self.bm25.scores["indices"][start:stop]  # ascending
            places = np.minimum(np.searchsorted(holders, rows), len(holders) - 1)
            scores += np.where(holders[places] == rows, self.bm25.scores["data"][start:stop][places], 0.0)
        return scores / np.float32(sum(weights.values())) if known else scores

    def _query(self, tokens: Sequence[str]) -> tuple[dict[str, float], list[str]]:
        """The idf of the query's distinct tokens, the rarest few hundred of them; those that a row has."""
        weights = {token: self.idf(token) for token in dict.fromkeys(tokens)}
        if len(weights) > MAX_QUERY_TOKENS:
            rarest = sorted(weights, key=lambda token: (-weights[token], token))[:MAX_QUERY_TOKENS]
            weights = {token: weights[token] for token in rarest}
        return weights, [
            token for token in weights if self.bm25 is not None and token in self.bm25.vocab_dict
        ]


def _bound(scores: NDArray[np.float32], k: int) -> np.float32:
    """A score that at least `k` rows are above, or 0: a common word is in every row, few of them matter.

    The k-th of every 16th row, less a hair so that its equals stay in.
    """
    some = scores[::_SAMPLED]
    if len(some) <= k:
        return np.float32(0)
    kth = np.partition(some, len(some) - k)[len(some) - k]
    return max(np.nextafter(kth, np.float32(-1)), np.float32(0))


def build_lexical(texts: Iterable[str], directory: Path) -> int:
    """Index `texts` (row i is the i-th) and write it; returns the number of rows.

    Streams over the texts; memory is 4 bytes a token and 40 bytes a distinct (row, token) pair. Token ids
    are given in order of first appearance, so the files depend on the texts alone.
    """
    words = _Words({}, array.array("i"), array.array("q", [0]))
    for text in texts:
        words.add(text)
    ids, starts = np.asarray(words.ids, np.int32), np.asarray(words.starts, np.int64)
    return _write_lexical(list(words.vocabulary), ids, starts, directory)


def has_words(directory: Path) -> bool:
    """Whether an index can be followed by another one (`update_lexical`): those of before could not."""
    return (directory / _WORDS).is_file()


def update_lexical(
    before: NDArray[np.int64],
    texts: Callable[[NDArray[np.int64]], Iterable[str]],
    parent: Path,
    directory: Path,
) -> int:
    """`build_lexical` of texts most of which another index has: the same files, and only new texts are read.

    Args:
        before: int64 [rows now], the row of `parent` with this text, −1 where it has none.
        texts: of the rows that it is given, in their order.
        parent: directory of that index.

    Raises:
        StoreError: the index cannot be read or has no such row.
    """
    vocabulary, ids, starts = _read_words(parent)
    if before.max(initial=-1) >= len(starts) - 1:
        raise StoreError(
            f"lexical index {parent}: {len(starts) - 1} rows where the table has row {before.max()}; "
            "rebuild the version's indexes"
        )
    words = _Words(vocabulary, array.array("i"), array.array("q", [0]))
    missing = np.flatnonzero(before < 0)
    for text in texts(missing):
        words.add(text)
    # The rows of both, one after the other, and for each row of now its place among them.
    place = before.copy()
    place[missing] = len(starts) - 1 + np.arange(len(missing))
    all_ids = np.concatenate((ids, np.asarray(words.ids, np.int32)))
    all_starts = np.concatenate((starts, starts[-1] + np.asarray(words.starts, np.int64)[1:]))
    lengths = all_starts[place + 1] - all_starts[place]
    now = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    taken = all_ids[np.arange(now[-1]) + np.repeat(all_starts[place] - now[:-1], lengths)]
    # Numbered anew, by first appearance.
    first = np.full(len(words.vocabulary), len(taken), np.int64)
    np.minimum.at(first, taken, np.arange(len(taken)))
    order = np.argsort(first, kind="stable")[: int((first < len(taken)).sum())]
    number = np.empty(len(first), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    names = list(words.vocabulary)
    return _write_lexical([names[token] for token in order.tolist()], number[taken], now, directory)


@dataclass(slots=True)
class _Words:
    """The tokens of texts by number, one text after the other."""

    vocabulary: dict[str, int]
    ids: array.array[int]
    starts: array.array[int]  # of each text among the ids, and the end of the last

    def add(self, text: str) -> None:
        vocabulary = self.vocabulary
        self.ids.extend([vocabulary.setdefault(token, len(vocabulary)) for token in tokenise(text)])
        self.starts.append(len(self.ids))


def _read_words(directory: Path) -> tuple[dict[str, int], NDArray[np.int32], NDArray[np.int64]]:
    vocabulary: dict[str, int] = {}
    with reading(directory / _WORDS):
        arrays = map_arrays(directory / _WORDS)
        ids, starts = arrays["ids"], arrays["starts"]
    if len(ids):
        with reading(directory / _VOCABULARY):
            vocabulary = json.loads((directory / _VOCABULARY).read_text("utf-8"))
    return vocabulary, ids, starts


def _write_lexical(
    vocabulary: Sequence[str], ids: NDArray[np.int32], starts: NDArray[np.int64], directory: Path
) -> int:
    """Write the index of rows whose tokens are ids[starts[row] : starts[row + 1]]; returns their number."""
    rows = len(starts) - 1
    directory.mkdir(parents=True, exist_ok=True)
    if vocabulary:
        import bm25s

        # bm25s would pick Numba where it happens to be installed: seconds of compilation for no gain here.
        bm25: Any = bm25s.BM25(method="lucene", k1=_K1, b=_B, backend="numpy", csc_backend="scipy")
        bm25.vocab_dict = {token: number for number, token in enumerate(vocabulary)}
        bm25.nonoccurrence_array = None
        bm25.scores = _scores(ids, starts, len(vocabulary))
        bm25.save(directory, show_progress=False)
    save_arrays(directory / _WORDS, ids=ids.astype(np.int32), starts=starts.astype(np.int64))
    (directory / _DESCRIPTION).write_text(json.dumps({"rows": rows, "tokens": len(ids)}), "utf-8")
    return rows


def _scores(ids: NDArray[np.int32], starts: NDArray[np.int64], words: int) -> dict[str, Any]:
    """Columns of words over rows as `bm25s` makes them, without its steps of Python for every row.

    idf · f / (f + k1 · (1 − b + b · length / mean length)), f the times that a row has the word (Lucene's
    form of Robertson and Walker's BM25; Kamphuis et al. 2020).
    """
    rows = len(starts) - 1
    lengths = np.diff(starts)
    pairs, times = np.unique(
        ids.astype(np.int64) * rows + np.repeat(np.arange(rows), lengths), return_counts=True
    )
    word, row = pairs // rows, pairs % rows
    frequency = np.bincount(word, minlength=words)
    idf = np.array([math.log(1 + (rows - n + 0.5) / (n + 0.5)) for n in frequency.tolist()], np.float32)
    saturation = times.astype(np.float32) / (
        _K1 * ((1 - _B) + _B * lengths / lengths.mean())[row] + times.astype(np.float32)
    )
    return {
        "data": (idf[word] * saturation).astype(np.float32),
        "indices": row.astype(np.int32),
        "indptr": np.concatenate((np.zeros(1, np.int32), np.cumsum(frequency).astype(np.int32))),
        "num_docs": rows,
    }
