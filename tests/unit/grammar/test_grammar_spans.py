"""Which runs of words are spans, and where a span's written form stands in the text."""

from __future__ import annotations

import pytest

from hornbeam.grammar.spans import SpanLexicon, split_words


def clauses(text: str) -> list[str]:
    lexicon = SpanLexicon(text, 20)
    return [lexicon.written(clause[0], clause[-1]) for clause in lexicon.clauses()]


def is_span(name: str, text: str) -> bool:
    found = SpanLexicon(text, 20).occurrences(name)
    assert all(" ".join(text[start:end].split()) == name for start, end in found)
    return bool(found)


def test_words_cover_the_text_but_for_white_space() -> None:
    text = "Ada  (née\tByron) – 林黛玉 進 賈府。e\u0301\u0302 x"
    words = split_words(text)
    assert [text[word.start : word.end] for word in words] == [word.text for word in words]
    assert "".join(word.text for word in words) == "".join(text.split())


def test_a_clause_ends_at_commas_sentence_ends_brackets_and_paragraph_breaks() -> None:
    text = "Ada Byron, a poet. She (a countess) wrote:\nnotes\n\nParis"
    assert clauses(text) == ["Ada Byron", "a poet", "She", "a countess", "wrote", "notes", "Paris"]


def test_a_line_break_alone_does_not_end_a_clause() -> None:
    assert clauses("the Northlight\nWorks") == ["the Northlight Works"]
    assert clauses("Northlight\n \nWorks") == ["Northlight", "Works"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("St. Petersburg", "She left St. Petersburg early."),
        ("J. K. Rowling", "By J. K. Rowling, again."),
        ("J.", "It was J. who came."),
        ("U.S. Army", "the U.S. Army came"),
        ("O'Neill-Smith", "Mr O'Neill-Smith left"),
        ("Curie's", "Marie Curie's work"),
        ("AT&T", "at AT&T today"),
        ("Barnes & Noble", "in Barnes & Noble today"),
        ("C++", "She writes C++ daily"),
        ("C#", "She writes C#."),
        ("3.14", "It is 3.14 or so"),
        ("25,000", "some 25,000 people"),
        ("40%", "about 40% of it"),
        ("10:30", "at 10:30 sharp"),
        ("林黛玉", "那时林黛玉进贾府"),
        ("東京タワー", "昨日東京タワーを見た"),
        ("iPhone手机", "新iPhone手机"),
        ("กรุงเทพ", "ไปกรุงเทพมหานคร"),
        ("علی\u200cرضا", "به علی\u200cرضا گفت"),
        ("צה״ל", "חיילי צה״ל באו"),
        ("Éva", "Éva Éva"),
        ("snake_case", "a snake_case name"),
    ],
)
def test_a_name_with_marks_inside_is_one_span(name: str, text: str) -> None:
    assert is_span(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Warsaw. She", "born in Warsaw. She left"),  # a sentence end
        ("Warsaw,", "in Warsaw, then"),
        ("Ada, Bob", "Ada, Bob"),
        ("(Ada", "(Ada)"),
        ("Barnes &", "in Barnes & Noble today"),
        ("O'", "Mr O'Neill left"),
        ("25,", "some 25,000 people"),
        ("", "Ada"),
        ("Ad", "Ada"),
        ("da", "Ada"),
        ("Ada  Byron", "Ada  Byron"),  # the written form has one blank
        ("AdaByron", "Ada Byron"),
        ("Ada Byron", "AdaByron"),
        ("Ada Byron", "Ada\n\nByron"),
        ("賈府。林", "進賈府。林黛玉"),
        ("ကျောင်း။", "ကျောင်း။ သူ"),  # Burmese: the mark ends a sentence
    ],
)
def test_what_is_no_span_is_not_found(name: str, text: str) -> None:
    assert not is_span(name, text)


def test_every_occurrence_is_found_at_its_exact_offsets() -> None:
    text = "Ada Byron met Ada\nByron, not Ada. Adams and Ada\tByron"
    assert [text[start:end] for start, end in SpanLexicon(text, 10).occurrences("Ada Byron")] == [
        "Ada Byron",
        "Ada\nByron",
        "Ada\tByron",
    ]


def test_a_text_without_words_has_no_span() -> None:
    for text in ("", " \n ", "... !?", "👩‍👩‍👧‍👦 🇫🇷"):
        lexicon = SpanLexicon(text, 10)
        assert not lexicon
        assert lexicon.clauses() == []
        assert lexicon.rules("w") == ({}, [])


def test_rules_grow_linearly_with_the_text() -> None:
    def rules(count: int) -> int:
        return len(SpanLexicon(" ".join(f"w{i}" for i in range(count)), 10).rules("w")[1])

    assert rules(400) <= 2 * 400


def test_the_rules_of_the_parts_of_a_text_are_together_those_of_the_whole() -> None:
    lexicon = SpanLexicon("Ada Byron met Mr. Babbage in London, 1833; 史进去寻王进。", 10)
    starts, rules = lexicon.rules("w")
    for cut in range(len(lexicon.words) + 1):
        left, right = range(cut), range(cut, len(lexicon.words))
        parts = [lexicon.rules("w", part) for part in (left, right)]
        assert parts[0][0] | parts[1][0] == starts
        assert set(parts[0][1]) | set(parts[1][1]) == set(rules)
        assert all(index in left for index in parts[0][0])
        clauses = [*lexicon.clauses(left), *lexicon.clauses(right)]
        nameable = [index for index, word in enumerate(lexicon.words) if word.kind != "mark"]
        assert [index for clause in clauses for index in clause if index in nameable] == nameable


def test_ascii_text_is_cut_into_words_as_any_text_is() -> None:
    ascii_text = "".join(f"a{chr(code)}b {chr(code)} " for code in range(128)) + "x_1 C++ 3.5% O'Neill"
    assert ascii_text.isascii()

    def cut(text: str) -> list[tuple[int, int, str, str]]:
        return [(word.start, word.end, word.text, word.kind) for word in split_words(text)]

    assert cut(ascii_text) == cut(ascii_text + "\n\n\u00e9")[:-1]


def test_the_whole_text_is_no_part_of_it_to_make_rules_for_twice() -> None:
    lexicon = SpanLexicon("Ada Byron met Mr. Babbage in London, 1833.", 10)
    assert lexicon.rules("w", range(len(lexicon.words))) is lexicon.rules("w")
