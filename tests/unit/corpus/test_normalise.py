from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornbeam.corpus.normalise import detect_language, normalise, one_line


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\ufeffa\r\nb\rc", "a\nb\nc"),
        ("a\x00b\x07c\x9bd\te", "abcd\te"),
        ("a \t \nb\u3000\nc", "a\nb\nc"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("a\n \n \n \nb", "a\n\nb"),
        ("a\fb", "a\n\nb"),
        ("a\u2028b\u2029c", "a\nb\n\nc"),
        ("e\u0301", "é"),
        ("ﬁ①", "ﬁ①"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("  \n a b \n ", "a b"),
        ("", ""),
    ],
)
def test_text_gets_one_form(raw: str, expected: str) -> None:
    assert normalise(raw) == expected


@given(st.text(st.characters(), max_size=60))
def test_normalising_is_idempotent_and_leaves_no_unwanted_character(raw: str) -> None:
    text = normalise(raw)
    assert normalise(text) == text
    assert unicodedata.is_normalized("NFC", text)
    assert not any(
        unicodedata.category(character) in ("Cc", "Cs") for character in text if character not in "\n\t"
    )
    assert "\n\n\n" not in text
    text.encode("utf-8")


def test_a_title_is_one_short_line() -> None:
    assert one_line("A\n long \t title " * 100) == ("A long title " * 20)[:200].rstrip()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Marie Curie was born in Warsaw.", "en"),
        (
            "The committee has met, and it is expected that this will be published by the end of the year.",
            "en",
        ),
        ("Мария Кюри родилась в Варшаве.", "ru"),
        ("Українська мова є державною мовою їхньої країни.", "und"),
        ("林黛玉进贾府，宝玉见了心中欢喜。", "zh"),
        ("彼女はワルシャワで生まれた。", "ja"),
        ("使用 GraphRAG 构建知识图谱的 Python 引擎 vLLM xgrammar", "zh"),
        (
            "Der Ausschuss hat getagt und es wird erwartet, dass das Gutachten in diesem Jahr erscheint.",
            "und",
        ),
        ("Le comité a siégé dans la ville et il est prévu que les documents soient publiés.", "und"),
        ("Lorem ipsum dolor sit amet, consetetur sadipscing elitr.", "und"),
        ("한국어로 쓴 문장입니다.", "und"),
        ("12345 !?", "und"),
        ("", "und"),
    ],
)
def test_language_follows_script_and_function_words(text: str, language: str) -> None:
    assert detect_language(text) == language
