"""Numbers and dates in one form, so that two written forms of a value can be compared."""

from __future__ import annotations

import calendar

import regex

_NUMBER = regex.compile(r"[-−+]?\p{Nd}+(?:[., ]\p{Nd}{3})*(?:[.,]\p{Nd}+)?")
_THOUSANDS = regex.compile(r"(?<=\p{Nd})[, ](?=\p{Nd}{3}(?!\p{Nd}))")
_MONTHS = {
    name.casefold(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
} | {"sept": 9}
_ISO = regex.compile(r"(\p{Nd}{4})-(\p{Nd}{2})-(\p{Nd}{2})")
_DAY_FIRST = regex.compile(
    r"(?:the )?(\p{Nd}{1,2})(?:st|nd|rd|th)? (?:of )?(\p{L}+)\.?,? (\p{Nd}{4})", regex.IGNORECASE
)
_MONTH_FIRST = regex.compile(
    r"(\p{L}+)\.? (?:the )?(\p{Nd}{1,2})(?:st|nd|rd|th)?,? ?(\p{Nd}{4})", regex.IGNORECASE
)
_IN_FIGURES = regex.compile(r"(\p{Nd}{1,2})[-/.](\p{Nd}{1,2})[-/.](\p{Nd}{4})")


def iso_date(text: str) -> str | None:
    """`YYYY-MM-DD` of a full date; None for anything else. Of "03-08-1970" the day is read first."""
    text = " ".join(text.split())
    if match := _ISO.fullmatch(text):
        return _date(*match.groups())
    if match := _DAY_FIRST.fullmatch(text):
        return _date(match[3], _MONTHS.get(match[2].casefold()), match[1])
    if match := _MONTH_FIRST.fullmatch(text):
        return _date(match[3], _MONTHS.get(match[1].casefold()), match[2])
    if match := _IN_FIGURES.fullmatch(text):
        return _date(match[3], match[2], match[1])
    return None


def plain_number(text: str) -> str | None:
    """The figures alone, thousands joined: "1,569,000.50 m" → "1569000.50"; None where there is no number."""
    match = _NUMBER.search(text)
    return None if match is None else _THOUSANDS.sub("", match.group()).replace("−", "-")


def same_value(one: str, other: str) -> bool:
    """Whether two written forms are one date or, figures alone, one number."""
    date = iso_date(one)
    if date is not None or iso_date(other) is not None:
        return date == iso_date(other)
    first, second = _float(one), _float(other)
    return first is not None and first == second


def _float(text: str) -> float | None:
    number = plain_number(text)
    try:
        return None if number is None else float(number)
    except ValueError:  # "1.569.000"
        return None


def _date(year: str, month: str | int | None, day: str) -> str | None:
    if month is None or not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return None
    return f"{int(year):04}-{int(month):02}-{int(day):02}"
