"""Names in Han characters, learned from known ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam.extract.argument_spans import argument_spans
from hornbeam.extract.han_names import HanNames, in_han
from hornbeam.grammar.spans import SpanLexicon

PLACES = ["北京", "上海", "深圳", "成都", "武汉", "南京"]
FIRMS = ["光电", "重工", "传媒", "医药", "软件", "乳业"]


def learned(count: int) -> HanNames:
    """From sentences of one frame: X股份收购了Y集团。"""
    sentences = []
    for number in range(count):
        one = f"{PLACES[number % 6]}{FIRMS[number // 6 % 6]}股份"
        other = f"{PLACES[(number + 1) % 6]}{FIRMS[(number + 2) % 6]}集团"
        sentences.append((f"昨天{one}收购了{other}。", [one, other]))
    return HanNames(sentences, 10)


def forms(names: HanNames, text: str) -> list[str]:
    return [text[start:end] for start, end in names.spans(SpanLexicon(text, 10))]


def test_names_that_were_never_seen_are_the_likeliest_spans_of_a_known_frame() -> None:
    found = forms(learned(24), "昨天广州石化股份收购了长沙水泥集团。")
    assert set(found[:2]) == {"广州石化股份", "长沙水泥集团"}


def test_few_known_names_teach_nothing() -> None:
    assert forms(learned(9), "昨天广州石化股份收购了长沙水泥集团。") == []


def test_a_text_without_han_characters_has_no_such_names() -> None:
    assert forms(learned(24), "Ada Byron met Charles Babbage in London.") == []


def test_learned_names_are_ends_of_facts() -> None:
    text = "昨天广州石化股份收购了长沙水泥集团。"
    kinds = {span.text: span.kind for span in argument_spans(text, 10, learned(24))}
    assert kinds["广州石化股份"] == "name"
    assert "广州石化股份" not in {span.text for span in argument_spans(text, 10)}


@pytest.fixture(scope="module")
def names() -> HanNames:
    return learned(24)


@settings(max_examples=60, deadline=None)
@given(text=st.text("股份昨天集团收购了，。《》 aB1\u0301👍\n", max_size=60))
def test_spans_stand_in_any_text_and_hold_its_script(names: HanNames, text: str) -> None:
    found = names.spans(SpanLexicon(text, 10))
    assert len({text[start:end] for start, end in found}) == len(found)
    for start, end in found:
        form = text[start:end]
        assert any("一" <= character <= "鿿" for character in form)
        assert form == form.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("近日,京东方发布AM", True), ("Ada met 宋江 in Rome.", False), ("1984 …", False), ("", False)],
)
def test_a_text_is_in_the_script_that_most_of_its_letters_are_of(text: str, expected: bool) -> None:
    assert in_han(text) is expected
