"""Noun-like spans of a text, by shape and repetition alone: what a chunk names, with no model.

    names      runs of words with a capital, with the particles between them; words that mix cases or letters
               and digits; runs of katakana; what stands between 《 and 》
    phrases    two or three lower-case words, and single ones behind articles or prepositions, that come
               back; runs of Han characters that come back in different company

A span is one of the chunk's (`SpanLexicon`), so it is text that stands there. What is found follows from the
text alone, whatever else is in the corpus.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from hornbeam.extract.function_words import (
    EDGE_CHARACTERS,
    FUNCTION_WORDS,
    NOUN_OPENERS,
    PARTICLES,
)
from hornbeam.grammar.spans import SpanLexicon, Word

#: How sure a shape is to be a name. Scores for ranking, not measured probabilities.
LONG_NAME, SHORT_NAME, PHRASE = 0.9, 0.8, 0.6

_HAN = regex.compile(r"\p{Han}")
_KATAKANA = regex.compile(r"[\p{Katakana}ーｰ]")
_LONGEST_HAN = 6
_SHORTEST_WORD = 3  # of a phrase
_SHORTEST_ALONE = 5  # a lower-case word on its own
_TIMES_ALONE = 3
_TIMES = 2
_PHRASE_WORDS = (2, 3)
_APOSTROPHES = frozenset("'’")


@dataclass(frozen=True, slots=True)
class NounSpan:
    """A written form that names something, and every place in the text where it is a span of its own."""

    name: str
    score: float
    places: tuple[tuple[int, int], ...]


def noun_spans(lexicon: SpanLexicon, sentence_starts: Sequence[int], max_words: int) -> list[NounSpan]:
    """The noun-like spans of a text, by first place. Linear in the text.

    Args:
        sentence_starts: offsets, ascending; a capital there says little.
        max_words: of a name.
    """
    found: dict[str, float] = {}
    for name, score in itertools.chain(
        _capitalised(lexicon, sentence_starts, max_words),
        _unspaced_names(lexicon, max_words),
        _phrases(lexicon),
        _lone_words(lexicon),
        _han_phrases(lexicon),
    ):
        found[name] = max(score, found.get(name, 0.0))
    return _placed(lexicon, found)


def _placed(lexicon: SpanLexicon, found: dict[str, float]) -> list[NounSpan]:
    # Longest first, and every character once: "Curie" inside "Marie Curie" is no mention of another Curie. A
    # name may thus have no place left.
    taken = bytearray(len(lexicon.text))
    kept: list[NounSpan] = []
    for name in sorted(found, key=lambda name: (-len(name), name)):
        places = []
        for start, end in lexicon.occurrences(name):
            if not any(taken[start:end]):
                taken[start:end] = b"\x01" * (end - start)
                places.append((start, end))
        if places:
            kept.append(NounSpan(name, found[name], tuple(places)))
    return sorted(kept, key=lambda span: span.places[0])


# Scripts with capital letters.


@dataclass(frozen=True, slots=True)
class _Run:
    first: int  # words
    last: int
    opens: bool  # a sentence begins with it


def _capitalised(
    lexicon: SpanLexicon, sentence_starts: Sequence[int], max_words: int
) -> Iterator[tuple[str, float]]:
    words = lexicon.words
    openers = _first_words(words, sentence_starts)
    runs = [run for clause in lexicon.clauses() for run in _runs(words, clause, openers, max_words)]
    inside = {words[run.first].text for run in runs if not run.opens}
    inside |= {words[index].text for run in runs for index in range(run.first + 1, run.last + 1)}
    times = Counter(words[run.first].text for run in runs)
    lower = {word.text for word in words if word.text.islower()}
    for run in runs:
        if run.opens and not _mixed(words[run.first].text):
            text = words[run.first].text
            attested = text in inside or (times[text] >= _TIMES and text.lower() not in lower)
            if run.first == run.last and not attested:
                continue  # a sentence's first word, no more
            if run.first < run.last and text.lower() in lower and text not in inside:
                run = _Run(_next_word(words, run.first), run.last, opens=False)  # "Today Marie Curie …"
                if run.first > run.last:
                    continue
        yield lexicon.written(run.first, run.last), LONG_NAME if run.last > run.first else SHORT_NAME


def _first_words(words: Sequence[Word], sentence_starts: Sequence[int]) -> set[int]:
    # The first word of each sentence that is no mark. A quotation or a bracket opens one, too.
    first: set[int] = set()
    starts = iter([*sentence_starts, float("inf")])
    upcoming, waiting = next(starts), True
    for index, word in enumerate(words):
        while word.start >= upcoming:
            upcoming, waiting = next(starts), True
        if word.kind == "mark":
            waiting = waiting or word.text in '"“„«‹([:–—•*#'
        elif waiting:
            first.add(index)
            waiting = False
    return first


def _runs(words: Sequence[Word], clause: range, openers: set[int], max_words: int) -> Iterator[_Run]:
    index = clause.start
    while index < clause.stop:
        if not _names(words[index]) or _is_function(words[index]):
            index += 1
            continue
        first = last = index
        while (following := _follows(words, last, clause.stop)) is not None and (
            following - first < max_words
        ):
            last = following
        yield _Run(first, last, first in openers)
        index = last + 1


def _follows(words: Sequence[Word], last: int, stop: int) -> int | None:
    # The word that carries a name on behind word `last`: the next that names, over marks or up to two
    # particles.
    index, particles = last + 1, 0
    while index < stop:
        word = words[index]
        if word.kind == "mark":
            if word.text in _APOSTROPHES and index + 1 < stop and words[index + 1].text in ("s", "S"):
                return None  # a possessive
            if word.spaced and particles == 0 and word.text in "–—":
                return None
        elif word.text in PARTICLES:
            particles += 1
            if particles > 2:
                return None
        elif word.kind == "word" and (_names(word) or word.text.isdigit()) and not _pronoun(word):
            return index if particles == 0 or _names(word) else None
        else:
            return None
        index += 1
    return None


def _next_word(words: Sequence[Word], index: int) -> int:
    index += 1
    while words[index].kind == "mark" or words[index].text in PARTICLES:
        index += 1
    return index


def _names(word: Word) -> bool:
    return word.kind == "word" and (word.text[0].isupper() or _mixed(word.text))


def _mixed(text: str) -> bool:
    """Cases mixed, or letters and digits: "iPhone", "mRNA", "p53", "NASA"."""
    if len(text) < 2 or text.isdigit():
        return False
    letters = any(character.isalpha() for character in text)
    return letters and (
        any(character.isupper() for character in text[1:]) or any(character.isdigit() for character in text)
    )


def _is_function(word: Word) -> bool:
    return word.text.casefold() in FUNCTION_WORDS and not _acronym(word.text)


def _pronoun(word: Word) -> bool:
    return word.text in ("I", "He", "She", "It", "They", "We", "Я", "Он", "Она", "Они", "Мы")


def _acronym(text: str) -> bool:
    return len(text) > 1 and text.isupper()  # "WHO", "IT"


# Phrases in lower case that come back.


def _phrases(lexicon: SpanLexicon) -> Iterator[tuple[str, float]]:
    times: Counter[str] = Counter()
    for clause in lexicon.clauses():
        for start in clause:
            for length in _PHRASE_WORDS:
                stop = start + length
                if stop <= clause.stop and all(_content(word) for word in lexicon.words[start:stop]):
                    times[lexicon.written(start, stop - 1)] += 1
    repeated = {phrase: count for phrase, count in times.items() if count >= _TIMES}
    longer = {
        part: count
        for phrase, count in repeated.items()
        for part in (phrase.partition(" ")[2], phrase.rpartition(" ")[0])
    }
    for phrase, count in repeated.items():
        if longer.get(phrase, 0) < count:  # else it never stands without its third word
            yield phrase, PHRASE


def _lone_words(lexicon: SpanLexicon) -> Iterator[tuple[str, float]]:
    words = lexicon.words
    times: Counter[str] = Counter()
    opened: Counter[str] = Counter()
    for index, word in enumerate(words):
        if _content(word) and len(word.text) >= _SHORTEST_ALONE:
            times[word.text] += 1
            opened[word.text] += index > 0 and words[index - 1].text.casefold() in NOUN_OPENERS
    for text, count in times.items():
        if count >= _TIMES_ALONE and opened[text] >= _TIMES:
            yield text, PHRASE


def _content(word: Word) -> bool:
    return (
        word.kind == "word"
        and len(word.text) >= _SHORTEST_WORD
        and word.text.isalpha()
        and word.text.islower()
        and word.text not in FUNCTION_WORDS
    )


# Scripts without spaces and capitals.


def _unspaced_names(lexicon: SpanLexicon, max_words: int) -> Iterator[tuple[str, float]]:
    # Katakana writes names and foreign words; 《》 titles.
    for run in _same_kind(lexicon, _KATAKANA):
        if 2 <= len(run) <= 2 * max_words:
            yield lexicon.written(run.start, run.stop - 1), SHORT_NAME
    words = lexicon.words
    for clause in lexicon.clauses():
        before, after = clause.start - 1, clause.stop
        if (
            before >= 0
            and after < len(words)
            and (words[before].text, words[after].text) == ("《", "》")
            and len(clause) <= 2 * max_words
        ):
            yield lexicon.written(clause.start, clause.stop - 1), LONG_NAME


def _han_phrases(lexicon: SpanLexicon) -> Iterator[tuple[str, float]]:
    # A run of characters that comes back is a word or a name when its company changes: 宋江 stands beside
    # many characters, 宋 in a text about him beside one. The edge of a run counts as ever new company.
    before: defaultdict[str, set[str]] = defaultdict(set)
    behind: defaultdict[str, set[str]] = defaultdict(set)
    times: Counter[str] = Counter()
    for run in _same_kind(lexicon, _HAN):
        text = "".join(lexicon.words[index].text for index in run)
        for start in range(len(text)):
            if text[start] in EDGE_CHARACTERS:
                continue
            for stop in range(start + 2, min(len(text), start + _LONGEST_HAN) + 1):
                if text[stop - 1] in EDGE_CHARACTERS:
                    continue
                gram = text[start:stop]
                times[gram] += 1
                before[gram].add(text[start - 1] if start else f"edge {times[gram]}")
                behind[gram].add(text[stop] if stop < len(text) else f"edge {times[gram]}")
    for gram, count in times.items():
        if count >= _TIMES and len(before[gram]) > 1 and len(behind[gram]) > 1:
            yield gram, PHRASE


def _same_kind(lexicon: SpanLexicon, kind: regex.Pattern[str]) -> Iterator[range]:
    # Maximal runs of one-character words of one script inside a clause.
    words = lexicon.words
    for clause in lexicon.clauses():
        start = None
        for index in clause:
            matches = words[index].kind == "unspaced" and kind.match(words[index].text)
            if matches and start is None:
                start = index
            elif not matches and start is not None:
                yield range(start, index)
                start = None
        if start is not None:
            yield range(start, clause.stop)
