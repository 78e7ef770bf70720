"""Spans of a sentence that can be an end of a fact: names, phrases, numbers, dates.

    name     a run of words with a capital, with the particles between them; two runs that only a comma parts
             are a third one ("Gdynia, Poland"); in scripts without capitals, what `noun_spans` finds
    phrase   up to five words between function words and marks ("punk blues")
    number, date, year    as `grammar.values` reads them; a year can be either

Where a text gives a name, the sentence without it is its *frame*: "X was born in X on DATE". Sentences that
say the same things of other things have the same frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import regex

from hornbeam.extract.function_words import FUNCTION_WORDS, PARTICLES
from hornbeam.extract.han_names import HanNames
from hornbeam.extract.noun_spans import noun_spans
from hornbeam.grammar.spans import SpanLexicon, Word
from hornbeam.grammar.values import value_spans

Kind = Literal["name", "phrase", "number", "date", "year"]

_YEAR = regex.compile(r"(?:1[0-9]|20)\p{Nd}{2}")
_DIGITS = regex.compile(r"[\p{Nd}.,]+")
_LONGEST_PHRASE = 5
_PARTICIPLES = frozenset(
    {"born", "built", "found", "given", "held", "known", "led", "made", "part", "won", "written"}
)
_IN_FRAMES = {"name": "X", "number": "number", "date": "date", "year": "date"}


@dataclass(frozen=True, slots=True)
class ArgumentSpan:
    start: int  # characters of the text
    end: int
    text: str  # written form: white space as single blanks
    kind: Kind


def argument_spans(text: str, max_words: int, learned: HanNames | None = None) -> list[ArgumentSpan]:
    """The spans in text order, each place once; spans may overlap. Linear in the text.

    Args:
        max_words: of a name.
        learned: tells names in a script without capitals; None: those that come back or stand in marks.
    """
    lexicon = SpanLexicon(text, max_words)
    found: dict[tuple[int, int], Kind] = {}
    for kind in ("date", "number"):
        for places in value_spans(text, kind).values():
            for start, end in places:
                found.setdefault((start, end), _value_kind(text[start:end], kind))
    for start, end in _names(lexicon, max_words):
        found.setdefault((start, end), "number" if _DIGITS.fullmatch(text[start:end]) else "name")
    for place in learned.spans(lexicon) if learned is not None else ():
        found.setdefault(place, "name")
    names = sorted(place for place, kind in found.items() if kind == "name")
    for (start, end), (following, last) in pairwise(names):
        if text[end:following] == ", ":
            found.setdefault((start, last), "name")
    for start, end in _phrases(lexicon):
        if not any(start < e and s < end for s, e in names):
            found.setdefault((start, end), "phrase")
    kept = [place for place, kind in found.items() if not _part_of_value(place, kind, found)]
    return [
        ArgumentSpan(start, end, " ".join(text[start:end].split()), found[start, end])
        for start, end in sorted(kept)
    ]


def frame(text: str, spans: Sequence[ArgumentSpan]) -> str:
    """The text with every name, number and date replaced by what it is; phrases stay."""
    parts, position = [], 0
    for span in spans:
        if span.kind in _IN_FRAMES and span.start >= position:
            parts += [text[position : span.start], _IN_FRAMES[span.kind]]
            position = span.end
    return "".join([*parts, text[position:]])


def _value_kind(value: str, kind: str) -> Kind:
    if _YEAR.fullmatch(value):
        return "year"
    return "number" if _DIGITS.fullmatch(value) or kind == "number" else "date"


def _part_of_value(place: tuple[int, int], kind: Kind, found: dict[tuple[int, int], Kind]) -> bool:
    """The July of "July 10, 1989", the 747 of "Boeing 747"."""
    holders = ("date",) if kind in ("name", "phrase", "date") else ("date", "number", "name")
    return any(
        other != place and other[0] <= place[0] and place[1] <= other[1] and found[other] in holders
        for other in found
    )


def _names(lexicon: SpanLexicon, max_words: int) -> Iterator[tuple[int, int]]:
    words = lexicon.words
    for clause in lexicon.clauses():
        index = clause.start
        while index < clause.stop:
            if not _opens_name(words, index):
                index += 1
                continue
            last = _last_of_name(words, index, min(clause.stop, index + max_words))
            yield words[index].start, words[last].end
            index = last + 1
    for span in noun_spans(lexicon, [0], max_words):
        if not any(character.islower() or character.isupper() for character in span.name):
            yield from span.places  # a script without capitals


def _opens_name(words: Sequence[Word], index: int) -> bool:
    word = words[index]
    if not _capital(word):
        return False
    opens_sentence = index == 0 or words[index - 1].text in ".!?"
    return not (opens_sentence and word.text.casefold() in FUNCTION_WORDS)


def _last_of_name(words: Sequence[Word], first: int, stop: int) -> int:
    last = index = first
    particles = 0
    for index in range(first + 1, stop):
        word = words[index]
        if _capital(word):
            last, particles = index, 0
        elif word.kind != "mark":
            after_figures = words[index - 1].text.isdigit()  # "1964 the City Hall"
            if word.text.casefold() not in PARTICLES or particles == 2 or after_figures:
                break
            particles += 1
        elif word.text == "." and not word.spaced and len(words[index - 1].text) == 1:
            last = index  # an initial closes a name: "F.C."
    return last


def _capital(word: Word) -> bool:
    return word.kind == "word" and (word.text[0].isupper() or word.text[0].isdigit())


def _phrases(lexicon: SpanLexicon) -> Iterator[tuple[int, int]]:
    words = lexicon.words
    for clause in lexicon.clauses():
        run: list[Word] = []
        for index in [*clause, None]:
            word = None if index is None else words[index]
            if word is not None and _in_phrase(word, run):
                run.append(word)
                continue
            while run and run[-1].kind == "mark":
                run.pop()
            if run and len(run) <= _LONGEST_PHRASE and not _participle(run):
                yield run[0].start, run[-1].end
            run = []


def _in_phrase(word: Word, run: Sequence[Word]) -> bool:
    if word.kind == "mark":
        return bool(run) and not word.spaced
    return word.text.casefold() not in FUNCTION_WORDS


def _participle(run: Sequence[Word]) -> bool:
    """A lone "located", "born": says what holds between the ends of a fact and is none."""
    alone = len(run) == 1 and run[0].text.islower()
    return alone and (run[0].text.endswith("ed") or run[0].text in _PARTICIPLES)
