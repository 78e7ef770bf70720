"""Personalised PageRank against the dense solution and networkx, on every awkward graph."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam_kernels.ranking import personalised_pagerank, ranking_graph

pytestmark = pytest.mark.filterwarnings("error")


@st.composite
def weighted_graphs(draw: st.DrawFn) -> dict[str, Any]:
    """A multigraph with loops, parallel triples, weights of 0, lonely nodes; queries with at least a seed."""
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    weight = st.sampled_from([0.0, 0.3, 1.0, 2.5, 1e-3, 1e3])
    triples = draw(st.lists(st.tuples(node, node, weight), max_size=16))
    queries = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    v = np.where(rng.random((n, queries)) < 0.3, rng.random((n, queries)), 0.0)
    v[rng.integers(0, n), v.sum(axis=0) == 0] = 2.0
    return {
        "n": n,
        "heads": np.array([h for h, _, _ in triples], dtype=np.int64),
        "tails": np.array([t for _, t, _ in triples], dtype=np.int64),
        "weights": np.array([w for _, _, w in triples]),
        "directed": draw(st.booleans()),
        "damping": draw(st.sampled_from([0.0, 0.5, 0.85, 0.99])),
        "v": v,
    }


def prepared(g: dict[str, Any], **options: Any) -> Any:
    return ranking_graph(
        g["heads"], g["tails"], g["n"], weights=g["weights"], directed=g["directed"], **options
    )


def by_dense_solution(g: dict[str, Any], v: np.ndarray) -> np.ndarray:
    """(I − a Mᵀ)⁻¹ (1 − a) v with M the walk's matrix whose dangling rows are v, built entry by entry."""
    n, a, v = g["n"], g["damping"], v / v.sum()
    m = np.zeros((n, n))
    for h, t, w in zip(g["heads"], g["tails"], g["weights"], strict=True):
        m[h, t] += w
        if not g["directed"] and h != t:
            m[t, h] += w
    for i in range(n):
        m[i] = m[i] / m[i].sum() if m[i].sum() > 0 else v
    return np.linalg.solve(np.eye(n) - a * m.T, (1 - a) * v)


def by_networkx(g: dict[str, Any], v: np.ndarray) -> np.ndarray:
    graph = (networkx.MultiDiGraph if g["directed"] else networkx.MultiGraph)()
    graph.add_nodes_from(range(g["n"]))
    graph.add_weighted_edges_from(
        zip(g["heads"].tolist(), g["tails"].tolist(), g["weights"].tolist(), strict=True)
    )
    found = networkx.pagerank(
        graph, alpha=g["damping"], personalization=dict(enumerate(v.tolist())), tol=1e-12, max_iter=10_000
    )
    return np.array([found[i] for i in range(g["n"])])


@settings(max_examples=150, deadline=None)
@given(weighted_graphs())
def test_every_query_of_a_batch_equals_the_dense_solution_and_networkx(g: dict[str, Any]) -> None:
    p = personalised_pagerank(prepared(g), g["v"], damping=g["damping"], max_iterations=5000)
    assert p.shape == g["v"].shape
    assert p.dtype == np.float64
    np.testing.assert_allclose(p.sum(axis=0), 1.0, atol=1e-12)
    assert (p >= 0).all()
    for q in range(p.shape[1]):
        # The bound that is promised, on the sum; networkx may itself be off by n · tol / (1 − a).
        assert np.abs(p[:, q] - by_dense_solution(g, g["v"][:, q])).sum() <= 1e-6
        np.testing.assert_allclose(p[:, q], by_networkx(g, g["v"][:, q]), rtol=0, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(weighted_graphs(), st.sampled_from([1e-2, 1e-6, 1e-11]))
def test_batch_single_and_sparse_seeds_agree_at_any_tolerance(g: dict[str, Any], tolerance: float) -> None:
    graph = prepared(g)
    options = {"damping": g["damping"], "tolerance": tolerance, "max_iterations": 5000}
    batch = personalised_pagerank(graph, g["v"], **options)
    seeds = personalised_pagerank(graph, scipy.sparse.csr_array(g["v"]), **options)
    np.testing.assert_array_equal(seeds, batch)
    for q in range(batch.shape[1]):
        alone = personalised_pagerank(graph, g["v"][:, q], **options)
        assert alone.shape == (g["n"],)
        assert np.abs(alone - batch[:, q]).sum() <= 2 * tolerance
        assert np.abs(alone - by_dense_solution(g, g["v"][:, q])).sum() <= tolerance + 1e-13


@settings(max_examples=60, deadline=None)
@given(weighted_graphs())
def test_neither_numbers_nor_order_nor_scale_change_the_ranking(g: dict[str, Any]) -> None:
    p = personalised_pagerank(prepared(g), g["v"], damping=g["damping"], max_iterations=5000)
    same = {"rtol": 0, "atol": 1e-6}
    plain = personalised_pagerank(
        prepared(g, reorder=False), g["v"], damping=g["damping"], max_iterations=5000
    )
    np.testing.assert_allclose(plain, p, **same)
    rng = np.random.default_rng(0)
    rename, rows = rng.permutation(g["n"]), rng.permutation(len(g["heads"]))
    other = {**g, "heads": rename[g["heads"]][rows], "tails": rename[g["tails"]][rows]}
    other["weights"] = 7.0 * g["weights"][rows]
    v = np.zeros_like(g["v"])
    v[rename] = 3.0 * g["v"]
    moved = personalised_pagerank(prepared(other), v, damping=g["damping"], max_iterations=5000)
    np.testing.assert_allclose(moved[rename], p, **same)
