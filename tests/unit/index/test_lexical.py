import math
from pathlib import Path

import pytest

from hornbeam.errors import StoreError
from hornbeam.index.lexical import MAX_QUERY_TOKENS, LexicalIndex, build_lexical
from hornbeam.index.tokens import tokenise

TEXTS = ["the cat sat", "a dog and a cat", "北京大学位于海淀区", "清华大学", "Мария Кюри"]


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    assert build_lexical(TEXTS, tmp_path) == len(TEXTS)
    return LexicalIndex.open(tmp_path)


def test_scores_follow_bm25_over_the_attainable_sum(index: LexicalIndex) -> None:
    rows, scores = index.search(tokenise("dog cat"), 10)
    idf = {token: math.log(1 + (5 - n + 0.5) / (n + 0.5)) for token, n in (("dog", 1), ("cat", 2))}
    lengths = [len(tokenise(text)) for text in TEXTS]
    saturation = 1 / (1 + 1.5 * (1 - 0.75 + 0.75 * lengths[1] / (sum(lengths) / 5)))
    assert rows.tolist() == [1, 0]
    assert scores[0] == pytest.approx(saturation, rel=1e-5)
    assert scores[1] == pytest.approx(saturation * idf["cat"] / sum(idf.values()), rel=1e-5)


def test_an_unknown_word_lowers_the_score(index: LexicalIndex) -> None:
    _, known = index.search(["cat"], 1)
    _, mixed = index.search(["cat", "zebra"], 1)
    assert 0 < mixed[0] < known[0] / 2


def test_a_chinese_bigram_is_found(index: LexicalIndex) -> None:
    rows, _ = index.search(["海淀"], 10)
    assert rows.tolist() == [2]
    rows, _ = index.search(tokenise("清华大学"), 10)
    assert rows[0] == 3


def test_ties_are_ordered_by_row_even_across_the_cut(tmp_path: Path) -> None:
    build_lexical(["same words"] * 20, tmp_path)
    rows, _ = LexicalIndex.open(tmp_path).search(["same"], 5)
    assert rows.tolist() == [0, 1, 2, 3, 4]


def test_the_files_depend_on_the_texts_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build_lexical(iter(TEXTS), tmp_path / name)
    files = [
        {path.name: path.read_bytes() for path in sorted((tmp_path / name).iterdir())}
        for name in ("one", "two")
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize("texts", [[], ["", "the of"]])
def test_a_corpus_without_words_finds_nothing(tmp_path: Path, texts: list[str]) -> None:
    build_lexical(texts, tmp_path)
    index = LexicalIndex.open(tmp_path)
    assert index.rows == len(texts)
    assert index.search(["cat"], 5)[0].tolist() == []


def test_a_blank_or_unknown_query_finds_nothing(index: LexicalIndex) -> None:
    assert index.search([], 5)[0].tolist() == index.search(["zebra"], 5)[0].tolist() == []


def test_of_a_very_long_query_the_rarest_words_count(index: LexicalIndex) -> None:
    query = ["cat", "dog", *(f"unknown{number}" for number in range(MAX_QUERY_TOKENS - 1))]
    rows, _ = index.search(query, 5)
    assert rows.tolist() == [1]  # "cat", in two rows, is the one word too many


def test_a_missing_index_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"lexical index .*; rebuild"):
        LexicalIndex.open(tmp_path / "nowhere")
