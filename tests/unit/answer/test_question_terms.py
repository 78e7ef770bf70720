"""What a question is about and what evidence leaves open, without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornbeam.answer.answerability import missing_terms, refusal
from hornbeam.answer.names import names_in, terms_in, uncovered


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Who founded Sorvik Optics?", ["Sorvik Optics"]),
        ("When did Aldo Brenn write The Glass Ferry?", ["Aldo Brenn", "Glass Ferry"]),
        ("Is the Bank of England older than J. K. Rowling?", ["Bank of England", "J. K. Rowling"]),
        ("what is radium", []),
        ("Which 1969 film won?", ["1969"]),
        ("澜碧港在哪里？", []),
        ("", []),
    ],
)
def test_names_are_the_capitalised_runs_of_a_question(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_terms_are_names_and_the_words_that_are_not_for_asking() -> None:
    assert terms_in("When did Aldo Brenn write The Glass Ferry?") == ["Aldo Brenn", "write", "Glass Ferry"]


def test_a_term_is_covered_by_another_form_of_its_word() -> None:
    said = ["Sorvik Optics was founded by Lena Sorvik."]
    assert uncovered(["Sorvik Optics", "founder", "born"], said) == ["born"]


def test_a_refusal_says_what_no_evidence_speaks_of() -> None:
    assert missing_terms("When did Aldo Brenn die?", ()) == ("Aldo Brenn", "die")
    assert "“Aldo Brenn”, “die”" in refusal(("Aldo Brenn", "die"))
    assert "does not say this" in refusal(())


@given(st.text(max_size=60))
def test_names_and_terms_stand_in_the_text(text: str) -> None:
    assert all(name in text for name in (*names_in(text), *terms_in(text)))


@given(st.text(alphabet="abcdeABCDE .?", max_size=60))
def test_a_text_covers_its_own_terms(text: str) -> None:
    assert uncovered(terms_in(text), [text]) == []
