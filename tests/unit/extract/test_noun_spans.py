"""Noun-like spans by shape and repetition, in scripts with and without capitals and spaces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam.corpus.boundaries import segment
from hornbeam.extract.noun_spans import LONG_NAME, PHRASE, SHORT_NAME, noun_spans
from hornbeam.grammar.spans import SpanLexicon

MAX_WORDS = 10


def found(text: str) -> dict[str, float]:
    spans = noun_spans(SpanLexicon(text, MAX_WORDS), [unit.start for unit in segment(text)], MAX_WORDS)
    return {span.name: span.score for span in spans}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("In 1903 the chemist Marie Curie met Henri Becquerel.", ["Marie Curie", "Henri Becquerel"]),
        ("She studied at the University of Warsaw.", ["University of Warsaw"]),
        ("The house of Ludwig van Beethoven stands here.", ["Ludwig van Beethoven"]),
        ("Yesterday it rained in Paris.", ["Paris"]),  # a sentence's first word says nothing
        ("Researchers met. They left.", []),
        ("Warsaw grew. Many moved to Warsaw.", ["Warsaw"]),  # … unless it has a capital elsewhere, too
        ("Curie's notes went to Curie's daughter.", ["Curie"]),
        ("It binds mRNA and p53 near the iPhone, at NASA.", ["mRNA", "p53", "iPhone", "NASA"]),
        ("He read J. K. Rowling in St. Petersburg.", ["J. K. Rowling", "St. Petersburg"]),
        ("He flew, Boeing 747 in hand, to Rome.", ["Boeing 747", "Rome"]),
        ("On Monday in January she and I slept.", []),
        ("Marie Curie wrote. Later Curie rested.", ["Marie Curie", "Curie"]),
        ("Мария Кюри родилась в городе Варшава.", ["Мария Кюри", "Варшава"]),
        ("Он жил там. Потом он уехал в Москву.", ["Москву"]),
        ("他读了《红楼梦》。", ["红楼梦"]),
        ("昨日はジョン・スミスとパリで会った。", ["ジョン", "スミス", "パリ"]),
        ("", []),
        ("?! … 12 345", []),
    ],
)
def test_names(text: str, names: list[str]) -> None:
    assert list(found(text)) == names


def test_scores_follow_the_shape() -> None:
    text = "The gradient descent of Ada Lovelace in Rome beats gradient descent."
    assert found(text) == {"gradient descent": PHRASE, "Ada Lovelace": LONG_NAME, "Rome": SHORT_NAME}


def test_lower_case_phrases_must_come_back() -> None:
    assert found("a large tidal turbine turns; the tidal turbine hums") == {"tidal turbine": PHRASE}
    assert found("the tidal turbine hums") == {}
    # Three words that are never apart are one phrase, not three.
    assert found("the deep sea cable broke, a deep sea cable lay there") == {"deep sea cable": PHRASE}


def test_a_lone_word_must_come_back_behind_an_article_or_a_preposition() -> None:
    assert found("the turbine, a turbine, of turbine") == {"turbine": PHRASE}
    assert found("they include, we include, you include") == {}


def test_han_runs_are_words_when_their_company_changes() -> None:
    text = "宋江上梁山，吴用见宋江，宋江道：“好。”众人都拜宋江为首，吴用在梁山不去。"
    assert set(found(text)) == {"宋江", "吴用", "梁山"}


def test_a_name_inside_a_longer_one_is_no_mention() -> None:
    text = "In Rome Marie Curie met Paul. Later, in the house of Curie, Paul left."
    lexicon = SpanLexicon(text, MAX_WORDS)
    spans = noun_spans(lexicon, [unit.start for unit in segment(text)], MAX_WORDS)
    places = {span.name: span.places for span in spans}
    assert [text[start:end] for start, end in places["Curie"]] == ["Curie"]
    assert places["Curie"][0][0] > places["Rome Marie Curie"][0][0] + len("Rome Marie Curie")


TEXTS = st.lists(
    st.sampled_from(
        [
            *("Marie", "Curie", "of", "the", "Rome", "tidal", "turbine", "’s", "-", ". ", ", ", " ", "\n\n"),
            *(
                "宋江",
                "梁山",
                "。",
                "《",
                "》",
                "パリ",
                "Москва",
                "в",
                "p53",
                "👩\u200d👧",
                "e\u0301",
                "'",
                "“",
            ),
        ]
    ),
    max_size=60,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_every_place_is_the_name_as_it_stands_and_no_two_overlap(text: str) -> None:
    lexicon = SpanLexicon(text, MAX_WORDS)
    spans = noun_spans(lexicon, [unit.start for unit in segment(text)], MAX_WORDS)
    places = sorted(place for span in spans for place in span.places)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(places))
    for span in spans:
        assert span.places
        for start, end in span.places:
            assert (start, end) in lexicon.occurrences(span.name)
            assert " ".join(text[start:end].split()) == span.name
