"""Where a text may be cut: headings, paragraphs, sentences of four languages, graphemes."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

import regex


class Boundary(IntEnum):
    """What stands at the start of a unit; the greater, the better a place to cut."""

    WORD = 0  # the rest of a sentence that had to be cut
    SENTENCE = 1
    PARAGRAPH = 2
    HEADING = 3


class Unit(NamedTuple):
    """A sentence, with the white space after it; units follow each other without a gap."""

    start: int
    end: int
    opens: Boundary


# One alternative per kind of line. A chapter's number is not followed by lower case, as it is in "Chapter 5
# shows that …". Quantifiers are possessive or bounded: a 5 MB line must not backtrack.
_LINE = re.compile(
    r"""
    ^(?:
        (?P<fence>[ ]{0,3}(?:`{3,}|~{3,})[^\n]*+)
      | (?P<atx>\#{1,6}[ \t]++\S[^\n]*+)
      | (?P<setext>[^\s\#>|*+=-][^\n]{0,120}\n={3,}[ \t]*+$)
      | (?P<chapter>[ \t]*+(?:
            (?:CHAPTER|Chapter|BOOK|Book|PART|Part|SECTION|Section|ГЛАВА|Глава|ЧАСТЬ|Часть|ТОМ|Том)
            [ \t]++(?:\d{1,4}|[IVXLCDM]{1,9}|[Tt]he\b|(?:(?i:first|second|third|last
            |one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen
            |seventeen|eighteen|nineteen|twenty|первая|вторая|третья|четв[её]ртая|пятая)))
            (?![\w,])(?![ \t]++[a-zа-яё])[^\n]{0,70}$
          | [\u3000]*+第[\d〇零一二三四五六七八九十百千两０-９]{1,9}[回章节節卷部篇集話话][^\n。，！？]{0,40}$
        ))
    )
    """,
    re.MULTILINE | re.VERBOSE,
)

_PARAGRAPH = re.compile(r"\n[^\S\n]*+\n\s*+")
# The lookbehind makes a run of dots be tried once, at its start, not once per dot.
_SENTENCE_END = re.compile(
    r"""
    (?P<spaced>(?<![.!?…؟۔।॥])[.!?…؟۔।॥]++['"”’»“\)\]*_]*+(?=\s))
  | (?P<dense>[。！？｡．]++[…—]*+['"”’」』）】》〉\)]*+)
  | (?P<item>\n(?=[ \t]*+(?:[-*+•·–—][ \t]|\d{1,3}[.)][ \t]|\|)))
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*+")
_GRAPHEME = regex.compile(r"\X")
_BEFORE_DOT = re.compile(r"[^\W_][\w.’'-]*$")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")  # U.S, т.д, a.m, Ph.D
_LONGEST_ABBREVIATION = 12

_ABBREVIATIONS = frozenset(
    """mr mrs ms messrs mme mlle dr prof st mt sr jr vs etc eg ie cf al ca approx inc ltd co corp bros dept
    est gen col lt maj sgt capt cmdr adm rev hon pres gov sen rep supt jan feb mar apr jun jul aug
    sep sept oct nov dec mon tue wed thu fri sat univ assn ave blvd rd ed eds trans г гг в вв др им
    ул пр просп пер пл стр рис см напр проф акад доц св руб коп тыс млн млрд трлн экз изд обл р оз
    гр тов ред сокр англ лат нем фр греч ок кв мин сек табл
    """.split()  # noqa: SIM905
)
# Abbreviations only before a number: "no. 5" but "He said no. Then …"
_BEFORE_NUMBER = frozenset(
    """no nos p pp vol fig figs art sec ch eq ref para с п ст гл т ч д кн № рис
    """.split()  # noqa: SIM905
)


def segment(text: str) -> list[Unit]:
    """Cut `text` into sentences, each knowing whether it opens a section, a paragraph or neither.

    A heading forms one unit with the first sentence after it (and with headings directly before that), so
    no cut can part them. The units cover `text` from its first character that is not white space to its end,
    and each starts with such a character; a text of white space has none.
    """
    lead = _end_of_space(text, 0)
    starts = dict.fromkeys(_sentence_ends(text), Boundary.SENTENCE)
    for paragraph in _PARAGRAPH.finditer(text):
        starts[paragraph.end()] = Boundary.PARAGRAPH
    glued = _headings(text)
    starts.update((start, Boundary.HEADING) for start, _ in glued)
    starts[lead] = max(Boundary.PARAGRAPH, starts.get(lead, Boundary.PARAGRAPH))
    starts.pop(len(text), None)

    units: list[Unit] = []
    order = sorted(starts)
    following = iter([*glued, (len(text), len(text))])
    heading, body = next(following)
    for position in order:
        while position > body:
            heading, body = next(following)
        if heading < position <= body:
            continue  # would part a heading from its text
        if units:
            units[-1] = units[-1]._replace(end=position)
        units.append(Unit(position, len(text), starts[position]))
    return units


def _headings(text: str) -> list[tuple[int, int]]:
    """(start of the first line, start of the text that follows) of every run of headings, in order."""
    lines = list(_LINE.finditer(text))
    # A fence without a partner would hide every heading after it, so the last odd one does not count.
    fences = [line.start() for line in lines if line["fence"] is not None]
    code = list(zip(fences[0::2], fences[1::2], strict=False))
    runs: list[tuple[int, int]] = []
    block = 0
    for line in lines:
        if line["fence"] is not None:
            continue
        while block < len(code) and code[block][1] < line.start():
            block += 1
        if block < len(code) and code[block][0] < line.start():
            continue  # "# comment" in a listing
        body = _end_of_space(text, line.end())
        start = _end_of_space(text, line.start())
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], body)
        else:
            runs.append((start, body))
    return runs


def _sentence_ends(text: str) -> list[int]:
    """Where a next sentence starts, white space skipped."""
    ends = []
    for match in _SENTENCE_END.finditer(text):
        follows = _end_of_space(text, match.end())
        if match.lastgroup == "spaced" and not _ends_sentence(text, match, follows):
            continue
        if is_grapheme_boundary(text, follows):
            ends.append(follows)
    return ends


def _ends_sentence(text: str, match: re.Match[str], follows: int) -> bool:
    """Whether the full stop (or ! ? …) of `match`, with white space after it, ends a sentence."""
    upcoming = text[follows : follows + 1]
    if upcoming.islower():
        return False  # "e.g. this", "?" he said
    if not match[0].startswith(".") or match[0].startswith(".."):
        return True
    before = _BEFORE_DOT.search(text, max(0, match.start() - _LONGEST_ABBREVIATION), match.start())
    if before is None:
        return True
    word = before[0]
    if _DOTTED.fullmatch(word):
        return False
    if len(word) == 1 and word.isupper():
        return False  # an initial: "J. Smith", "А. Пушкин"
    if word.isdigit():
        # "1. First item", but "It was 1867. Then …"
        line_start = text.rfind("\n", 0, before.start()) + 1
        return len(word) > 3 or bool(text[line_start : before.start()].strip())
    word = word.lower()
    if word in _BEFORE_NUMBER and upcoming.isdigit():
        return False
    return word not in _ABBREVIATIONS


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None  # it matches the empty string, too
    return match.end()


def is_grapheme_boundary(text: str, position: int) -> bool:
    """Whether a cut at `position` leaves the user-perceived character before it whole.

    Looks at one character before `position`, so it is exact where that character starts a cluster, as
    white space and punctuation do.
    """
    if position <= 0 or position >= len(text):
        return True
    cluster = _GRAPHEME.match(text, position - 1)
    return cluster is None or cluster.end() <= position


def last_grapheme_boundary(text: str, start: int, limit: int) -> int:
    """The last grapheme boundary in `(start, limit]`, or `start` when the first cluster is longer.

    `start` must be a boundary itself. The cost grows with `limit - start`.
    """
    boundary = start
    # endpos cuts the last cluster short, so only the starts of clusters count; some characters are read
    # beyond the limit, to see that a cluster starts there.
    for cluster in _GRAPHEME.finditer(text, start, min(len(text), limit + 2)):
        if cluster.start() > limit:
            break
        boundary = cluster.start()
    return limit if limit >= len(text) else boundary


def first_grapheme_boundary(text: str, start: int, end: int) -> int:
    """The end of the grapheme cluster that starts at `start`, at most `end`."""
    cluster = _GRAPHEME.match(text, start, end)
    return cluster.end() if cluster is not None else end
