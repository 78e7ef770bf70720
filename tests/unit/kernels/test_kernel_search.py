"""Nearest neighbours: the edges of the domain, and an inverted file that reaches its recall, repeatably."""

from __future__ import annotations

import os
import subprocess
import sys

import faiss
import numpy as np
import pytest

from hornbeam_kernels import search as kernel_search
from hornbeam_kernels.search import (
    MAX_LISTS,
    RECALL_TARGET,
    build_index,
    fewest_probes,
    search,
)


def clustered(n: int, d: int = 32, topics: int = 80, noise: float = 0.7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(topics, d))[rng.integers(0, topics, n)] + noise * rng.normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def recall(index: object, x: np.ndarray, queries: np.ndarray, own: np.ndarray | None = None) -> float:
    """Recall@10; with ``own``, a query's own row is no neighbour of it."""
    products = queries @ x.T
    if own is not None:
        products[np.arange(len(own)), own] = -np.inf
    truth = np.argsort(-products, axis=1, kind="stable")[:, :10]
    found = search(index, queries, 11)[1]
    hits = [
        len((set(row.tolist()) - ({own[i]} if own is not None else {int(row[-1])})) & set(truth[i].tolist()))
        for i, row in enumerate(found)
    ]
    return float(np.mean(hits)) / 10


def test_search_pads_where_there_is_nothing_to_find() -> None:
    scores, ids = search(build_index(np.zeros((0, 3))), np.ones((2, 3)), 4)
    assert (ids == -1).all()
    assert np.isneginf(scores).all()
    assert search(build_index(np.eye(3)), np.zeros((0, 3)), 2)[1].shape == (0, 2)
    with pytest.raises(ValueError, match=r"\[q, 3\]"):
        search(build_index(np.eye(3)), np.ones((1, 2)), 1)
    with pytest.raises(ValueError, match=r"\[n, d\]"):
        build_index(np.ones(3))
    with pytest.raises(ValueError, match="k must"):
        search(build_index(np.eye(3)), np.ones((1, 3)), -1)


def test_the_type_of_the_index_follows_the_number_of_vectors() -> None:
    x = clustered(300)
    assert isinstance(build_index(x), faiss.IndexFlat)
    assert isinstance(build_index(x, exact_below=300), faiss.IndexIVFFlat)
    assert isinstance(build_index(x, exact_below=301), faiss.IndexFlat)
    assert isinstance(build_index(x[:1], exact_below=0), faiss.IndexFlat)  # nothing to be near to


@pytest.mark.parametrize("noise", [0.4, 1.2])
def test_an_inverted_file_reaches_its_recall_for_stored_and_for_other_queries(
    noise: float, capfd: pytest.CaptureFixture[str]
) -> None:
    x = clustered(12_000, noise=noise)
    index = build_index(x, exact_below=5_000)
    assert 1 <= index.nprobe < index.nlist  # not by looking everywhere
    rng = np.random.default_rng(9)
    own = rng.choice(len(x), 400, replace=False)
    assert recall(index, x, x[own], own) >= RECALL_TARGET
    between = x[own] + x[rng.integers(0, len(x), 400)]
    assert recall(index, x, between / np.linalg.norm(between, axis=1, keepdims=True)) >= RECALL_TARGET
    assert capfd.readouterr().err == ""


def test_a_stored_vector_that_finds_itself_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(6_000, 48)).astype(np.float32)
    measured = []

    def see(order: np.ndarray, home: np.ndarray) -> int:
        measured.append(float((order[:, 0] == home[:, 0]).mean()))  # nearest neighbour in nearest list
        return 1

    monkeypatch.setattr(kernel_search, "fewest_probes", see)
    build_index(x, exact_below=5_000)
    # All of them, nearly, were a stored vector its own nearest neighbour.
    assert len(measured) == 2
    assert max(measured) < 0.5


def test_the_fewest_probes_are_those_that_searching_would_need() -> None:
    rng = np.random.default_rng(0)
    order = np.array([rng.permutation(30) for _ in range(50)])
    home = np.take_along_axis(order, rng.integers(0, 12, (50, 10)), axis=1)
    chosen = fewest_probes(order, home)
    by_searching = []
    for probes in range(1, 31):
        found = [np.isin(home[i], order[i, :probes]).mean() for i in range(50)]
        by_searching.append(np.mean(found) - 2 * np.std(found) / np.sqrt(49) >= RECALL_TARGET)
    assert chosen == by_searching.index(True) + 1
    assert 1 < chosen <= 12
    assert fewest_probes(order, order[:, :1]) == 1
    assert fewest_probes(order, order[:, -1:]) == 30


def test_copies_of_one_vector_are_found_in_one_list() -> None:
    index = build_index(np.tile(np.eye(4, dtype=np.float32)[:1], (2_000, 1)), exact_below=100)
    scores, ids = search(index, np.eye(4, dtype=np.float32)[:1], 10)
    np.testing.assert_allclose(scores, 1.0)
    assert len(set(ids[0].tolist())) == 10


@pytest.mark.parametrize("d", [32, 200])
def test_threads_do_not_change_the_index_or_what_it_finds(d: int) -> None:
    code = f"""
import hashlib, faiss, numpy as np
from hornbeam_kernels.search import build_index, search
x = np.random.default_rng(0).normal(size=(7001, {d})).astype("f4")
index = build_index(x, exact_below=5000)
digest = hashlib.md5(faiss.serialize_index(index))
for queries in (x[:1], x[:333]):
    for part in (*search(index, queries, 10), *search(build_index(x), queries, 10)):
        digest.update(part.tobytes())
print(digest.hexdigest(), index.nprobe)
"""
    found = set()
    for threads in ("1", "2", "5"):
        env = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
        found.add(ran.stdout)
    assert len(found) == 1


def test_lists_are_never_more_than_a_gpu_can_probe() -> None:
    x = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    assert build_index(x, exact_below=5).nlist == 4
    assert kernel_search._lists(10**6) == 1000
    assert kernel_search._lists(10**9) == MAX_LISTS
