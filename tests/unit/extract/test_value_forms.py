"""Two written forms of a number or a date are one value."""

import pytest

from hornbeam.extract.value_forms import iso_date, plain_number, same_value


@pytest.mark.parametrize(
    "text",
    ["1989-07-10", "July 10, 1989", "July 10th 1989", "the 10th of July 1989", "10 Jul. 1989", "10-07-1989",
     "10/07/1989", "July\n10,1989"],
)  # fmt: skip
def test_a_full_date_has_one_form(text: str) -> None:
    assert iso_date(text) == "1989-07-10"


@pytest.mark.parametrize("text", ["1989", "July 1989", "13-13-1989", "1989-13-01", "32 May 1989", "soon", ""])
def test_what_is_no_full_date_has_none(text: str) -> None:
    assert iso_date(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,569,000", "1569000"), ("733.0 metres", "733.0"), ("−5", "-5"), ("$15,100,000,000", "15100000000")],
)
def test_numbers_are_figures_alone(text: str, number: str) -> None:
    assert plain_number(text) == number


def test_values_are_compared_by_what_they_say() -> None:
    assert same_value("July 10, 1989", "1989-07-10")
    assert same_value("877", "877.0")
    assert not same_value("877", "878")
    assert not same_value("July 10, 1989", "10")
    assert not same_value("ten", "ten")
