"""What is measured about a planted graph is what was planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hornbeam.evaluate.planted import PlantedGraph, Planting, planted_graph
from hornbeam_kernels.signals import FEWEST, Signals, measure_signals

N = 1200


def measured(graph: PlantedGraph) -> Signals:
    return measure_signals(
        graph.entity_vectors, graph.relation_vectors, graph.heads, graph.relations, graph.tails
    )


@pytest.mark.parametrize("noise", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("mixing", [0.2, 0.5, 1.0])
def test_similarity_and_agreement_are_those_that_were_planted(noise: float, mixing: float) -> None:
    signals = measured(planted_graph(N, Planting(mixing=mixing, noise=noise), seed=1))
    q, a = 1 / (1 + noise**2), 1 - mixing
    assert signals.similarity == pytest.approx(q, rel=0.15)
    assert signals.agreement == pytest.approx(a, abs=0.08)
    assert signals.neighbour_weight == pytest.approx(a * noise**2 / (noise**2 + 1 - a), abs=0.08)
    assert signals.hops == 1
    assert signals.relation_weight == 0.0


def test_vectors_that_say_nothing_leave_the_edges() -> None:
    signals = measured(planted_graph(N, Planting(noise=float("inf")), seed=1))
    assert (signals.similarity, signals.neighbour_weight, signals.hops) == (0.0, 1.0, 6)


def test_edges_that_say_nothing_leave_the_vectors() -> None:
    signals = measured(planted_graph(N, Planting(mixing=1.0), seed=1))
    assert (signals.agreement, signals.neighbour_weight) == (0.0, 0.0)


def test_edges_that_vectors_do_not_follow_are_heard_on_their_own() -> None:
    kinds = Planting(mixing=0.1, kinds=8, topic_weight=0.0, between_kinds=True)
    signals = measured(planted_graph(N, kinds, seed=1))
    assert signals.similarity > 0.3  # vectors say something
    assert signals.agreement < 0.2  # other than the edges
    assert signals.edge_weight > 1.0
    agreed = measured(planted_graph(N, Planting(mixing=0.2), seed=1))
    random_edges = measured(planted_graph(N, Planting(mixing=1.0), seed=1))
    assert agreed.edge_weight == 0.0
    assert random_edges.edge_weight < 0.1


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    graph = planted_graph(100, Planting(dimension=8), seed=0)
    for name in ("entity_vectors", "relation_vectors"):
        vectors = getattr(graph, name).astype(np.float64)
        vectors[7, 3] = bad
        with pytest.raises(ValueError, match=f"{name} holds NaN or infinity"):
            measured(replace(graph, **{name: vectors}))


def test_relation_types_count_where_they_tell_topics_apart() -> None:
    weights = [
        measured(planted_graph(N, Planting(relation_mixing=mixing), seed=1)).relation_weight
        for mixing in (1.0, 0.6, 0.1)
    ]
    assert weights[0] == 0.0
    assert 0.0 < weights[1] < weights[2] <= 0.5


def test_one_relation_type_tells_nothing() -> None:
    assert measured(planted_graph(N, Planting(relation_types=1, favourites=1), seed=1)).relation_weight == 0.0


def test_too_few_entities_to_measure_give_the_halfway_values() -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, FEWEST - 1):
        edge = [0] if n else []
        assert (
            measure_signals(rng.normal(size=(n, 8)), rng.normal(size=(1, 8)), edge, edge, edge) == Signals()
        )


def test_all_entities_alike_tell_nothing_and_break_nothing() -> None:
    signals = measure_signals(np.ones((100, 8)), np.ones((1, 8)), [0, 1], [0, 0], [1, 2])
    assert signals.similarity == 0.0
    assert np.isfinite([signals.neighbour_weight, signals.relation_weight]).all()
