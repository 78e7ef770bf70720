"""What guided extraction asks about at once: sentences, short ones together; halves of what is too long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hornbeam.corpus.boundaries import Boundary, segment
from hornbeam.extract.ladder import Piece
from hornbeam.grammar.spans import SpanLexicon

#: A place in a chunk and the text that stands there, without white space around it.
Passage = tuple[int, str]

#: Sentences of a paragraph that together are no longer are asked about at once.
_CHARACTERS_AT_ONCE = 400


@dataclass(frozen=True, slots=True)
class FittingPassages:
    passages: list[Passage]
    halvings: int  # that it took
    too_long: list[Passage]  # of one word that does not fit


def passages_of(text: str) -> list[Passage]:
    """Sentences, short ones of a paragraph together, since the second often says "it" of what the first
    names."""
    places: list[tuple[int, int]] = []
    for unit in segment(text):
        if places and unit.opens is Boundary.SENTENCE and unit.end - places[-1][0] <= _CHARACTERS_AT_ONCE:
            places[-1] = (places[-1][0], unit.end)
        else:
            places.append((unit.start, unit.end))
    return _stripped((start, text[start:end]) for start, end in places)


def fitting_passages(text: str, fits: Callable[[str], bool], max_words: int) -> FittingPassages:
    """The passages of a text, those that do not fit halved until they do, in text order.

    Args:
        fits: whether a passage leaves room for what else belongs to a call.
        max_words: of a name.
    """
    waiting = passages_of(text)[::-1]
    found = FittingPassages([], 0, [])
    halvings = 0
    while waiting:
        passage = waiting.pop()
        if fits(passage[1]):
            found.passages.append(passage)
        elif halves := halves_of(passage, max_words):
            halvings += 1
            waiting += halves[::-1]
        else:
            found.too_long.append(passage)
    return FittingPassages(found.passages, halvings, found.too_long)


def halves_of(passage: Passage, max_words: int) -> list[Passage]:
    """Two passages in place of one, cut between clauses or else words; none of a single word."""
    start, text = passage
    halves = Piece(start, SpanLexicon(text, max_words)).halves()
    return _stripped((half.start, half.lexicon.text) for half in halves)


def _stripped(passages: Iterable[Passage]) -> list[Passage]:
    return [
        (start + len(written) - len(written.lstrip()), stripped)
        for start, written in passages
        if (stripped := written.strip())
    ]
