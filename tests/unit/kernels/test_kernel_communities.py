"""Clustering, merging, trees and partitions: degenerate shapes, determinism, memory, ground truth."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

from hornbeam.evaluate.planted import Planting, planted_graph
from hornbeam_kernels import clustering
from hornbeam_kernels.clustering import initial_cluster_count, kmeans, split_to_size
from hornbeam_kernels.communities import Graph, community_tree, initial_members
from hornbeam_kernels.dual_perception import (
    centres,
    centroids,
    community_counts,
    keywords,
    own_scores,
    relation_type_counts,
    structural_similarity,
)
from hornbeam_kernels.indexing import renumber
from hornbeam_kernels.merging import merge_communities
from hornbeam_kernels.partition import leiden, modularity
from hornbeam_kernels.representation import entity_representation
from hornbeam_kernels.tree import community_levels

STAR = (np.zeros(60, dtype=int), np.arange(1, 61))
SHAPES = {
    "nothing": (0, [], []),
    "one node": (1, [], []),
    "no edges": (5, [], []),
    "self-loop": (1, [0], [0]),
    "parallel edges": (2, [0] * 9, [1] * 9),
    "two components": (40, list(range(19)) + list(range(20, 39)), list(range(1, 20)) + list(range(21, 40))),
    "star": (61, *STAR),
}


def planted(
    n: int, topics: int, d: int = 16, noise: float = 0.3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, topics, n)
    x = rng.normal(size=(topics, d))[truth] + noise * rng.normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), truth


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("relation_types", [1, 0])
def test_the_whole_chain_covers_every_entity_of_any_shape(shape: str, relation_types: int) -> None:
    n, heads, tails = SHAPES[shape]
    if not relation_types:
        heads, tails = [], []
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for form in ("propagated", "paper"):
            x = entity_representation(
                rng.normal(size=(n, 8)),
                rng.normal(size=(relation_types, 8)),
                heads,
                np.zeros(len(heads), dtype=int),
                tails,
                form=form,  # type: ignore[arg-type]
            )
            length = np.linalg.norm(x, axis=1)
            np.testing.assert_allclose(length[length > 0], 1, atol=1e-5)
            counts = relation_type_counts(heads, np.zeros(len(heads), dtype=int), tails, n, relation_types)
            split = split_to_size(x, max_size=7)
            merged = merge_communities(x, counts, split, threshold=0.5, max_size=7)
            scores = own_scores(x, counts, merged)
            levels = community_levels(x, merged)
            walk = leiden(heads, tails, None, n, max_size=7)
            modularity(heads, tails, None, walk)
        m = len(set(merged.tolist()))
        assert len(centres(scores, merged)) == len(keywords(scores, merged, 3)) == m
        for labels in (split, merged, walk, *levels):
            assert len(labels) == n
            assert (labels >= 0).all()
        for labels in (split, merged, walk):
            assert np.bincount(labels, minlength=1).max() <= 7


def test_an_entity_without_triples_fills_the_slots_of_an_end() -> None:
    x = entity_representation([[3.0, 4.0]], [[1.0, 0.0]], [], [], [], form="paper")
    np.testing.assert_allclose(x, np.array([[0.6, 0.8, 0, 0, 0.6, 0.8]]) / np.sqrt(2), atol=1e-6)


def test_representation_refuses_what_does_not_fit() -> None:
    e, r = np.ones((2, 3)), np.ones((1, 3))
    with pytest.raises(ValueError, match="form"):
        entity_representation(e, r, [], [], [], form="other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dimensions"):
        entity_representation(e, r, [], [], [], dimensions=0)
    with pytest.raises(ValueError, match=r"\[n, d\]"):
        entity_representation(e, np.ones((1, 2)), [], [], [])
    with pytest.raises(ValueError, match="tails"):
        entity_representation(e, r, [0], [0], [2])


def test_initial_cluster_count_follows_the_paper() -> None:
    assert [initial_cluster_count(n) for n in (0, 1, 2, 15, 100, 1999, 10**6)] == [0, 1, 2, 2, 10, 199, 200]


def test_kmeans_finds_planted_clusters() -> None:
    x, truth = planted(400, 8, noise=0.05)
    np.testing.assert_array_equal(kmeans(x, 8), renumber(truth))


def test_faiss_takes_over_at_size_and_finds_the_same(monkeypatch: pytest.MonkeyPatch, capfd: object) -> None:
    x, truth = planted(400, 4, noise=0.05)
    monkeypatch.setattr(clustering, "SKLEARN_MAX_PAIRS", 100)
    np.testing.assert_array_equal(kmeans(x, 4, restarts=10), renumber(truth))
    assert capfd.readouterr().err == ""  # type: ignore[attr-defined]


def test_identical_rows_are_cut_by_index() -> None:
    labels = split_to_size(np.ones((25, 4), dtype=np.float32), max_size=10)
    assert np.bincount(labels).tolist() == [9, 8, 8]
    assert (np.diff(labels) >= 0).all()


def test_a_few_distinct_rows_among_many_copies_end_without_a_warning() -> None:
    x = np.repeat(np.eye(3, dtype=np.float32), 50, axis=0) + np.float32(0.0)
    x[0] *= -0.0  # −0 and 0 are the same row
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = split_to_size(x, max_size=20)
    assert np.bincount(labels).max() <= 20


def test_nothing_is_dropped_however_large_the_graph() -> None:
    x, _ = planted(3000, 40)
    labels = split_to_size(x, max_size=30, max_clusters=10, restarts=1)
    assert len(labels) == 3000
    assert np.bincount(labels).min() >= 1
    assert np.bincount(labels).max() <= 30


@pytest.mark.parametrize("bad", [np.full((3, 2), np.nan), np.zeros(3)])
def test_clustering_refuses_what_is_no_matrix_of_numbers(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="x "):
        split_to_size(bad, max_size=2)


@pytest.mark.parametrize("pairs", [10**9, 0])
def test_threads_do_not_change_the_clusters(pairs: int) -> None:
    code = f"""
