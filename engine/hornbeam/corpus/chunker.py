"""Cut a document into chunks that fit the model, at the best places there are."""

from __future__ import annotations

import itertools
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hornbeam.corpus.boundaries import (
    Boundary,
    Unit,
    first_grapheme_boundary,
    is_grapheme_boundary,
    last_grapheme_boundary,
    segment,
)
from hornbeam.records import Chunk, Document, content_id

if TYPE_CHECKING:
    from hornbeam.llm.protocol import Tokenizer

#: One in this many units closes a chunk that is at least half full, whatever would still fit. See `Chunker`.
RESYNCHRONISATION = 8

#: A longer grapheme cluster (a letter with a thousand accents) is cut like a word.
_LONGEST_GRAPHEME = 1_000

_NOT_SPACE = re.compile(r"\S")
_CLAUSE_MARKS = frozenset("，、；：")


@dataclass(frozen=True, slots=True)
class CutDocument(Document):
    """A document that comes with its chunks, in order: whoever read it has cut it, too."""

    chunks: tuple[Chunk, ...] = ()


class Chunker:
    """Cuts documents into chunks of at most `max_tokens` tokens.

    Packing is greedy: sentence after sentence, until the next does not fit; then back to the last paragraph
    end, if that leaves the chunk at least half full. Consecutive chunks share whole sentences of up to
    about `overlap_tokens`, but never across a heading.

    An edited document must not change all the chunks after the edit, since each changed chunk costs model
    calls. Greedy packing alone would: every cut depends on the one before. Two things bring two packings
    back in step. A heading closes the chunk (unless it is less than a quarter full: a page of one-line
    sections would be all overhead). And where there are no headings, one in `RESYNCHRONISATION` paragraphs
    (or sentences, of a paragraph longer than a chunk), chosen by the hash of its own text, closes any chunk
    that is at least half full: after an edit both packings soon cut at the same such place, and from there
    they are the same. Smaller values resynchronise sooner and make chunks smaller.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, overlap_tokens: int) -> None:
        """Raises ValueError if `max_tokens` < 8 (one character can be several tokens) or the overlap leaves
        less than half of a chunk for new text."""
        if max_tokens < 8:
            raise ValueError(f"max_tokens must be at least 8, got {max_tokens}")
        if not 0 <= overlap_tokens <= max_tokens // 2:
            raise ValueError(f"overlap_tokens must be between 0 and half of max_tokens, got {overlap_tokens}")
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.overlap_tokens = overlap_tokens

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks in order; together they cover every character that is not white space.

        For each, `document.text[start:end] == text`, without white space around it, and
        `tokens == tokenizer.count(text) <= max_tokens`. A document of white space has none.

        Raises ValueError if the tokenizer needs more than `max_tokens` for a single character.
        """
        return list(_Packing(self, document.text).chunks(document.document_id))


