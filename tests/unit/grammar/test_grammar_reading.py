"""Reading lists that may be cut anywhere, and the confidence of stretches of a completion."""

from __future__ import annotations

import math

import pytest

from hornbeam.grammar.reading import SpanConfidence, read_items
from hornbeam.llm.protocol import TokenScore


def test_items_of_a_closed_list_are_read_with_the_places_of_their_fields() -> None:
    text = '["a \\"b\\"","x"],["字","y"]]}'
    items, position, closed = read_items(text)
    assert [item.fields for item in items] == [('a "b"', "x"), ("字", "y")]
    assert [text[slice(*span)] for span in items[0].spans] == ['"a \\"b\\""', '"x"']
    assert closed
    assert text[position:] == "}"


@pytest.mark.parametrize("cut", range(len('["a","x"],["b","y"]]')))
def test_a_list_cut_anywhere_keeps_its_complete_items(cut: int) -> None:
    text = '["a","x"],["b","y"]]'[:cut]
    items, _, closed = read_items(text)
    assert not closed
    assert len(items) == (cut >= len('["a","x"]')) + (cut >= len('["a","x"],["b","y"]'))


@pytest.mark.parametrize("text", ["[]]", "x", '["a"', '["a",]]', '{"a":1}]', '["a" "b"]]'])
def test_what_is_no_list_of_strings_is_not_closed(text: str) -> None:
    items, _, closed = read_items(text)
    assert (items, closed) == ([], False)


def tokens(*pairs: tuple[str, float]) -> list[TokenScore]:
    return [TokenScore(text, math.log(probability)) for text, probability in pairs]


def test_confidence_is_the_geometric_mean_of_the_tokens_that_overlap() -> None:
    scores = SpanConfidence("abcdef", tokens(("ab", 0.5), ("cd", 0.25), ("ef", 0.125)))
    assert scores.of([(0, 2)]) == pytest.approx(0.5)
    assert scores.of([(1, 3)]) == pytest.approx(math.sqrt(0.5 * 0.25))
    assert scores.of([(0, 1), (5, 6)]) == pytest.approx(math.sqrt(0.5 * 0.125))
    assert scores.of([(0, 6), (0, 2)]) == pytest.approx((0.5 * 0.25 * 0.125) ** (1 / 3))


def test_confidence_without_scores_is_one() -> None:
    assert SpanConfidence("abc", []).of([(0, 3)]) == 1.0


def test_a_token_that_begins_a_character_counts_for_that_character() -> None:
    scores = SpanConfidence("a字b", tokens(("a", 1.0), ("", 0.5), ("字", 0.5), ("b", 1.0)))
    assert scores.of([(1, 2)]) == pytest.approx(0.5)
    assert scores.of([(2, 3)]) == pytest.approx(1.0)


def test_tokens_written_without_their_blank_and_special_tokens_keep_the_places_right() -> None:
    """Some tokenizers decode the lone token of " Curie" as "Curie"; a special token is not in the text."""
    pieces = tokens(("Marie", 0.5), ("<|x|>", 0.1), ("Curie", 0.25), (" won", 0.125), ("<|im_end|>", 0.1))
    scores = SpanConfidence("Marie Curie won", pieces)
    assert scores.of([(7, 11)]) == pytest.approx(0.25)
    assert scores.of([(11, 15)]) == pytest.approx(0.125)
