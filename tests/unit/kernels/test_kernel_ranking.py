"""Personalised PageRank at the edges of its domain: hubs, dangling nodes, memory, threads, refusals."""

from __future__ import annotations

import tracemalloc
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse

from hornbeam_kernels.ranking import NotConvergedError, personalised_pagerank, ranking_graph


def random_graph(n: int, triples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, n, triples), rng.integers(0, n, triples)


def few_seeds(n: int, queries: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    v = np.zeros((n, queries))
    for q in range(queries):
        v[rng.choice(n, 3, replace=False), q] = rng.random(3) + 0.1
    return v


def test_without_a_personalisation_it_is_pagerank_itself() -> None:
    heads, tails = random_graph(200, 500)
    graph = networkx.MultiGraph(list(zip(heads.tolist(), tails.tolist(), strict=True)))
    graph.add_nodes_from(range(200))
    expected = networkx.pagerank(graph, tol=1e-12, max_iter=1000)
    p = personalised_pagerank(ranking_graph(heads, tails, 200))
    np.testing.assert_allclose(p, [expected[i] for i in range(200)], rtol=0, atol=1e-6)


def test_what_dangling_nodes_hold_goes_back_to_the_seeds() -> None:
    # 0 → 1, and 1 leads nowhere: p₀ = (1 − a) + a p₁, p₁ = a p₀. Node 2 is never met.
    p = personalised_pagerank(ranking_graph([0], [1], 3, directed=True), [1.0, 0.0, 0.0], damping=0.5)
    np.testing.assert_allclose(p, [1 / 1.5, 0.5 / 1.5, 0.0], atol=1e-6)


def test_a_seed_without_edges_keeps_everything() -> None:
    p = personalised_pagerank(ranking_graph([0], [1], 3, weights=[0.0]), [[0.0], [0.0], [5.0]])
    np.testing.assert_array_equal(p, [[0.0], [0.0], [1.0]])


def test_a_hub_of_a_hundred_thousand_is_as_exact_as_any_node() -> None:
    # float32 alone is off by 1e-5 here: it adds up 100,000 numbers one by one.
    leaves = 100_000
    graph = ranking_graph(np.zeros(leaves, dtype=int), np.arange(1, leaves + 1), leaves + 1)
    p = personalised_pagerank(graph, tolerance=1e-9)
    hub = (0.15 / (leaves + 1) + 0.85) / 1.85  # p₀ = 0.15/n + 0.85 (1 − p₀)
    assert p[0] == pytest.approx(hub, abs=1e-9)
    np.testing.assert_allclose(p[1:], (1 - hub) / leaves, rtol=0, atol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_blocks_of_every_width_give_the_same_as_one_query_alone(directed: bool) -> None:
    n, queries = 20_000, 37  # not a multiple of any block
    graph = ranking_graph(*random_graph(n, 60_000), n, directed=directed)
    v = few_seeds(n, queries)
    batch = personalised_pagerank(graph, v)
    for q in (0, 15, 16, 36):
        alone = personalised_pagerank(graph, v[:, q])
        assert np.abs(alone - batch[:, q]).sum() <= 2e-6


def test_threads_change_no_bit() -> None:
    n = 20_000
    graph = ranking_graph(*random_graph(n, 200_000), n)
    assert len(graph.ranges) == 4
    v = few_seeds(n, 64)
    one, four = (personalised_pagerank(graph, v, threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one, four)
    np.testing.assert_array_equal(one, personalised_pagerank(graph, v, threads=4))


def test_a_batch_stays_within_the_memory_limit() -> None:
    n, queries = 30_000, 64
    graph = ranking_graph(*random_graph(n, 60_000), n)
    seeds = scipy.sparse.csc_array(few_seeds(n, queries))
    personalised_pagerank(graph, seeds[:, :2])  # what is loaded at the first call is not the batch's
    for limit in (64 * n, 640 * n, 2000 * n):
        tracemalloc.start()
        p = personalised_pagerank(graph, seeds, memory_limit=limit, threads=2)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak - p.nbytes <= limit + 1_500_000  # Python's own


def test_a_graph_without_nodes_and_a_batch_without_queries_are_empty() -> None:
    assert personalised_pagerank(ranking_graph([], [], 0)).shape == (0,)
    assert personalised_pagerank(ranking_graph([], [], 0), np.zeros((0, 3))).shape == (0, 3)
    assert personalised_pagerank(ranking_graph([], [], 4), np.zeros((4, 0))).shape == (4, 0)
    np.testing.assert_allclose(personalised_pagerank(ranking_graph([], [], 4)), 0.25)


def test_too_few_iterations_are_an_error_that_says_how_far_it_came() -> None:
    graph = ranking_graph(*random_graph(100, 300), 100)
    with pytest.raises(NotConvergedError, match=r"after 3 iterations, above the tolerance 1\.0e-09"):
        personalised_pagerank(graph, tolerance=1e-9, max_iterations=3)
    with pytest.raises(NotConvergedError):  # below what float64 can tell
        personalised_pagerank(graph, tolerance=1e-300)


@pytest.mark.parametrize(
    ("personalisation", "message"),
    [
        ([0.0, 0.0, 0.0], "query 0 has no seed"),
        ([[1.0, 0.0]] * 3, "query 1 has no seed"),
        ([1.0, -1.0, 1.0], "finite and ≥ 0"),
        ([1.0, float("nan"), 1.0], "finite and ≥ 0"),
        ([1.0, 1.0], "personalisation must be"),
        (np.ones((3, 1, 1)), "personalisation must be"),
        (scipy.sparse.csr_array((3, 2)), "query 0 has no seed"),
    ],
)
def test_a_personalisation_that_means_nothing_is_refused(personalisation: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        personalised_pagerank(ranking_graph([0], [1], 3), personalisation)


def test_the_query_without_a_seed_is_named_by_its_place_in_the_batch() -> None:
    n = 20_000
    v = few_seeds(n, 40)
    v[:, 33] = 0
    with pytest.raises(ValueError, match="query 33 has no seed"):
        personalised_pagerank(ranking_graph(*random_graph(n, 100), n), v)


@pytest.mark.parametrize(
    "bad",
    [{"damping": 1.0}, {"damping": -0.1}, {"tolerance": 0.0}, {"max_iterations": 0}, {"threads": 0}],
)
def test_senseless_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        personalised_pagerank(ranking_graph([0], [1], 2), **bad)


def test_a_graph_that_is_none_is_refused() -> None:
    for weight in (-1.0, float("inf")):
        with pytest.raises(ValueError, match="weights"):
            ranking_graph([0], [1], 2, weights=[weight])
    with pytest.raises(ValueError, match="tails"):
        ranking_graph([0], [2], 2)
    with pytest.raises(ValueError, match="differ in length"):
        ranking_graph([0], [1], 2, weights=[1.0, 1.0])
