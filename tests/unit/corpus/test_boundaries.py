from __future__ import annotations

import pytest

from hornbeam.corpus.boundaries import Boundary, segment


def sentences(text: str) -> list[str]:
    return [text[unit.start : unit.end].strip() for unit in segment(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        (
            "Mr. Smith left the U.S. Army. He was 3.14 m tall.",
            ["Mr. Smith left the U.S. Army.", "He was 3.14 m tall."],
        ),
        ("J. R. Smith, e.g. here, met Dr. Jones.", ["J. R. Smith, e.g. here, met Dr. Jones."]),
        ("“Really?” he said. “Yes.” She left.", ["“Really?” he said.", "“Yes.”", "She left."]),
        ("See no. 5. He said no. Then he left.", ["See no. 5.", "He said no.", "Then he left."]),
        (
            "Жил в 1990 г. в Москве и т.д. и т.п. Потом уехал.",
            ["Жил в 1990 г. в Москве и т.д. и т.п. Потом уехал."],
        ),
        ("А. С. Пушкин родился. Он писал стихи…", ["А. С. Пушкин родился.", "Он писал стихи…"]),
        ("黛玉笑道：“是吗？”宝玉走了。天黑了！", ["黛玉笑道：“是吗？”", "宝玉走了。", "天黑了！"]),
        ("「はい。」と彼は言った。終わり", ["「はい。」", "と彼は言った。", "終わり"]),
        ("- first item\n- second item\n1. third", ["- first item", "- second item", "1. third"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_a_reader_would_say(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "heading",
    [
        "# Methods",
        "###### Deep",
        "CHAPTER 1. Loomings.",
        "Chapter XII",
        "Chapter the First",
        "Глава 3. Дорога",
        "第一回 甄士隐梦幻识通灵",
        "第12章　旅立ち",
        "Methods\n=======",
    ],
)
def test_headings_open_a_section_and_keep_the_next_sentence(heading: str) -> None:
    units = segment(f"Before it.\n\n{heading}\n\nThe text. More text.")
    assert [unit.opens for unit in units] == [Boundary.PARAGRAPH, Boundary.HEADING, Boundary.SENTENCE]
    start, end, _ = units[1]
    assert f"Before it.\n\n{heading}\n\nThe text. More text."[start:end].strip() == f"{heading}\n\nThe text."


@pytest.mark.parametrize(
    "line",
    [
        "Chapter 5 shows that prices rose.",
        "Part of it",
        "#hashtag",
        "第一次世界大战爆发",
        "```\n# comment\n```",
    ],
)
def test_what_only_looks_like_a_heading_is_none(line: str) -> None:
    assert all(unit.opens < Boundary.HEADING for unit in segment(f"Before.\n\n{line}\n\nAfter."))


def test_headings_in_a_row_form_one_unit() -> None:
    units = segment("# One\n\n## Two\n\nText. More.")
    assert [unit.opens for unit in units] == [Boundary.HEADING, Boundary.SENTENCE]


def test_a_lone_fence_does_not_hide_the_headings_after_it() -> None:
    assert segment("Text.\n\n```\n\n# One\n\nText.")[-1].opens is Boundary.HEADING
