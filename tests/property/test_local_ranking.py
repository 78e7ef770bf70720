"""Local PageRank against the exact one, on every awkward graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornbeam_kernels.local_ranking import local_pagerank, walk_graph
from hornbeam_kernels.ranking import personalised_pagerank, ranking_graph


@st.composite
def seeded_graphs(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, st.sampled_from([0.3, 1.0, 7.0])), max_size=16))
    seeds = draw(st.lists(node, min_size=1, max_size=n, unique=True))
    weights = draw(st.lists(st.sampled_from([0.1, 1.0, 4.0]), min_size=len(seeds), max_size=len(seeds)))
    sources, targets = (np.array([edge[side] for edge in edges], dtype=np.int64) for side in (0, 1))
    return {
        "n": n,
        "sources": sources,
        "targets": targets,
        "weights": np.array([edge[2] for edge in edges]),
        "seeds": seeds,
        "seed_weights": weights,
        "damping": draw(st.sampled_from([0.0, 0.5, 0.85])),
    }


def exact(g: dict[str, Any]) -> np.ndarray:
    graph = ranking_graph(g["sources"], g["targets"], g["n"], weights=g["weights"])
    v = np.zeros(g["n"])
    v[g["seeds"]] = g["seed_weights"]
    return personalised_pagerank(graph, v, damping=g["damping"], tolerance=1e-10)


def local(g: dict[str, Any], **options: float) -> np.ndarray:
    graph = walk_graph(g["sources"], g["targets"], g["n"], g["weights"])
    nodes, mass = local_pagerank(graph, g["seeds"], g["seed_weights"], damping=g["damping"], **options)
    assert (np.diff(nodes) > 0).all()
    assert (mass > 0).all()
    assert mass.sum() == pytest.approx(1.0)
    whole = np.zeros(g["n"])
    whole[nodes] = mass
    return whole


@given(seeded_graphs())
def test_without_a_threshold_it_is_pagerank(g: dict[str, Any]) -> None:
    assert local(g, epsilon=0.0, tolerance=1e-9) == pytest.approx(exact(g), abs=1e-6)


@given(seeded_graphs(), st.sampled_from([1e-4, 1e-2, 0.2]))
def test_what_a_threshold_loses_is_bounded(g: dict[str, Any], epsilon: float) -> None:
    # Each of n nodes may keep back up to ε · its degree in each of the rounds; none is given too much.
    degrees = len(g["sources"]) * 2 + g["n"]
    rounds = 200
    difference = np.abs(local(g, epsilon=epsilon, tolerance=1e-9) - exact(g)).sum()
    assert difference <= 2 * min(1.0, epsilon * degrees * rounds) + 1e-6


def test_a_hub_does_not_pass_on_what_would_be_next_to_nothing() -> None:
    leaves = 100_000
    star = walk_graph(np.zeros(leaves, np.int64), np.arange(1, leaves + 1), leaves + 1)
    nodes, mass = local_pagerank(star, [1], [1.0], epsilon=1e-5)
    assert nodes.tolist() == [0, 1]
    assert mass[1] > mass[0] > 0
    everything, _ = local_pagerank(star, [1], [1.0], epsilon=0.0)
    assert len(everything) == leaves + 1


@pytest.mark.parametrize(
    ("seeds", "weights", "options"),
    [
        ([], [], {}),
        ([0, 0], [1.0, 1.0], {}),
        ([0], [0.0], {}),
        ([0], [-1.0], {}),
        ([0], [float("nan")], {}),
        ([3], [1.0], {}),
        ([0], [1.0, 2.0], {}),
        ([0], [1.0], {"damping": 1.0}),
        ([0], [1.0], {"epsilon": -1e-3}),
        ([0], [1.0], {"tolerance": 0.0}),
    ],
)
def test_what_cannot_be_walked_is_refused(
    seeds: list[int], weights: list[float], options: dict[str, float]
) -> None:
    graph = walk_graph([0], [1], 3)
    with pytest.raises(ValueError, match=r"seed|damping"):
        local_pagerank(graph, seeds, weights, **options)


def test_edges_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        walk_graph([0, 1], [1], 3)
    with pytest.raises(ValueError, match="targets"):
        walk_graph([0], [3], 3)