import hashlib, numpy as np
from hornbeam_kernels import clustering
clustering.SKLEARN_MAX_PAIRS = {pairs}
x = np.random.default_rng(0).normal(size=(700, 80)).astype('f4')
print(hashlib.md5(clustering.split_to_size(x, max_size=20, restarts=2).tobytes()).hexdigest())
"""
    found = set()
    for threads in ("1", "4"):
        env = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        found.add(
            subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout
        )
    assert len(found) == 1


def test_communities_do_not_merge_in_chains() -> None:
    # Points on an arc, each close to the next only: single linkage would make one community of them.
    angle = np.arange(16) * 0.2
    x = np.stack((np.cos(angle), np.sin(angle)), axis=1).astype(np.float32)
    none = relation_type_counts([], [], [], 16, 1)
    merged = merge_communities(x, none, np.arange(16), threshold=0.15, max_size=16, structure_weight=0)
    assert 3 <= merged.max() + 1 < 16
    spread = [np.ptp(angle[merged == c]) for c in range(merged.max() + 1)]
    assert max(spread) < 1.5


def test_merging_respects_the_size_and_the_threshold() -> None:
    x = np.ones((12, 3), dtype=np.float32) / np.sqrt(np.float32(3))
    counts = relation_type_counts(np.arange(12), np.zeros(12, int), np.arange(12), 12, 1)
    assert np.bincount(merge_communities(x, counts, np.arange(12), threshold=0.1, max_size=5)).max() <= 5
    assert merge_communities(x, counts, np.arange(12), threshold=0.0, max_size=5).max() == 11


def test_merging_does_not_depend_on_the_numbers_of_the_communities() -> None:
    x, truth = planted(300, 10)
    rng = np.random.default_rng(1)
    counts = relation_type_counts(
        rng.integers(0, 300, 900), rng.integers(0, 5, 900), rng.integers(0, 300, 900), 300, 5
    )
    start = renumber(truth * 4 + rng.integers(0, 4, 300))
    merged = merge_communities(x, counts, start, threshold=0.5, max_size=60)
    shuffled = rng.permutation(int(start.max()) + 1)[start]
    np.testing.assert_array_equal(merged, merge_communities(x, counts, shuffled, threshold=0.5, max_size=60))


def test_mean_counts_keep_an_entity_comparable_with_a_large_community() -> None:
    n = 500  # all alike: every entity is the head of two triples
    counts = relation_type_counts(np.tile(np.arange(n), 2), np.zeros(2 * n, int), np.full(2 * n, n), n + 1, 1)
    labels = np.r_[np.zeros(n, int), 1]
    psi = community_counts(counts, labels)
    assert structural_similarity(counts[:1], psi)[0, 0] == pytest.approx(1.0)


def test_structural_blocks_stay_within_the_memory_limit() -> None:
    rng = np.random.default_rng(0)
    n, r, t = 2000, 200, 12000
    counts = relation_type_counts(rng.integers(0, n, t), rng.integers(0, r, t), rng.integers(0, n, t), n, r)
    means = community_counts(counts, rng.integers(0, 300, n))
    whole = structural_similarity(counts, means)
    tracemalloc.start()
    limited = structural_similarity(counts, means, memory_limit=500_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(limited, whole, atol=1e-6)
    assert peak < whole.nbytes + 4_000_000  # the result, the sparse codes, one block


def test_representation_never_builds_the_triples_by_dimension_matrix() -> None:
    rng = np.random.default_rng(0)
    n, d, t = 500, 64, 50_000
    columns = rng.integers(0, n, t), rng.integers(0, 5, t), rng.integers(0, n, t)
    e, r = rng.normal(size=(n, d)).astype("f4"), rng.normal(size=(5, d)).astype("f4")
    entity_representation(e, r, *columns)
    tracemalloc.start()
    x = entity_representation(e, r, *columns, memory_limit=100_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < t * 3 * d * 4 / 2
    np.testing.assert_allclose(x, entity_representation(e, r, *columns), atol=1e-5)


@pytest.mark.parametrize(("leaves", "levels"), [(1, 1), (30, 1), (60, 2), (600, 3)])
def test_larger_graphs_get_more_levels_and_each_coarsens_the_one_below(leaves: int, levels: int) -> None:
    x, _ = planted(max(leaves, 20), 5)
    found = community_levels(x, np.arange(len(x)) % leaves, restarts=1)
    assert len(found) == levels
    for below, above in itertools.pairwise(found):
        assert len(set(zip(below.tolist(), above.tolist(), strict=True))) == below.max() + 1
        assert above.max() < below.max()


def test_leiden_finds_two_cliques_and_is_repeatable() -> None:
    pairs = [(i, j) for base in (0, 10) for i in range(base, base + 10) for j in range(base, i)] + [(0, 10)]
    heads, tails = map(list, zip(*pairs, strict=True))
    labels = leiden(heads, tails, None, 21, max_size=15)
    assert labels.tolist() == [0] * 10 + [1] * 10 + [2]
    digest = {hashlib.md5(leiden(heads, tails, None, 21, max_size=15).tobytes()).digest() for _ in range(2)}
    assert len(digest) == 1


def test_a_clique_that_leiden_cannot_cut_still_respects_the_size() -> None:
    heads, tails = map(list, zip(*[(i, j) for i in range(30) for j in range(i)], strict=True))
    assert np.bincount(leiden(heads, tails, None, 30, max_size=8)).tolist() == [8, 7, 8, 7]


def test_weights_must_be_finite_and_not_negative() -> None:
    for weight in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="weights"):
            leiden([0], [1], [weight], 2)
    assert leiden([0], [1], [0.0], 2).tolist() == [0, 1]


def test_centroids_of_members_that_cancel_out_are_zero() -> None:
    np.testing.assert_array_equal(centroids([[1.0, 0.0], [-1.0, 0.0]], [0, 0]), [[0, 0]])


def _data() -> Path:
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    folder = Path(os.environ.get("HORNBEAM_DATA", beside)) / "community" / "lfr"
    if not folder.is_dir():
        pytest.skip(f"no LFR graphs at {folder}: set HORNBEAM_DATA to the evaluation data")
    return folder


@pytest.mark.data
@pytest.mark.parametrize(("mixing", "least"), [("0.1", 0.97), ("0.2", 0.95), ("0.3", 0.9)])
def test_propagated_form_recovers_lfr_communities_and_the_paper_form_does_not(
    mixing: str, least: float
) -> None:
    from sklearn.metrics import adjusted_rand_score

    folder = _data()
    edges = np.loadtxt(folder / f"lfr_n1000_mu{mixing}.edges.tsv", dtype=int)
    truth = np.loadtxt(folder / f"lfr_n1000_mu{mixing}.labels.tsv", dtype=int)
    truth = truth[np.argsort(truth[:, 0]), 1]
    rng = np.random.default_rng(1)
    flip = rng.random(len(edges)) < 0.5
    heads, tails = np.where(flip, edges[:, 0], edges[:, 1]), np.where(flip, edges[:, 1], edges[:, 0])
    relations = rng.integers(0, 20, len(edges))
    vectors = [rng.normal(size=(size, 384)) for size in (1000, 20)]
    vectors = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors]
    counts = relation_type_counts(heads, relations, tails, 1000, 20)
    found = {}
    for form in ("propagated", "paper"):
        x = entity_representation(*vectors, heads, relations, tails, form=form)  # type: ignore[arg-type]
        labels = merge_communities(x, counts, split_to_size(x, max_size=100), threshold=0.45, max_size=100)
        found[form] = adjusted_rand_score(truth, labels)
    assert found["propagated"] >= least
    assert found["paper"] < 0.3


def agreement(known: np.ndarray, found: np.ndarray) -> float:
    """Adjusted Rand index."""
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed (extra cpu)")
    return float(metrics.adjusted_rand_score(known, found))


@pytest.mark.parametrize(
    ("similarity", "members"), [(0.0, 10), (0.05, 10), (0.5, 4), (0.4, 6), (0.9, 3), (1.0, 3)]
)
def test_the_clearer_the_vectors_the_smaller_the_first_clusters(similarity: float, members: int) -> None:
    assert initial_members(similarity, 10) == members


def test_no_more_members_than_were_asked_for() -> None:
    assert initial_members(0.5, 2) == 2


@pytest.mark.parametrize("sizes", [(3, 8), (6, 12)])
def test_small_communities_are_found_where_vectors_are_clear(sizes: tuple[int, int]) -> None:
    planting = Planting(mixing=0.2, noise=1.0, smallest=sizes[0], largest=sizes[1])
    made = planted_graph(600, planting, seed=1)
    columns = made.entity_vectors, made.relation_vectors, made.heads, made.relations, made.tails
    leaves = community_tree(Graph(*columns)).levels[0]
    assert agreement(made.labels, leaves) > 0.95


def test_small_dense_communities_are_not_joined_for_their_modularity() -> None:
    """Silent vectors: Leiden's communities have the higher modularity and are too large."""
    planting = Planting(mixing=0.2, noise=float("inf"), smallest=6, largest=12, degree=8)
    made = planted_graph(600, planting, seed=1)
    columns = made.entity_vectors, made.relation_vectors, made.heads, made.relations, made.tails
    leaves = community_tree(Graph(*columns)).levels[0]
    by_edges = leiden(made.heads, made.tails, None, 600)
    ours, theirs = (modularity(made.heads, made.tails, None, labels) for labels in (leaves, by_edges))
    assert ours < theirs
    assert agreement(made.labels, leaves) > agreement(made.labels, by_edges) + 0.2
