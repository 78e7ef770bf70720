"""What every chunking guarantees, for any text, script and limit."""

from __future__ import annotations

import itertools
import re

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam.corpus.chunker import Chunker
from hornbeam.records import Chunk, Document, content_id


class WordsAndCharacters:
    """Words of up to four ASCII letters are one token; of anything else, every UTF-8 byte is one."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        spans = []
        for match in re.finditer(r"[A-Za-z]{1,4}|\S", text):
            spans += [match.span()] * (1 if match[0].isascii() else len(match[0].encode("utf-8", "replace")))
        return spans

    def count(self, text: str) -> int:
        return len(self.offsets(text))


class ContextDependent(WordsAndCharacters):
    """A piece is longer than it was within the whole, as with byte-pair encodings that join across words."""

    def count(self, text: str) -> int:
        return len(self.offsets(text)) + 2 + len(text) // 40


def document(text: str) -> Document:
    return Document(content_id("d", text), "test", "test", text, "und")


def chunk(text: str, max_tokens: int = 24, overlap: int = 6) -> list[Chunk]:
    return Chunker(WordsAndCharacters(), max_tokens, overlap).chunk(document(text))


PIECES = [
    "The treaty was signed. ",
    "Mr. Smith left the U.S. at 3.15 p.m. ",
    "Он родился в 1867 г. в Варшаве. ",
    "林黛玉进贾府。",
    "「はい」と彼は言った。",
    "它是什么？！",
    "مرحبا بالعالم. ",
    "שלום עולם! ",
    "नमस्ते दुनिया। ",
    *("e\u0301\u0302\u0323", "👩‍👩‍👧‍👦", "🇫🇷🇩🇪", "👍🏽", "ก็", "각", "a" * 50, "字" * 40, "e" + "\u0301" * 60),
    *("\n", "\n\n", "  ", "\u3000", "\u0301", "....", "\r\n", "\u200d", "\ufe0f", ". ", "。", "\x1c"),
    *("# A heading\n", "## Another\n\n", "第三回 托内兄如海荐西宾\n", "CHAPTER IV. The Whale\n"),
    *("```\n# code\n```\n", "- item\n", "| a | b |\n"),
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=40).map("".join)
limits = st.integers(16, 60).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most // 2)))


@pytest.mark.parametrize("tokenizer", [WordsAndCharacters(), ContextDependent()], ids=["plain", "context"])
@settings(max_examples=300, deadline=None)
@given(text=texts, limit=limits)
def test_chunks_are_spans_within_the_limit_that_cover_the_text(
    tokenizer: WordsAndCharacters, text: str, limit: tuple[int, int]
) -> None:
    max_tokens, overlap = limit
    source = document(text)
    chunks = Chunker(tokenizer, max_tokens, overlap).chunk(source)

    covered: set[int] = set()
    for piece in chunks:
        assert text[piece.start : piece.end] == piece.text
        assert piece.tokens == tokenizer.count(piece.text) <= max_tokens
        assert piece.text
        assert piece.text == piece.text.strip()
        assert piece.document_id == source.document_id
        covered.update(range(piece.start, piece.end))
    assert all(position in covered or character.isspace() for position, character in enumerate(text))

    for before, after in itertools.pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        shared = text[after.start : before.end]
        assert len(tokenizer.offsets(shared)) <= overlap
    assert len({piece.chunk_id for piece in chunks}) == len(chunks)
    assert Chunker(tokenizer, max_tokens, overlap).chunk(source) == chunks


@settings(max_examples=300, deadline=None)
@given(text=texts, limit=limits)
def test_no_cut_is_inside_a_grapheme_that_fits(text: str, limit: tuple[int, int]) -> None:
    tokenizer = WordsAndCharacters()
    clusters = [match.span() for match in regex.finditer(r"\X", text)]
    # White space around a chunk is stripped, also where a combining mark sits on the last space.
    inside = {
        position: (start, end)
        for start, end in clusters
        for position in range(start + 1, end)
        if not text[position - 1].isspace()
    }
    for piece in Chunker(tokenizer, *limit).chunk(document(text)):
        for edge in (piece.start, piece.end):
            if edge in inside:
                start, end = inside[edge]
                assert tokenizer.count(text[start:end]) > limit[0]


def test_a_word_of_ten_thousand_characters_is_cut_hard() -> None:
    for word in ("x" * 10_000, "漢" * 10_000, "é" * 10_000, "👩‍👩‍👧‍👦" * 1_500):
        chunks = chunk(f"Before. {word} After.")
        assert len(chunks) > 100
        assert max(piece.tokens for piece in chunks) <= 24


def test_a_heading_starts_a_chunk_and_stays_with_its_text() -> None:
    body = "Some words are said here about it. " * 4
    text = f"# One\n\n{body}\n\n## Two\n\n{body}"
    starts = [piece.text.split("\n")[0] for piece in chunk(text, 60, 10) if piece.text.startswith("#")]
    assert starts == ["# One", "## Two"]
    assert all(not piece.text.endswith(("# One", "## Two")) for piece in chunk(text, 16, 4))


def test_no_overlap_across_a_heading() -> None:
    body = "Some words are said here. " * 6
    chunks = chunk(f"# One\n{body}\n# Two\n{body}", 24, 12)
    second = next(k for k, piece in enumerate(chunks) if piece.text.startswith("# Two"))
    assert chunks[second - 1].end <= chunks[second].start
    assert chunks[second + 1].start < chunks[second].end


def test_small_paragraphs_are_packed_together() -> None:
    text = "\n\n".join(f"Short paragraph {k}." for k in range(6))
    assert [piece.text for piece in chunk(text, 60, 0)] == [text]


def test_paragraph_ends_are_preferred_to_sentence_ends() -> None:
    first = "One two six ten. Red blue pink grey. Cat dog cow hen."
    second = "Oak elm yew ash. Tin lead iron gold. Sun moon star sky."
    chunks = chunk(f"{first}\n\n{second}", 26, 0)
    assert [piece.text for piece in chunks] == [first, second]


def test_an_edit_in_the_middle_changes_few_chunks() -> None:
    words = [a + b for a in ("bor", "cal", "dun", "fer", "gam", "hin") for b in ("a", "e", "o", "ul", "ish")]
    sentences = [
        " ".join(words[(k * k * 7 + j * (k % 11 + 3)) % len(words)] for j in range(5 + k % 7)).capitalize()
        + "."
        for k in range(900)
    ]
    for separator in (" ", "\n", "\n\n"):
        before = chunk(separator.join(sentences), 100, 16)
        edited = [*sentences[:450], "A new fact was put in here.", *sentences[450:]]
        after = chunk(separator.join(edited), 100, 16)
        assert len(before) >= 100
        changed = {piece.text for piece in after} - {piece.text for piece in before}
        assert 1 <= len(changed) <= 6


def test_white_space_has_no_chunks() -> None:
    assert chunk("") == chunk(" \n\n\t\u3000 ") == []


def test_a_limit_too_small_for_any_character_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens"):
        Chunker(WordsAndCharacters(), 4, 0)
    with pytest.raises(ValueError, match="overlap"):
        Chunker(WordsAndCharacters(), 32, 17)
