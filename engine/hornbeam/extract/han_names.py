"""Names in a script without capitals and blanks, learned from the ends of known facts.

What stands around the edges of known names tells where others begin and end: 股份 before an edge closes a
company, 的 does not. Of every place between two characters two naive Bayes models say how likely a name
begins or ends there, from the two characters on each side and their pairs. A span is as likely as that a name
begins at its start, ends at its end and does neither inside: log P is the sum.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import regex

from hornbeam.grammar.spans import SpanLexicon, Word

_HAN = regex.compile(r"\p{Han}")
#: Known names of the script below which nothing is learned: a handful tells of itself alone.
_LEAST_NAMES = 20
#: Known sentences that are learned from, spread evenly, at most.
_MOST_SENTENCES = 2000
#: Spans of a text: one in so many characters, and at least.
_CHARACTERS_A_SPAN, _LEAST_SPANS = 6, 8
#: A span less likely than the likeliest by more than this factor is none.
_LEAST_SHARE = 1e-4
#: Occurrences that a feature without any is given, at the share of edges among all places.
_PRIOR = 1.0
#: No edge is more certain, to be one or none.
_MOST = 0.97
#: The features of a place say the same thing more than once; their sum counts as of so many fewer.
_REPETITION = 2.5


def in_han(text: str) -> bool:
    """Most of its letters are Han characters."""
    letters = sum(character.isalpha() for character in text)
    return letters > 0 and 2 * len(_HAN.findall(text)) > letters


class HanNames:
    """Where names in Han characters begin and end.

    Args:
        sentences: a text and the names in it, as the text writes them.
        max_words: of a name; of unspaced characters two a word.
    """

    def __init__(self, sentences: Iterable[tuple[str, Sequence[str]]], max_words: int) -> None:
        self._max_words = max_words
        some = [one for one in sentences if _HAN.search(one[0])]
        self._places = 0
        self._seen: Counter[str] = Counter()
        self._edges = (Counter[str](), Counter[str]())  # of places where a name begins, and where one ends
        self._names = 0
        for text, names in some[:: max(1, math.ceil(len(some) / _MOST_SENTENCES))]:
            self._learn(text, names)

    def _learn(self, text: str, names: Sequence[str]) -> None:
        words = SpanLexicon(text, self._max_words).words
        starts = {word.start: index for index, word in enumerate(words)}
        ends = {word.end: index + 1 for index, word in enumerate(words)}
        edges: tuple[set[int], set[int]] = (set(), set())
        for name in names:
            for place in _occurrences(text, name):
                if _HAN.search(name) and place in starts and place + len(name) in ends:
                    edges[0].add(starts[place])
                    edges[1].add(ends[place + len(name)])
                    self._names += 1
        for place in range(len(words) + 1):
            features = _features(words, place)
            self._places += 1
            self._seen.update(features)
            for known, here in zip(self._edges, edges, strict=True):
                if place in here:
                    known.update(features)
                    known["all"] += 1

    def spans(self, lexicon: SpanLexicon) -> list[tuple[int, int]]:
        """The likeliest spans of a text, in characters, the likeliest first; every written form at its
        likeliest place. None where too little is known, or nothing is written in Han characters."""
        words = lexicon.words
        if self._names < _LEAST_NAMES or not _HAN.search(lexicon.text):
            return []
        places = range(len(words) + 1)
        begins, ends = ([self._probability(side, words, place) for place in places] for side in (0, 1))
        inside = [0.0]  # log P(no edge at any place before)
        for begin, end in zip(begins, ends, strict=True):
            inside.append(inside[-1] + math.log1p(-begin) + math.log1p(-end))
        best: dict[str, tuple[float, int, int]] = {}
        for clause in lexicon.clauses():
            for first in clause:
                for last in range(first, min(clause.stop, first + 2 * self._max_words)):
                    start, stop = words[first].start, words[last].end
                    edges = math.log(begins[first]) + math.log(ends[last + 1])
                    score = edges + inside[last + 1] - inside[first + 1]
                    form = lexicon.text[start:stop]
                    if form not in best or score > best[form][0]:
                        best[form] = (score, start, stop)
        ranked = sorted(
            (one for form, one in best.items() if _HAN.search(form)), key=lambda one: (-one[0], one[1:])
        )
        most = max(_LEAST_SPANS, len(words) // _CHARACTERS_A_SPAN)
        least = ranked[0][0] + math.log(_LEAST_SHARE) if ranked else 0.0
        return [(start, end) for score, start, end in ranked[:most] if score >= least]

    def _probability(self, side: int, words: Sequence[Word], place: int) -> float:
        """Of an edge; neither 0 nor 1."""
        known = self._edges[side]
        base = known["all"] / self._places
        total = math.log(base / (1 - base))
        for feature in _features(words, place):
            share = (known[feature] + _PRIOR * base) / (self._seen[feature] + _PRIOR)
            total += math.log(share / base) / _REPETITION
        return min(_MOST, max(1 - _MOST, 1 / (1 + math.exp(-total))))


def _occurrences(text: str, name: str) -> Iterable[int]:
    place = text.find(name) if name else -1
    while place >= 0:
        yield place
        place = text.find(name, place + 1)


def _features(words: Sequence[Word], place: int) -> tuple[str, ...]:
    """Of the place before a word, or behind the last."""

    def word(offset: int) -> str:
        index = place + offset
        return words[index].text if 0 <= index < len(words) else ""

    before, last, next_, after = word(-2), word(-1), word(0), word(1)
    return (
        f"-2 {before}", f"-1 {last}", f"+1 {next_}", f"+2 {after}",
        f"-2-1 {before} {last}", f"-1+1 {last} {next_}", f"+1+2 {next_} {after}",
    )  # fmt: skip
