"""Spans that an attribute value of a kind may take."""

from __future__ import annotations

import regex

from hornbeam.grammar.spans import UNSPACED

#: No letter or digit touches a value, save in scripts where a value touches its neighbours anyhow.
_ALONE_BEFORE = rf"(?<!(?!{UNSPACED})[\p{{L}}\p{{N}}])"
_ALONE_BEHIND = rf"(?!(?!{UNSPACED})[\p{{L}}\p{{N}}])"
#: digits with separators, an optional sign before and a magnitude or unit mark behind; or Chinese numerals
_DIGITS = r"\p{Nd}+(?:[.,٬\u00a0 ]\p{Nd}{3})*(?:[.,٫]\p{Nd}+)?"
_NUMBER = regex.compile(
    _ALONE_BEFORE
    + rf"(?:[-−+]?{_DIGITS}(?:[%٪]|[万萬亿億]+)?|[一二两三四五六七八九十百千万萬亿億零〇]{{2,}})"
    + _ALONE_BEHIND
)
_RANGE = r"\s?[-–—]\s?"
_CURRENCY = r"[$€£¥₽₹₩]"
_MAGNITUDE = r"(?:thousand|million|billion|trillion|тыс\.|млн|млрд|трлн)"
#: what belongs to a number beside its digits: a range's other end, a currency, a magnitude in words
_QUANTITY = regex.compile(
    _ALONE_BEFORE
    + rf"(?:{_CURRENCY}\s?{_DIGITS}(?:{_RANGE}{_CURRENCY}?\s?{_DIGITS})?(?:\s{_MAGNITUDE})?"
    + rf"|{_DIGITS}{_RANGE}{_DIGITS}(?:\s{_MAGNITUDE})?[%٪]?(?:\s?{_CURRENCY})?"
    + rf"|{_DIGITS}\s{_MAGNITUDE}(?:\s?{_CURRENCY})?|{_DIGITS}\s?{_CURRENCY})"
    + _ALONE_BEHIND
)
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|"
    "(?:январ|феврал|апрел|июн|июл|сентябр|октябр|ноябр|декабр)[ьяе]|март[ае]?|ма[йяе]|август[ае]?"
)
_DATE = regex.compile(
    _ALONE_BEFORE + r"(?:"
    r"\p{Nd}{4}-\p{Nd}{2}-\p{Nd}{2}|\p{Nd}{1,2}[./-]\p{Nd}{1,2}[./-]\p{Nd}{2,4}"
    rf"|(?:\p{{Nd}}{{1,2}}(?:st|nd|rd|th)?\s+)?(?:{_MONTH})\b\.?(?:\s+\p{{Nd}}{{1,2}}(?:st|nd|rd|th)?)?(?:,?\s+\p{{Nd}}{{4}})"
    rf"|\p{{Nd}}{{1,2}}(?:st|nd|rd|th)?\s+(?:{_MONTH})\b|(?:{_MONTH})\s+\p{{Nd}}{{1,2}}(?:st|nd|rd|th)?\b"
    r"|(?:\p{Nd}{2,4}|[一二三四五六七八九〇零]{2,4})年(?:[\p{Nd}一二三四五六七八九十]{1,3}月(?:[\p{Nd}一二三四五六七八九十]{1,3}[日号])?)?"
    # a year, not the end of 25,000 or of 1 000 000
    r"|(?<!\p{Nd}[.,])(?!0)\p{Nd}{3,4}s?(?:\s(?:BCE?|AD|CE)\b)?"
    r")(?!\p{N})",
    regex.IGNORECASE,
)
_YEARS = regex.compile(
    _ALONE_BEFORE
    + rf"(?<!\p{{Nd}}[.,-])\p{{Nd}}{{4}}{_RANGE}(?:\p{{Nd}}{{4}}|\p{{Nd}}{{2}})(?![-–—.,]?\p{{N}})"
)
#: The second of each: longer readings, beside the values that stand within them.
_PATTERNS = {"number": (_NUMBER, _QUANTITY), "date": (_DATE, _YEARS)}


def value_spans(text: str, kind: str, limit: int = 64) -> dict[str, list[tuple[int, int]]]:
    """The values of kind "number" or "date" that stand in `text`: written form -> offsets, in text order.

    At most `limit` different ones; every run of white space in a value is written as one blank.
    """
    matches = {match.span() for pattern in _PATTERNS[kind] for match in pattern.finditer(text)}
    found: dict[str, list[tuple[int, int]]] = {}
    for start, end in sorted(matches):
        written = " ".join(text[start:end].split())
        if written in found or len(found) < limit:
            found.setdefault(written, []).append((start, end))
    return found
