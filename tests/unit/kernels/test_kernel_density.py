"""DBSCAN beside the library's, where memory and order matter."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from hornbeam_kernels.backend import one_thread
from hornbeam_kernels.density import NOISE, dbscan
from hornbeam_kernels.indexing import renumber


def topics(n: int, count: int, spread: float, d: int = 32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, count, n)
    return (rng.normal(size=(count, d))[truth] + spread * rng.normal(size=(n, d))).astype(np.float32), truth


def test_topics_are_found_and_strays_left_out() -> None:
    x, truth = topics(500, 6, 0.2)
    strays = np.random.default_rng(1).normal(size=(20, 32))
    labels = dbscan(np.concatenate((x, strays)), eps=0.15, min_samples=4)
    np.testing.assert_array_equal(labels[:500], renumber(truth))
    assert (labels[500:] == NOISE).all()


@pytest.mark.parametrize("eps", [0.02, 0.1, 0.3])
def test_core_rows_are_those_of_scikit_learn(eps: float) -> None:
    sklearn = pytest.importorskip("sklearn.cluster", reason="scikit-learn is not installed (extra cpu)")
    x, _ = topics(800, 10, 0.5)
    with one_thread():  # OpenMP threads wait for one another on a busy machine
        expected = sklearn.DBSCAN(eps=eps, min_samples=5, metric="cosine").fit(x)
    labels = dbscan(x, eps=eps, min_samples=5)
    core = expected.core_sample_indices_
    np.testing.assert_array_equal(renumber(labels[core]), renumber(expected.labels_[core]))
    np.testing.assert_array_equal(labels == NOISE, expected.labels_ == NOISE)  # borders: same rows


def test_a_chain_across_blocks_is_one_cluster() -> None:
    angle = np.random.default_rng(0).permutation(np.linspace(0, 3, 600))
    x = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    assert (dbscan(x, eps=2e-5, min_samples=2, memory_limit=20_000) == 0).all()
    assert (dbscan(x, eps=1e-6, min_samples=2, memory_limit=20_000) == NOISE).all()


def test_memory_keeps_to_the_limit_where_all_rows_are_neighbours() -> None:
    x, _ = topics(4000, 1, 0.05, d=8)
    tracemalloc.start()
    try:
        labels = dbscan(x, eps=0.5, min_samples=2, memory_limit=2_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (labels == 0).all()
    assert peak < 6_000_000  # every neighbour as one byte would be 16 MB


def test_copies_count_as_rows() -> None:
    x = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    assert dbscan(x, eps=0.0, min_samples=3).tolist() == [0, 0, 0, NOISE]
    assert dbscan(2 * x, eps=0.0, min_samples=4).tolist() == [NOISE] * 4


@pytest.mark.parametrize(
    ("x", "eps", "min_samples", "said"),
    [
        (np.ones(3), 0.1, 2, "finite"),
        (np.full((2, 2), np.nan), 0.1, 2, "finite"),
        (np.ones((2, 2)), -0.1, 2, "eps"),
        (np.ones((2, 2)), float("nan"), 2, "eps"),
        (np.ones((2, 2)), 0.1, 0, "min_samples"),
    ],
)
def test_senseless_arguments_are_refused(x: np.ndarray, eps: float, min_samples: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dbscan(x, eps=eps, min_samples=min_samples)
