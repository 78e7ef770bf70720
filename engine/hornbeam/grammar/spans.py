"""The names a chunk offers: contiguous runs of its words, as a grammar and as a lookup back to offsets.

A *word* is a run of letters and digits; in scripts written without spaces it is one character; every
punctuation mark is a word of its own that a span may run through but not begin with. A span stays within
one clause: it crosses no paragraph break, no sentence end and no comma.

In a span's *written form* the words stand as in the text and every run of white space is one blank, so a
name that wraps over a line is written naturally; `SpanLexicon.occurrences` gives the exact offsets back.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

import regex

from hornbeam.grammar.ebnf import json_inner, literal

#: A character of a script without spaces between words: here a word is a character (with combining marks).
UNSPACED = r"(?!\p{P})[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ーｰ]"
_WORD = regex.compile(
    rf"(?P<unspaced>{UNSPACED}\p{{M}}*)"
    rf"|(?P<word>(?:(?!{UNSPACED})[\p{{L}}\p{{N}}_][\p{{M}}]*)+)"
    r"|(?P<mark>\S)"
)
#: The same for text of ASCII alone, in a third of the time.
_ASCII_WORD = re.compile(r"(?P<word>[A-Za-z0-9_]+)|(?P<mark>[^ \t\n\r\f\v])")
#: Inside a name, with no space on either side; the last are Hebrew's, Tibetan's and joiners.
_INNER_MARKS = frozenset("'’.-–—/&+_@·・‧%#:°־׳״་\u200c\u200d")
_LOOSE_MARKS = frozenset("&-–—/+·・")  # may stand between spaced words
_CLOSING_MARKS = frozenset("+#%°")  # a name may end with one that touches it: C++, C#, 40%

#: Closes a string.
_QUOTE = '"'
_CLOSING = literal(_QUOTE)
#: Characters of an unspaced script that count as a word where a span's length is bounded.
CHARACTERS_PER_WORD = 2


class Word(NamedTuple):  # tens of thousands a second are made of them
    start: int  # characters of the text
    end: int
    text: str
    kind: str  # "word", "unspaced" or "mark"
    spaced: bool  # white space stands before it
    joins: bool  # a span may run on from the word before into this one


def split_words(text: str) -> list[Word]:
    """All words of `text` in order; nothing but white space lies between them."""
    pattern = _ASCII_WORD if text.isascii() else _WORD
    found = [(*m.span(), m.group(), m.lastgroup or "mark") for m in pattern.finditer(text)]
    words: list[Word] = []
    before: _Token = (0, 0, "", "mark")
    passable = False  # the text begins here, or the mark before could not be entered: nothing leads on
    for index, current in enumerate(found):
        start, end, surface, kind = current
        gap = text[before[1] : start] if index else ""
        joins = passable and (not gap or gap == " " or gap.count("\n") < 2)
        if joins and kind == "mark":
            following = found[index + 1] if index + 1 < len(found) else None
            joins = _joins(before, current, following, gap)
        words.append(Word(start, end, surface, kind, bool(gap), joins))
        before, passable = current, joins or kind != "mark"
    return words


_Token = tuple[int, int, str, str]


def _joins(previous: _Token, current: _Token, following: _Token | None, gap: str) -> bool:
    """Whether a span may run on into a mark; through it into what follows it then may in any case."""
    mark = current[2]
    if previous[3] == "mark" or following is None:
        return mark in _CLOSING_MARKS and not gap
    gap_after = following[0] > current[1]
    if not gap and not gap_after:
        digits = previous[2][-1].isdigit() and following[2][0].isdigit()
        return mark in _INNER_MARKS or (mark in ",." and digits)
    if mark in _CLOSING_MARKS and not gap:
        return True
    if mark == "." and not gap and following[3] != "mark":
        # "St. Petersburg", "J. K. Rowling", but not the end of a sentence.
        return len(previous[2]) <= 3 and previous[2][0].isupper()
    return mark in _LOOSE_MARKS and bool(gap) == gap_after


class SpanLexicon:
    """The spans of one text.

    Args:
        text: the chunk.
        max_words: at least 2. No span is longer, and every span within a clause of up to half as many words
            is one; punctuation counts. A span that begins in an unspaced script may have two characters
            for each word.
    """

    def __init__(self, text: str, max_words: int) -> None:
        self.text = text
        self.max_words = max_words
        self.words = split_words(text)
        self._block = max(1, max_words // 2)
        self._clause_end = self._clause_ends()
        self._closable = [self._ends(index) for index in range(len(self.words))]
        self._first: dict[str, list[int]] | None = None
        self._rules: dict[tuple[str, range | None], tuple[dict[int, str], list[str]]] = {}

    def __bool__(self) -> bool:
        return any(word.kind != "mark" for word in self.words)

    @property
    def longest_span(self) -> int:
        """Words of the longest span that the windows allow here; a character of an unspaced script is one."""
        unspaced = any(word.kind == "unspaced" for word in self.words)
        return 2 * self._block * (CHARACTERS_PER_WORD if unspaced else 1)

    def clauses(self, within: range | None = None) -> list[range]:
        """The clauses that hold a span, as ranges of word indices, in reading order.

        Args:
            within: leave out what lies outside these words.
        """
        words = range(len(self.words)) if within is None else within
        found, start = [], words.start
        while start < words.stop:
            end = min(self._clause_end[start], words.stop)
            if any(self.words[index].kind != "mark" for index in range(start, end)):
                found.append(range(start, end))
            start = end
        return found

    def rules(self, prefix: str, within: range | None = None) -> tuple[dict[int, str], list[str]]:
        """EBNF rules for the written form (JSON-escaped) of exactly the spans, each with the quote that
        closes its string.

        Args:
            prefix: of the rules' names.
            within: only spans that begin with one of these words.

        Returns:
            for each word that a span may start with, the name of the rule of the spans that start there,
            and the text of all the rules.

        One state per word, shared by all spans through it. To bound the length, a clause is laid out in
        windows of two blocks, and a span ends within the window of the block that it starts in: a word
        then has at most two states, where counting words would need one per count. Linear in the text.
        The closing quote is part of the rules because a rule that could end behind a word would leave every
        token that begins otherwise to be settled while decoding: with it, masks cost half as much, and the
        compiled grammar takes half the memory.
        Made once: both stages may need them.
        """
        if within == range(len(self.words)):
            within = None
        if (prefix, within) not in self._rules:
            self._rules[prefix, within] = self._make_rules(prefix, within)
        return self._rules[prefix, within]

    def _make_rules(self, prefix: str, within: range | None) -> tuple[dict[int, str], list[str]]:
        rules: list[str] = []
        name_of: dict[tuple[int, int], str] = {}
        starts: dict[int, str] = {}
        pending: list[tuple[int, int]] = []
        clause_end, words = self._clause_end, self.words

        def state(index: int, stop: int) -> str:
            # The clause ends first: the window makes no difference.
            key = (index, 0 if clause_end[index] <= stop else stop)
            if (name := name_of.get(key)) is None:
                name_of[key] = name = f"{prefix}{index}_{key[1]}" if key[1] else f"{prefix}{index}"
                pending.append(key)
            return name

        for index in range(len(words)) if within is None else within:
            if words[index].kind != "mark":
                starts[index] = state(index, self._stop(index))
        last_end = self._last_ends()
        while pending:
            key = index, stop = pending.pop()
            end = stop or clause_end[index]
            written = json_inner(words[index].text)
            if last_end[end - 1] > index:  # a span may end behind this word
                target = state(index + 1, end)
                step = f'" " {target}' if words[index + 1].spaced else target
                onward = f"({_CLOSING} | {step})" if self._closable[index] else step
                rules.append(f"{name_of[key]} ::= {literal(written)} {onward}")
            else:
                rules.append(f"{name_of[key]} ::= {literal(written + _QUOTE)}")
        return starts, rules

    def written(self, first: int, last: int) -> str:
        """The written form of words first..last (inclusive)."""
        parts = [self.words[first].text]
        for word in self.words[first + 1 : last + 1]:
            parts.append(f" {word.text}" if word.spaced else word.text)
        return "".join(parts)

    def occurrences(self, name: str) -> list[tuple[int, int]]:
        """Offsets of every span whose written form is `name`, in order; `[]` if there is none."""
        if self._first is None:
            index: defaultdict[str, list[int]] = defaultdict(list)
            for place, word in enumerate(self.words):
                index[word.text].append(place)
            self._first = dict(index)
        head = _WORD.match(name)
        if head is None:
            return []
        found = []
        for place in self._first.get(head.group(), []):
            last = self._match(name, place)
            if last is not None:
                found.append((self.words[place].start, self.words[last].end))
        return found

    def _match(self, name: str, place: int) -> int | None:
        """Index of the last word if `name` is written from word `place` on within one clause."""
        if self.words[place].kind == "mark":
            return None
        position = 0
        index = place
        while True:
            word = self.words[index]
            if not name.startswith(word.text, position):
                return None
            position += len(word.text)
            if position == len(name):
                return index if self._closable[index] else None
            index += 1
            if index >= len(self.words) or not self.words[index].joins:
                return None
            if self.words[index].spaced:
                if name[position] != " ":
                    return None
                position += 1

    def _ends(self, index: int) -> bool:
        word = self.words[index]
        if word.kind != "mark":
            return True
        if not word.joins or word.spaced:
            return False
        if word.text == ".":  # an initial: "J.", "U.S."
            return len(self.words[index - 1].text) == 1
        return word.text in _CLOSING_MARKS

    def _last_ends(self) -> list[int]:
        """For each word, the last one up to it that a span may end with; -1: none."""
        last, found = -1, []
        for index in range(len(self.words)):
            last = index if self._closable[index] else last
            found.append(last)
        return found

    def _stop(self, index: int) -> int:
        """One past the last word that a span from word `index` may reach."""
        block = self._block * CHARACTERS_PER_WORD if self.words[index].kind == "unspaced" else self._block
        return (index // block + 2) * block

    def _clause_ends(self) -> list[int]:
        """For each word, one past the last word of its clause."""
        ends = [0] * len(self.words)
        end = len(self.words)
        for index in range(len(self.words) - 1, -1, -1):
            ends[index] = end
            if not self.words[index].joins:
                end = index
        return ends
