"""Training texts that a test set would recognise: the same ones and near-duplicates.

A text leaks when most of its word runs stand in one test text, or most of that text's in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import regex

#: Words of a run.
_RUN = 4
#: Share of the runs of the shorter text that both have, from which on one is a copy of the other.
COPY = 0.6

_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{N}]+")


class TestTexts:
    """The texts that a model is to be measured on."""

    __test__ = False  # no test, whatever its name

    def __init__(self, texts: Iterable[str]) -> None:
        self._holders: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
        self._sizes: list[int] = []
        for number, text in enumerate(texts):
            runs = _runs(text)
            self._sizes.append(len(runs))
            for run in runs:
                self._holders[run].add(number)

    def holds_copy_of(self, text: str) -> bool:
        runs = _runs(text)
        shared = Counter(number for run in runs for number in self._holders.get(run, ()))
        return any(count >= COPY * min(len(runs), self._sizes[number]) for number, count in shared.items())


def without_copies(texts: Sequence[str], tests: TestTexts) -> list[bool]:
    """For each text whether it may be trained on."""
    return [not tests.holds_copy_of(text) for text in texts]


def _runs(text: str) -> set[tuple[str, ...]]:
    """Of a text shorter than a run, all its words."""
    words = [word.casefold() for word in _WORD.findall(text)]
    return {tuple(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))}
