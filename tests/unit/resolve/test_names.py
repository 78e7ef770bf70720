import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornbeam.resolve.names import canonical_name, spelling_key


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("Marie Curie", "marie curie"),
        ("MARIE\u00a0 CURIE", "marie curie"),
        ("Marie\nCurie", "marie curie"),
        ("Straße", "strasse"),
        ("ＩＢＭ", "ibm"),
        ("Лев Толстой", "лев толстой"),
        ("ЛЕВ  ТОЛСТОЙ", "лев толстой"),
        ("北京大学", "北京大学"),
        ("「北京大学」", "北京大学"),
        ("ﾄﾖﾀ", "トヨタ"),
        ("«Война и мир»", "война и мир"),
        ("“The Times”", "times"),
        ("(Paris)", "paris"),
        ("Jean-Paul Sartre", "jean paul sartre"),
        ("Jean–Paul—Sartre", "jean paul sartre"),
        ("snake_case_name", "snake case name"),
        ("the Netherlands", "netherlands"),
        ("The  Hague", "hague"),
        ("Acme, Inc.", "acme, inc"),
        ("C++", "c++"),
        ("C#", "c#"),
        ("AT&T", "at&t"),
        ("e\u0301cole", "école"),
    ],
)
def test_written_forms_of_one_name_have_one_canonical_form(written: str, canonical: str) -> None:
    assert canonical_name(written) == canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C++", "C#"),
        ("Theresa", "resa"),
        ("The", ""),
        ("Paris 1", "Paris 2"),
        ("北京", "北京大学"),
    ],
)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert canonical_name(one) != canonical_name(other)


@pytest.mark.parametrize("name", ["?!", "—", "…", "the"])
def test_a_name_of_punctuation_or_an_article_alone_is_not_reduced_to_nothing(name: str) -> None:
    assert canonical_name(name)


@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_letters_of_a_plain_name_are_those_it_has_beside_others(name: str) -> None:
    """A name of ASCII alone takes a shorter way to its spelling."""
    beside = spelling_key(f"{name}東").removesuffix("東")
    assert spelling_key(name) == (beside or name)
