"""Every kernel that takes a backend, against plain loops, the same assertions on every backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import networkx
import numpy as np
import pytest

from hornbeam_kernels import cuda_libraries, density
from hornbeam_kernels.backend import Backend, block_rows, select_backend
from hornbeam_kernels.communities import Graph, Method, community_tree
from hornbeam_kernels.density import dbscan
from hornbeam_kernels.dual_perception import (
    centroids,
    community_counts,
    own_scores,
    relation_type_counts,
    structural_similarity,
)
from hornbeam_kernels.indexing import members_by_community, renumber
from hornbeam_kernels.merging import merge_communities
from hornbeam_kernels.partition import connected_components, leiden, modularity
from hornbeam_kernels.propagation import principal_axes
from hornbeam_kernels.ranking import personalised_pagerank, ranking_graph
from hornbeam_kernels.refining import refine_communities
from hornbeam_kernels.representation import entity_representation
from hornbeam_kernels.search import build_index, search
from hornbeam_kernels.signals import Signals, measure_signals
from support.kernel_references import (
    centre_fit_by_loops,
    communities_by_loops,
    dbscan_by_loops,
    jaccard_by_loops,
    merge_by_loops,
    pagerank_by_solving,
    propagated_by_loops,
    slots_by_loops,
    type_counts,
    unit,
)

Part = Callable[[str], None]


def graph(n: int, r: int, t: int, d: int = 6, seed: int = 0) -> dict[str, Any]:
    """A random multigraph with loops, its last nodes without triples."""
    rng = np.random.default_rng(seed)
    ends = max(1, n - 2)
    return {
        "n": n,
        "r": r,
        "heads": rng.integers(0, ends, t),
        "relations": rng.integers(0, max(1, r), t),
        "tails": rng.integers(0, ends, t),
        "entities": rng.normal(size=(n, d)),
        "types": rng.normal(size=(r, d)),
        "rng": rng,
    }


GRAPHS = {
    "empty": graph(0, 0, 0),
    "no triples": graph(5, 2, 0),
    "one loop": {**graph(1, 1, 1), "heads": np.array([0]), "tails": np.array([0])},
    "sparse": graph(30, 4, 25, seed=1),
    "dense": graph(24, 3, 160, seed=2),
}
every_graph = pytest.mark.parametrize("g", GRAPHS.values(), ids=GRAPHS)


def represent(g: dict[str, Any], **options: Any) -> np.ndarray:
    return entity_representation(g["entities"], g["types"], g["heads"], g["relations"], g["tails"], **options)


def counts_of(g: dict[str, Any], backend: Backend) -> Any:
    return relation_type_counts(g["heads"], g["relations"], g["tails"], g["n"], g["r"], backend=backend)


@every_graph
@pytest.mark.parametrize("limit", [None, 64])
def test_the_papers_representation_is_the_mean_over_touching_triples(
    backend: Backend, g: dict[str, Any], limit: int | None
) -> None:
    x = represent(g, form="paper", backend=backend, memory_limit=limit)
    expected = np.array([unit(slots.reshape(-1)) for slots in slots_by_loops(g)])
    assert isinstance(x, np.ndarray)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, expected.reshape(x.shape), atol=1e-5)


@every_graph
@pytest.mark.parametrize("hops", [0, 1, 2])
@pytest.mark.parametrize("relation_weight", [0.0, 0.7])
def test_the_propagated_representation_adds_up_neighbours_and_relation_types(
    backend: Backend, g: dict[str, Any], hops: int, relation_weight: float
) -> None:
    signals = Signals(hops=hops, neighbour_weight=0.4, relation_weight=relation_weight)
    x = represent(g, signals=signals, backend=backend)
    expected = propagated_by_loops(g, signals)
    # The relation slot comes in another basis: lengths and angles are what must agree.
    np.testing.assert_allclose(x @ x.T, expected @ expected.T, atol=2e-3)


@pytest.mark.parametrize("n", [10, 300])
def test_signals_are_measured_alike(backend: Backend, part: Part, n: int) -> None:
    part("neighbours")
    g = graph(n, 4, 3 * n, d=24, seed=6)
    topic = np.arange(n) % 5
    g["entities"] += 2 * np.random.default_rng(1).normal(size=(5, 24))[topic]
    columns = g["entities"], g["types"], g["heads"], g["relations"], g["tails"]
    found, expected = (measure_signals(*columns, backend=b) for b in (backend, select_backend("cpu")))
    assert found.hops == expected.hops
    for name in ("similarity", "agreement", "neighbour_weight", "relation_weight"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-3)
    assert (found == Signals()) == (n == 10)  # too few to measure anything


def test_principal_axes_are_those_of_the_singular_value_decomposition(backend: Backend) -> None:
    x = np.random.default_rng(0).normal(size=(60, 8)) * np.array([9, 7, 5, 3, 1, 1, 1, 1])
    x = x.astype(np.float32)
    mean = x.mean(axis=0, keepdims=True)
    axes = backend.to_numpy(principal_axes(backend.asarray(x), backend.asarray(mean), 3, backend))
    expected = np.linalg.svd(x - mean, full_matrices=False)[2][:3].T
    np.testing.assert_allclose(np.abs(axes.T @ expected), np.eye(3), atol=1e-3)


@every_graph
@pytest.mark.parametrize("limit", [None, 64])
def test_structural_similarity_is_the_multiset_jaccard(
    backend: Backend, g: dict[str, Any], limit: int | None
) -> None:
    counts, dense = counts_of(g, backend), type_counts(g)
    np.testing.assert_array_equal(backend.to_numpy(counts.toarray()), dense)
    labels = renumber(np.arange(g["n"]) % 3)
    means = [dense[members].mean(axis=0) for members in members_by_community(labels)]
    for other, rows in ((counts, dense), (community_counts(counts, labels, backend=backend), means)):
        block = backend.to_numpy(structural_similarity(counts, other, backend=backend, memory_limit=limit))
        assert block.shape == (g["n"], len(rows))
        for i, j in itertools.product(range(g["n"]), range(len(rows))):
            assert block[i, j] == pytest.approx(jaccard_by_loops(dense[i], rows[j]), abs=1e-5)


@every_graph
@pytest.mark.parametrize("w", [0.0, 0.3, 1.0])
def test_scores_and_centroids_follow_the_formula(backend: Backend, g: dict[str, Any], w: float) -> None:
    x, labels = represent(g), renumber(np.arange(g["n"]) % 4)
    scores = own_scores(x, counts_of(g, backend), labels, w, backend=backend)
    expected, middle, _, _ = communities_by_loops(x, type_counts(g), labels, w)
    assert isinstance(scores, np.ndarray)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    means = backend.to_numpy(centroids(x, labels, backend=backend))
    np.testing.assert_allclose(means, np.array(middle).reshape(means.shape), atol=1e-5)


@pytest.mark.parametrize("form", ["calibrated", "centres"])
@pytest.mark.parametrize("candidates", [99, 3])
@pytest.mark.parametrize("seed", range(3))
def test_merging_is_that_of_plain_rounds(
    backend: Backend, part: Part, seed: int, candidates: int, form: Any
) -> None:
    part("neighbours")
    g = graph(40, 4, 60, seed=seed)
    x, start = represent(g, form="paper"), renumber(g["rng"].integers(0, 25, 40))
    options: dict[str, Any] = {"threshold": 0.5, "max_size": 12, "candidates": candidates, "form": form}
    merged = merge_communities(x, counts_of(g, backend), start, backend=backend, **options)
    assert merged.dtype == np.int32
    np.testing.assert_array_equal(merged, renumber(merged))
    assert np.bincount(merged).max() <= 12
    assert merged.max() < start.max()
    if form == "centres" and candidates == 99:
        fit = partial(centre_fit_by_loops, x, type_counts(g), w=0.3)
        np.testing.assert_array_equal(merged, merge_by_loops(fit, start, 0.5, 12))
    else:
        cpu = select_backend("cpu")
        np.testing.assert_array_equal(merged, merge_communities(x, counts_of(g, cpu), start, **options))


@pytest.mark.parametrize("candidates", [99, 2])
def test_refining_is_that_of_the_cpu_and_keeps_the_size(
    backend: Backend, part: Part, candidates: int
) -> None:
    part("neighbours")
    g = graph(60, 4, 120, seed=3)
    x, start = represent(g, form="paper"), renumber(np.arange(60) % 7)
    options = {"max_size": 12, "candidates": candidates}
    refined = refine_communities(x, start, backend=backend, **options)
    assert np.bincount(refined).max() <= 12
    assert not np.array_equal(refined, start)
    np.testing.assert_array_equal(refined, refine_communities(x, start, **options))


@every_graph
@pytest.mark.parametrize("partitioner", ["dual", "leiden"])
def test_the_whole_tree_covers_every_entity(
    backend: Backend, part: Part, g: dict[str, Any], partitioner: Any
) -> None:
    for name in ("kmeans", "leiden", "neighbours"):
        part(name)
    columns = g["entities"], g["types"], g["heads"], g["relations"], g["tails"]
    tree = community_tree(Graph(*columns), Method(partitioner=partitioner, max_size=8), backend=backend)
    for labels in tree.levels:
        assert labels.shape == (g["n"],)
        np.testing.assert_array_equal(labels, renumber(labels))
    assert np.bincount(tree.levels[0], minlength=1).max() <= 8


def planted(n: int = 90, topics: int = 6, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    truth = np.arange(n) % topics
    x = 4 * rng.normal(size=(topics, d))[truth] + 0.1 * rng.normal(size=(n, d))
    return x.astype(np.float32), truth


def test_kmeans_finds_planted_clusters_and_their_inertia(backend: Backend, part: Part) -> None:
    part("kmeans")
    x, truth = planted()
    if not backend.on_device:
        from hornbeam_kernels.clustering import kmeans

        np.testing.assert_array_equal(kmeans(x, 6), renumber(truth))
        return
    labels, inertia = cuda_libraries.kmeans(x, 6, backend=backend)
    np.testing.assert_array_equal(labels, renumber(truth))
    assert labels.dtype == np.int32
    middles = np.array([x[truth == c].mean(axis=0) for c in range(6)])
    assert inertia == pytest.approx(float(((x - middles[truth]) ** 2).sum()), rel=1e-3)


@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 1), (4, 9)])
def test_kmeans_of_few_rows_gives_each_a_label(backend: Backend, part: Part, n: int, k: int) -> None:
    part("kmeans")
    x = np.eye(4, dtype=np.float32)[:n]
    if backend.on_device:
        labels, inertia = cuda_libraries.kmeans(x, k, backend=backend)
        assert inertia == pytest.approx(0.0, abs=1e-5)
    else:
        from hornbeam_kernels.clustering import kmeans

        labels = kmeans(x, k)
    assert labels.tolist() == list(range(n))


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("limit", [None, 64])
@pytest.mark.parametrize(("eps", "min_samples"), [(0.02, 2), (0.05, 4), (0.2, 3)])
def test_dbscan_finds_what_lies_densely(
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    library: bool,
    limit: int | None,
    eps: float,
    min_samples: int,
) -> None:
    monkeypatch.setattr(density, "DEVICE_MIN_ROWS", 2)
    if not library:
        monkeypatch.setattr(cuda_libraries, "has_dbscan", lambda: False)
    x, _ = planted(60, 4, d=3)
    x = np.concatenate((x, x[:7], -x[:3], np.zeros((1, 3)), np.random.default_rng(0).normal(size=(9, 3))))
    labels = dbscan(x, eps=eps, min_samples=min_samples, backend=backend, memory_limit=limit)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, dbscan_by_loops(x, eps, min_samples))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_dbscan_of_few_rows(backend: Backend, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(density, "DEVICE_MIN_ROWS", 0)
    x = np.eye(4, dtype=np.float32)[:n]
    assert dbscan(x, eps=0.5, min_samples=1, backend=backend).tolist() == list(range(n))
    assert dbscan(x, eps=0.5, min_samples=2, backend=backend).tolist() == [-1] * n
    assert dbscan(0 * x, eps=2, min_samples=1, backend=backend).tolist() == [-1] * n


def test_communities_of_cliques_are_the_cliques(backend: Backend, part: Part) -> None:
    part("leiden")
    heads, tails = [], []
    for base in range(0, 40, 10):
        for i, j in itertools.combinations(range(base, base + 10), 2):
            heads += [i, j]  # parallel edges, both ways round
            tails += [j, i]
    heads, tails = [*heads, 0, 10, 5], [*tails, 10, 20, 5]
    labels = leiden(heads, tails, None, 41, max_size=15, backend=backend)
    assert labels.tolist() == [c for c in range(4) for _ in range(10)] + [4]


def test_communities_above_the_size_are_partitioned_again(backend: Backend, part: Part) -> None:
    """A ring of cliques: modularity alone joins neighbouring ones (Fortunato and Barthélemy 2007)."""
    part("leiden")
    cliques, size = 60, 5
    edges = [
        (size * c + i, size * c + j)
        for c in range(cliques)
        for i, j in itertools.combinations(range(size), 2)
    ]
    edges += [(size * c + 4, size * (c + 1) % (cliques * size)) for c in range(cliques)]
    shuffled = np.random.default_rng(2).permutation(cliques * size)
    heads, tails = shuffled[np.array(edges)].T
    truth = np.empty(cliques * size, dtype=np.int64)
    truth[shuffled] = np.arange(cliques * size) // size
    whole = leiden(heads, tails, None, cliques * size, max_size=1000, backend=backend)
    assert np.bincount(whole).max() > size
    split = leiden(heads, tails, None, cliques * size, max_size=size, backend=backend)
    np.testing.assert_array_equal(split, renumber(truth))


@pytest.mark.parametrize("max_size", [1, 7, 40])
def test_communities_stay_within_the_size_and_keep_every_node(
    backend: Backend, part: Part, max_size: int
) -> None:
    part("leiden")
    g = graph(120, 1, 300, seed=4)
    labels = leiden(g["heads"], g["tails"], None, 120, max_size=max_size, backend=backend)
    assert labels.shape == (120,)
    np.testing.assert_array_equal(labels, renumber(labels))
    assert np.bincount(labels).max() <= max_size
    star = leiden([0] * 60, list(range(1, 61)), None, 61, max_size=max_size, backend=backend)
    assert np.bincount(star).max() <= max_size
    assert leiden([], [], None, 3, backend=backend).tolist() == [0, 1, 2]
    assert leiden([], [], None, 0, backend=backend).tolist() == []


def test_communities_are_of_good_modularity(backend: Backend, part: Part) -> None:
    part("leiden")
    planted_graph = networkx.planted_partition_graph(8, 25, 0.4, 0.01, seed=1)
    heads, tails = zip(*planted_graph.edges, strict=True)
    truth = np.arange(200) // 25
    labels = leiden(heads, tails, None, 200, max_size=60, backend=backend)
    planted_q = modularity(heads, tails, None, truth)
    assert modularity(heads, tails, None, labels) >= planted_q - 0.02


@every_graph
def test_components_are_those_of_networkx(backend: Backend, part: Part, g: dict[str, Any]) -> None:
    part("components")
    plain = networkx.Graph()
    plain.add_nodes_from(range(g["n"]))
    plain.add_edges_from(zip(g["heads"].tolist(), g["tails"].tolist(), strict=True))
    labels = connected_components(g["heads"], g["tails"], g["n"], backend=backend)
    np.testing.assert_array_equal(labels, renumber(labels))
    found = {frozenset(members.tolist()) for members in members_by_community(labels)}
    assert found == {frozenset(component) for component in networkx.connected_components(plain)}


@every_graph
@pytest.mark.parametrize("limit", [None, 64])
def test_personalised_pagerank_solves_its_equation(
    backend: Backend, g: dict[str, Any], limit: int | None
) -> None:
    walks = ranking_graph(g["heads"], g["tails"], g["n"], backend=backend)
    queries = np.random.default_rng(5).random((g["n"], 3)) + 0.01
    p = personalised_pagerank(walks, queries, memory_limit=limit)
    assert isinstance(p, np.ndarray)
    assert p.shape == (g["n"], 3)
    for column in range(3 if g["n"] else 0):
        expected = pagerank_by_solving(g, queries[:, column], 0.85)
        np.testing.assert_allclose(p[:, column], expected, atol=1e-6)
        alone = personalised_pagerank(walks, queries[:, column])
        np.testing.assert_allclose(alone, expected, atol=1e-6)


@pytest.mark.parametrize(("n", "q", "k"), [(0, 2, 3), (1, 1, 1), (40, 3, 7), (5, 2, 9), (6, 0, 2)])
def test_exact_search_sorts_all_products(backend: Backend, part: Part, n: int, q: int, k: int) -> None:
    part("neighbours")
    rng = np.random.default_rng(n)
    stored, asked = rng.normal(size=(n, 5)).astype("f4"), rng.normal(size=(q, 5)).astype("f4")
    scores, ids = search(build_index(stored, backend=backend), asked, k)
    assert scores.shape == ids.shape == (q, k)
    assert (scores.dtype, ids.dtype) == (np.float32, np.int64)
    for row in range(q):
        order = np.argsort(-(stored @ asked[row]), kind="stable")[:k]
        assert ids[row, : len(order)].tolist() == order.tolist()
        np.testing.assert_allclose(scores[row, : len(order)], (stored @ asked[row])[order], atol=1e-4)
        assert (ids[row, len(order) :] == -1).all()
        assert np.isneginf(scores[row, len(order) :]).all()


def test_an_approximate_index_reaches_its_recall(backend: Backend, part: Part) -> None:
    part("neighbours")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 24))[rng.integers(0, 60, 6000)] + 0.6 * rng.normal(size=(6000, 24))
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype("f4")
    index = build_index(x, exact_below=1000, backend=backend)
    own = rng.choice(6000, 300, replace=False)
    truth = np.argsort(-(x[own] @ x.T), axis=1, kind="stable")[:, 1:11]  # itself left out
    found = search(index, x[own], 11)[1]
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(truth.tolist(), found.tolist(), strict=True)])
    assert recall >= 0.95


def test_block_sizes_follow_the_memory_of_the_arrays(backend: Backend) -> None:
    free = backend.free_memory()
    assert free > 0
    rows = block_rows(1, backend=backend)
    assert 0.1 * free <= rows <= 0.5 * free + 1  # a quarter, and other processes move
    assert block_rows(100, 1_000, backend) == 10
