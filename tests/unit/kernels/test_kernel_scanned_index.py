"""Nearest neighbours by a scan of codes: as near as the exact ones, the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hornbeam_kernels import search as kernel
from hornbeam_kernels.search import build_index, build_scanned_index, search


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def vectors() -> NDArray[np.float32]:
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((60, 48))
    return unit(centres[rng.integers(0, 60, 3000)] + rng.standard_normal((3000, 48)))


def test_questions_beside_the_data_find_their_neighbours(vectors: NDArray[np.float32]) -> None:
    rng = np.random.default_rng(6)
    asked = unit(vectors[:100] + vectors[rng.integers(0, 3000, 100)])
    _, exact = search(build_index(vectors), asked, 10)
    scores, found = search(build_scanned_index(vectors), asked, 10)
    met = [len(set(a) & set(b)) / 10 for a, b in zip(exact.tolist(), found.tolist(), strict=True)]
    assert np.mean(met) >= kernel.RECALL_TARGET
    np.testing.assert_allclose(scores, np.take_along_axis(asked @ vectors.T, found, axis=1), atol=1e-5)


def test_the_same_vectors_give_the_same_index_on_any_number_of_threads(vectors: NDArray[np.float32]) -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    made = []
    try:
        for threads in (1, 2):
            faiss.omp_set_num_threads(threads)
            made.append(faiss.serialize_index(build_scanned_index(vectors)))
    finally:
        faiss.omp_set_num_threads(before)
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize(("rows", "d"), [(0, 48), (1, 48), (100, 48), (1500, 46)])
def test_what_cannot_be_compressed_is_searched_as_ever(
    rows: int, d: int, vectors: NDArray[np.float32]
) -> None:
    few = unit(vectors[:rows, :d].astype(np.float64)) if rows else np.zeros((0, d), np.float32)
    _, found = search(build_scanned_index(few), few, 1)
    assert np.mean(found[:, 0] == np.arange(rows)) >= 0.9 if rows else found.shape == (0, 1)


def test_a_recall_that_codes_do_not_reach_goes_to_an_inverted_file(
    vectors: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    monkeypatch.setattr(kernel, "_recall_of_scan", lambda index, sample, factor: 0.0)
    assert isinstance(build_scanned_index(vectors), faiss.IndexIVF)


def test_arrays_that_are_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[n, d\]"):
        build_scanned_index(np.zeros(4, np.float32))
