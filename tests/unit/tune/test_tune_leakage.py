"""Training texts that a test set would recognise."""

import pytest

from hornbeam.tune.leakage import TestTexts, without_copies

ASKED = [
    "Akeem Ayers was born in Los Angeles on July 10, 1989 and plays for the Tennessee Titans.",
    "Oslo.",
    "武松打虎的故事发生在景阳冈上，时间是冬天。",
]


@pytest.mark.parametrize(
    "text",
    [
        ASKED[0],
        ASKED[0].upper().replace(",", " ,"),
        "In 2009, Akeem Ayers was born in Los Angeles on July 10, 1989 and plays for the Titans.",
        "Akeem Ayers was born in Los Angeles on July 10, 1989",
        f"{ASKED[0]} He has three brothers, who all of them became teachers in the city of Fresno later on.",
        "oslo",
        "武松打虎的故事发生在景阳冈上。",
    ],
)
def test_copies_are_recognised(text: str) -> None:
    assert without_copies([text], TestTexts(ASKED)) == [False]


@pytest.mark.parametrize(
    "text",
    [
        "Mary Shelley was born in London on August 30, 1797 and wrote Frankenstein.",
        "Akeem Ayers plays chess.",
        "Oslo is a city in Norway.",
        "林冲雪夜上梁山，那时正是隆冬。",
        "",
    ],
)
def test_other_texts_are_kept(text: str) -> None:
    assert without_copies([text], TestTexts(ASKED)) == [True]


def test_nothing_is_a_copy_where_nothing_is_asked() -> None:
    assert without_copies(ASKED, TestTexts([])) == [True, True, True]
