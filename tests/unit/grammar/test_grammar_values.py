"""Numbers and dates as they stand in English, Russian and Chinese text."""

from __future__ import annotations

import pytest

from hornbeam.grammar.values import value_spans


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("some 25,000 people, 3.5 of 10", ["25,000", "3.5", "10"]),
        ("1 000 000 лет, 3,5 млн", ["1 000 000", "3,5", "3,5 млн"]),
        ("fell by -5% or +7", ["-5%", "+7"]),
        ("from 1867-1934", ["1867", "1867-1934", "1934"]),
        (
            "it cost £17,000, then $3.5 million or 20 €",
            ["£17,000", "17,000", "$3.5 million", "3.5", "20", "20 €"],
        ),
        ("between $5–7 billion", ["$5–7 billion", "5", "7"]),
        ("他有三千五百人，一百二十万元，第一", ["三千五百", "一百二十万"]),
        ("عام ٩٨٠ و ١٬٢٣٤٫٥", ["٩٨٠", "١٬٢٣٤٫٥"]),
        ("她有900名学生，人口300万。", ["900", "300万"]),
        ("B12, 3rd, v2, x1y", []),
        ("no number", []),
    ],
)
def test_numbers_are_found_as_written(text: str, values: list[str]) -> None:
    assert list(value_spans(text, "number")) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("born 3 June 1948 in York", ["3 June 1948"]),
        ("on June 3rd, 1950.", ["June 3rd, 1950"]),
        ("on 2020-01-02 and 12.05.1999", ["2020-01-02", "12.05.1999"]),
        ("in May 2004, on 5 May", ["May 2004", "5 May"]),
        ("the 1990s; 400 BC; 1867-1934", ["1990s", "400 BC", "1867", "1867-1934", "1934"]),
        ("the war of 1939–45 and 1950 – 1953", ["1939", "1939–45", "1950", "1950 – 1953", "1953"]),
        ("on 2020-01-02", ["2020-01-02"]),
        ("ولد عام ٩٨٠", ["٩٨٠"]),
        ("родилась 7 ноября 1867 года, в мае 1999", ["7 ноября 1867", "мае 1999"]),
        ("1867年11月7日生，1998年5月，二〇〇四年", ["1867年11月7日", "1998年5月", "二〇〇四年"]),
        ("Dismay 2004", ["2004"]),  # no month within a word
        ("25,000 people and 1 000 000 more", []),
        ("room 12, in may", []),
    ],
)
def test_dates_are_found_as_written(text: str, values: list[str]) -> None:
    assert list(value_spans(text, "date")) == values


def test_a_value_that_wraps_over_a_line_is_written_with_one_blank_and_found_everywhere() -> None:
    text = "3 June\n1948 and 3 June 1948"
    found = value_spans(text, "date")
    assert list(found) == ["3 June 1948"]
    assert [text[start:end] for start, end in found["3 June 1948"]] == ["3 June\n1948", "3 June 1948"]


def test_different_values_are_limited_but_places_of_a_known_one_are_not() -> None:
    found = value_spans("1 2 3 1", "number", limit=2)
    assert found == {"1": [(0, 1), (6, 7)], "2": [(2, 3)]}
