"""The tree of communities as a whole: nothing vanishes, and no order of rows matters."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from hornbeam.evaluate.planted import Planting, planted_graph
from hornbeam_kernels.clustering import kmeans
from hornbeam_kernels.communities import Graph, Method, canonical_order, community_tree
from hornbeam_kernels.indexing import renumber
from hornbeam_kernels.partition import leiden
from support.kernel_references import graphs

PAPER = Method(representation="paper", merging="centres", refinements=0, threshold=0.4)
METHODS = [Method(), PAPER, Method(partitioner="leiden")]


def graph_of(g: dict[str, Any]) -> Graph:
    return Graph(g["entities"], g["types"], g["heads"], g["relations"], g["tails"])


def planted(seed: int, n: int = 400, **planting: Any) -> tuple[Graph, np.ndarray]:
    made = planted_graph(n, Planting(dimension=64, **planting), seed=seed)
    weights = np.random.default_rng(seed).integers(1, 4, len(made.heads)).astype(float)
    graph = Graph(made.entity_vectors, made.relation_vectors, made.heads, made.relations, made.tails, weights)
    return graph, made.labels


def shuffled(graph: Graph, rng: np.random.Generator) -> tuple[Graph, np.ndarray]:
    """The same graph with entities and triples in another order, and where each entity went."""
    n = len(graph.entity_vectors)
    order, triples = rng.permutation(n), rng.permutation(len(graph.heads))
    place = np.argsort(order)
    other = replace(
        graph,
        entity_vectors=graph.entity_vectors[order],
        heads=place[graph.heads[triples]],
        relations=graph.relations[triples],
        tails=place[graph.tails[triples]],
        weights=None if graph.weights is None else graph.weights[triples],
    )
    return other, order


@settings(max_examples=40, deadline=None)
@given(graphs(max_nodes=60), st.sampled_from(METHODS), st.integers(2, 20))
def test_every_level_partitions_every_graph(g: dict[str, Any], method: Method, max_size: int) -> None:
    tree = community_tree(graph_of(g), replace(method, max_size=max_size))
    assert len(tree.rows) == tree.counts.shape[0] == g["n"]
    for level in tree.levels:
        assert level.shape == (g["n"],)
        np.testing.assert_array_equal(level, renumber(level))
    for below, above in zip(tree.levels, tree.levels[1:], strict=False):
        assert len(set(zip(below.tolist(), above.tolist(), strict=True))) == len(set(below.tolist()))
    if g["n"]:
        assert np.bincount(tree.levels[0]).max() <= max_size


@pytest.mark.parametrize("method", METHODS, ids=["dual", "paper", "leiden"])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_entities_and_triples_changes_no_community(method: Method, seed: int) -> None:
    graph, _ = planted(seed)
    first = community_tree(graph, method)
    other, order = shuffled(graph, np.random.default_rng(seed + 1))
    second = community_tree(other, method)
    assert len(first.levels) == len(second.levels)
    for one, two in zip(first.levels, second.levels, strict=True):
        np.testing.assert_array_equal(renumber(one[order]), two)
    np.testing.assert_array_equal(first.rows[order], second.rows)  # to the last bit
    assert first.signals == second.signals


@pytest.mark.parametrize("method", METHODS, ids=["dual", "paper", "leiden"])
def test_equal_vectors_are_put_in_order_by_all_that_is_around_them(method: Method) -> None:
    rng = np.random.default_rng(3)
    heads, tails = rng.integers(0, 300, (2, 300))
    zeros = np.zeros(300, dtype=np.int64)
    graph = Graph(np.ones((300, 8)), np.ones((1, 8)), heads, zeros, tails, rng.random(300))
    other, order = shuffled(graph, rng)
    first, second = (community_tree(g, method).levels[0] for g in (graph, other))
    apart = np.unique(heads), np.unique(tails)
    told = np.isin(np.arange(300), np.union1d(*apart))  # entities without triples are interchangeable
    np.testing.assert_array_equal(renumber(first[order][told[order]]), renumber(second[told[order]]))


@pytest.mark.parametrize("factor", [2.0**-90, 0.5, 2.0**90])
def test_the_length_of_vectors_does_not_matter(factor: float) -> None:
    graph, _ = planted(1)
    scaled = replace(graph, entity_vectors=graph.entity_vectors * np.float32(factor))
    found = [community_tree(one).levels[0] for one in (graph, scaled)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("factor", [1e-30, 1 / 3, 1e30])
def test_lengths_that_round_differently_move_a_stray_at_most(factor: float) -> None:
    # Other bits are another canonical order and other seeds.
    graph, _ = planted(1)
    scaled = replace(graph, entity_vectors=graph.entity_vectors * np.float32(factor))
    found = [community_tree(one).levels[0] for one in (graph, scaled)]
    assert adjusted_rand_score(*found) > 0.98


@pytest.mark.parametrize("name", ["entity_vectors", "relation_vectors"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(name: str, bad: float) -> None:
    graph, _ = planted(1)
    vectors = getattr(graph, name).copy()
    vectors[0, 0] = bad
    with pytest.raises(ValueError, match=f"{name} holds NaN or infinity"):
        community_tree(replace(graph, **{name: vectors}))


@pytest.mark.parametrize("weights", [[1.0], [-1.0] * 1200, [np.nan] * 1200, [[1.0]] * 1200])
def test_weights_that_are_not_one_a_triple_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights must be 1200 finite numbers"):
        community_tree(replace(planted(1)[0], weights=weights))


def test_a_method_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no such partitioner"):
        Method(partitioner="louvain")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threshold"):
        Method(threshold=float("nan"))


def test_the_number_of_threads_changes_no_bit() -> None:
    code = (
        "import hashlib; from hornbeam.evaluate.planted import *; from hornbeam_kernels.communities import *;"
        "g = planted_graph(1500, Planting(relation_mixing=0.2, relation_types=800), seed=1);"
        "t = community_tree(Graph(g.entity_vectors, g.relation_vectors, g.heads, g.relations, g.tails));"
        "bits = t.rows.tobytes() + t.levels[0].tobytes();"
        "print(hashlib.md5(bits).hexdigest(), t.signals.relation_weight > 0)"
    )
    found = set()
    for threads in ("1", "2"):
        environment = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert found.pop().endswith("True\n")


def test_entities_of_one_vector_are_told_apart_by_their_surroundings() -> None:
    # Two names that are equal, one in each of two unlike neighbourhoods.
    vectors = np.array([[1.0, 0], [1, 0], [0, 1], [0.6, 0.8]])
    heads, types, tails = np.array([0, 1]), np.array([0, 0]), np.array([2, 3])
    order = canonical_order(vectors, np.ones((1, 2)), heads, types, tails)
    swapped = canonical_order(vectors, np.ones((1, 2)), np.array([1, 0]), types, tails)
    assert (np.argsort(order)[0] < np.argsort(order)[1]) == (np.argsort(swapped)[1] < np.argsort(swapped)[0])


@pytest.mark.parametrize(
    ("planting", "share"),
    [
        (Planting(mixing=0.2, noise=1.0), 1.0),
        (Planting(mixing=0.4, noise=2.0), 1.0),
        (Planting(mixing=0.2, noise=float("inf")), 0.95),
        (Planting(mixing=1.0, noise=1.0), 0.95),
        (Planting(mixing=1.0, noise=2.0), 0.95),
        (Planting(mixing=0.1, kinds=8, topic_weight=0.5, between_kinds=True), 0.95),
        (Planting(mixing=0.1, kinds=8, topic_weight=0.0, between_kinds=True), 0.95),
    ],
)
def test_two_signals_are_as_good_as_the_better_and_a_silent_one_does_little_harm(
    planting: Planting, share: float
) -> None:
    made = planted_graph(1000, planting, seed=5)
    graph = Graph(made.entity_vectors, made.relation_vectors, made.heads, made.relations, made.tails)
    found = community_tree(graph).levels[0]
    by_edges = leiden(made.heads, made.tails, None, 1000, max_size=1000)
    by_vectors = kmeans(made.entity_vectors, int(made.labels.max()) + 1)
    better = max(adjusted_rand_score(made.labels, labels) for labels in (by_edges, by_vectors))
    assert adjusted_rand_score(made.labels, found) >= share * better
