import array
import math
import tempfile
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam.errors import StoreError
from hornbeam.index.lexical import MAX_QUERY_TOKENS, LexicalIndex, build_lexical, update_lexical
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


def test_the_columns_are_those_of_bm25s(index: LexicalIndex) -> None:
    vocabulary: dict[str, int] = {}
    ids = [array.array("i", [vocabulary.setdefault(w, len(vocabulary)) for w in tokenise(t)]) for t in TEXTS]
    peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend="numpy", csc_backend="scipy")
    scores = peer.build_index_from_ids(range(len(vocabulary)), ids, show_progress=False)
    assert index.bm25.vocab_dict == vocabulary
    for name in ("data", "indices", "indptr"):
        assert index.bm25.scores[name].dtype == scores[name].dtype
        assert np.array_equal(index.bm25.scores[name], scores[name])


MANY = [*TEXTS, "", "the of", "a cat, a cat, a cat"]


@given(
    before=st.lists(st.sampled_from(MANY), max_size=6),
    now=st.lists(st.one_of(st.integers(0, 5), st.sampled_from(MANY)), max_size=8),
)
@settings(max_examples=30, deadline=None)
def test_an_index_that_follows_another_has_the_files_of_one_from_scratch(
    before: list[str], now: list[int | str]
) -> None:
    """Numbers are rows of the index before; a text may be new and yet stand there, too."""
    places = [place if isinstance(place, int) and place < len(before) else -1 for place in now]
    texts = [before[p] if p >= 0 else str(one) for p, one in zip(places, now, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        old, new, scratch = (Path(folder) / name for name in ("old", "new", "scratch"))
        build_lexical(before, old)
        build_lexical(texts, scratch)
        rows = np.array(places, np.int64)
        assert update_lexical(rows, lambda some: [texts[r] for r in some.tolist()], old, new) == len(now)
        for path in scratch.iterdir():
            assert (new / path.name).read_bytes() == path.read_bytes(), path.name
        assert {path.name for path in new.iterdir()} == {path.name for path in scratch.iterdir()}


def test_an_index_of_fewer_rows_than_are_taken_over_is_refused(tmp_path: Path) -> None:
    build_lexical(TEXTS, tmp_path / "old")
    with pytest.raises(StoreError, match=r"5 rows where the table has row 7; rebuild"):
        update_lexical(np.array([0, 7]), lambda rows: [], tmp_path / "old", tmp_path / "new")


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
    with pytest.raises(StoreError, match=r"nowhere/index\.json is missing; run 'hornbeam audit"):
        LexicalIndex.open(tmp_path / "nowhere")