class _Packing:
    """The state of cutting one text. Counts between two offsets are estimates from the tokens of the whole
    text (a bisection); only a finished chunk is tokenised again, since a piece may come out a token or two
    longer than it was within the whole."""

    def __init__(self, chunker: Chunker, text: str) -> None:
        self.text = text
        self.count = chunker.tokenizer.count
        self.max_tokens = chunker.max_tokens
        self.overlap_tokens = chunker.overlap_tokens
        self.token_starts = sorted(start for start, _ in chunker.tokenizer.offsets(text))
        self.units = segment(text)
        self.closes = self._closing_units()

    def chunks(self, document_id: str) -> Iterator[Chunk]:
        first = 0  # the first unit that is not wholly in a chunk yet
        begin = self.units[0].start if self.units else 0
        while first < len(self.units):
            begin, end, first, tokens = self._next(first, begin)
            text = self.text[begin:end].rstrip()
            end = begin + len(text)
            chunk_id = content_id("c", document_id, str(begin), str(end))
            yield Chunk(chunk_id, document_id, begin, end, text, tokens)
            if first < len(self.units):
                begin = self._next_start(first, begin)

    def _next(self, first: int, begin: int) -> tuple[int, int, int, int]:
        """The chunk that starts at `begin` and brings the unit `first`: its begin (later than asked for if
        the overlap left no room), its end, the unit to go on with, its tokens."""
        limit = self.max_tokens
        while True:
            stop = self._pack(first, begin, limit)
            if stop > first:
                end = self.units[stop - 1].end
                tokens = self.count(self.text[begin:end].rstrip())
                if tokens <= self.max_tokens:
                    return begin, end, stop, tokens
                limit = self._tokens(begin, end) - (tokens - self.max_tokens)
            elif begin < self.units[first].start:
                begin, limit = self.units[first].start, self.max_tokens
            else:
                break
        unit = self.units[first]
        cut, tokens = self._cut(begin, unit.end)
        rest = self._skip_space(cut)
        if rest >= unit.end:
            return begin, cut, first + 1, tokens
        self.units[first] = Unit(rest, unit.end, Boundary.WORD)
        return begin, cut, first, tokens

    def _pack(self, first: int, begin: int, limit: int) -> int:
        """The unit before which to end the chunk: `first` if not even that fits."""
        units, stop = self.units, first
        while stop < len(units) and self._tokens(begin, units[stop].end) <= limit:
            filled = self._tokens(begin, units[stop].start)
            if stop > first and units[stop].opens is Boundary.HEADING and 4 * filled >= self.max_tokens:
                return stop
            stop += 1
            if self.closes[stop - 1] and 2 * self._tokens(begin, units[stop - 1].end) >= self.max_tokens:
                return stop
        if stop == len(units):
            return stop
        for better in range(stop, first, -1):
            if 2 * self._tokens(begin, units[better].start) < self.max_tokens:
                break
            if units[better].opens >= Boundary.PARAGRAPH:
                return better
        return stop

    def _next_start(self, first: int, begin: int) -> int:
        """Where the chunk that brings `first` starts, so that it overlaps the one from `begin`."""
        start = fresh = self.units[first].start
        if self.units[first].opens in (Boundary.HEADING, Boundary.WORD):
            return fresh
        for unit in reversed(self.units[max(0, first - self.overlap_tokens) : first]):
            too_much = self._tokens(unit.start, fresh) > self.overlap_tokens
            if unit.start <= begin or unit.opens is Boundary.WORD or too_much:
                break
            start = unit.start
            if unit.opens is Boundary.HEADING:
                break
        return start

    def _cut(self, begin: int, end: int) -> tuple[int, int]:
        """The end and the tokens of the longest good piece of a sentence that is too long for a chunk."""
        past = bisect_left(self.token_starts, begin) + self.max_tokens
        reach = min(self.token_starts[past], end) if past < len(self.token_starts) else end
        reach = max(reach, begin + 1)
        while True:
            cut = self._place(begin, reach, end)
            tokens = self.count(self.text[begin:cut].rstrip())
            if tokens <= self.max_tokens:
                return cut, tokens
            size = cut - begin
            if size == 1:
                raise ValueError(
                    f"the tokenizer makes {tokens} tokens of the one character {self.text[begin:cut]!r}, "
                    f"more than the maximum of a chunk ({self.max_tokens})"
                )
            reach = begin + max(1, min(size - 1, size * self.max_tokens // tokens))

    def _place(self, begin: int, reach: int, end: int) -> int:
        """The best place for a cut in `(begin, reach]`: a line end, then a word, then a grapheme."""
        text = self.text
        if reach >= end:
            return end
        line = text.rfind("\n", begin + (reach - begin) // 2, reach) + 1
        if line > begin and is_grapheme_boundary(text, line):
            return line
        for position in range(reach, begin, -1):
            last = text[position - 1]
            if text[position].isspace() or (
                (last.isspace() or last in _CLAUSE_MARKS) and is_grapheme_boundary(text, position)
            ):
                return position
        grapheme = last_grapheme_boundary(text, begin, reach)
        if grapheme > begin:
            return grapheme
        # The first grapheme ends beyond the reach: whole if it fits at all, otherwise cut within it.
        longest = min(end, reach + _LONGEST_GRAPHEME)
        grapheme = first_grapheme_boundary(text, begin, longest)
        whole = grapheme < longest and self.count(text[begin:grapheme]) <= self.max_tokens
        return grapheme if whole else reach

    def _closing_units(self) -> list[bool]:
        """Which units close a chunk that is at least half full because of their content (see `Chunker`)."""
        units = self.units
        openings = [k for k, unit in enumerate(units) if unit.opens >= Boundary.PARAGRAPH]
        closes = [False] * len(units)
        for opening, following in itertools.pairwise([*openings, len(units)]):
            long = self._tokens(units[opening].start, units[following - 1].end) > self.max_tokens
            for k in range(opening if long else following - 1, following):
                sentence = self.text[units[k].start : units[k].end].rstrip()
                closes[k] = zlib.crc32(sentence.encode("utf-8", "surrogatepass")) % RESYNCHRONISATION == 0
        return closes

    def _tokens(self, start: int, end: int) -> int:
        return bisect_left(self.token_starts, end) - bisect_left(self.token_starts, start)

    def _skip_space(self, position: int) -> int:
        match = _NOT_SPACE.search(self.text, position)
        return match.start() if match else len(self.text)
