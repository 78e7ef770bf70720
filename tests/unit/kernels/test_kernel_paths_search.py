"""Path search past hubs, and nearest neighbours at the edges of their domain."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from hornbeam_kernels import paths
from hornbeam_kernels.adjacency import adjacency
from hornbeam_kernels.paths import Path, best_first_paths


def test_adjacency_sees_every_triple_from_both_ends_and_a_loop_once() -> None:
    indptr, indices, edges = adjacency([0, 1, 1, 0], [1, 2, 1, 1], 4)
    neighbours = [
        list(zip(indices[a:b].tolist(), edges[a:b].tolist(), strict=True))
        for a, b in itertools.pairwise(indptr)
    ]
    assert neighbours == [[(1, 0), (1, 3)], [(0, 0), (2, 1), (1, 2), (0, 3)], [(1, 1)], []]
    assert [part.tolist() for part in adjacency([], [], 0)] == [[0], [], []]
    with pytest.raises(ValueError, match="tails"):
        adjacency([0], [4], 4)


def test_score_is_seed_times_similarities_times_gamma_per_hop() -> None:
    csr = adjacency([0, 2], [1, 1], 3)
    paths = best_first_paths(*csr, [0.8, 0.5], [0], [0.9], depth=2)
    assert paths[0] == Path((0, 1), (0,), pytest.approx(0.9 * 0.8 * 0.5))
    assert paths[1] == Path((0, 1, 2), (0, 1), pytest.approx(0.9 * 0.8 * 0.5 * 0.5 * 0.5))


def test_no_seed_no_edge_and_no_path_give_an_empty_list() -> None:
    assert best_first_paths(*adjacency([], [], 0), [], [], []) == []
    assert best_first_paths(*adjacency([], [], 3), [], [1], [1.0]) == []
    assert best_first_paths(*adjacency([0], [0], 1), [1.0], [0], [1.0]) == []
    assert best_first_paths(*adjacency([0], [1], 2), [0.0], [0], [1.0]) == []


def test_a_seed_named_twice_counts_once_with_its_best_score() -> None:
    paths = best_first_paths(*adjacency([0], [1], 2), [1.0], [0, 0], [0.2, 0.6], depth=1)
    assert [path.score for path in paths] == [pytest.approx(0.3)]


def test_the_best_of_a_hub_with_a_hundred_thousand_neighbours_is_found_from_anywhere() -> None:
    leaves = 100_000
    similarity = np.random.default_rng(0).random(leaves).astype(np.float32)
    csr = adjacency(np.zeros(leaves, dtype=int), np.arange(1, leaves + 1), leaves + 1)
    best = int(similarity.argmax()) + 1
    found = best_first_paths(*csr, similarity, list(range(20)), [1.0] * 20, beam=32, top_k=10)
    assert found[0].nodes == (0, best)
    assert {path.nodes[:2] for path in best_first_paths(*csr, similarity, [0], [1.0], beam=1)} == {(0, best)}
    far = best_first_paths(*csr, similarity, [7], [1.0], beam=1)
    assert [path.nodes for path in far] == [(7, 0), (7, 0, best)]


def test_equal_similarities_at_a_hub_go_to_the_lowest_neighbours() -> None:
    csr = adjacency(np.zeros(500, dtype=int), np.arange(500, 0, -1), 501)
    paths = best_first_paths(*csr, np.ones(500), [0], [1.0], depth=1, beam=4)
    assert [path.nodes[1] for path in paths] == [1, 2, 3, 4]


@pytest.mark.parametrize("block", [1, 7, 100])
def test_a_hub_looked_at_in_blocks_gives_the_same_paths(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    rng = np.random.default_rng(0)
    heads, tails = np.r_[np.zeros(200, int), rng.integers(0, 60, 200)], rng.integers(0, 60, 400)
    similarity = np.round(rng.random(400), 1)  # ties at every block's edge
    csr = adjacency(heads, tails, 60)
    whole = best_first_paths(*csr, similarity, [0, 5], [1.0, 0.9], depth=4, beam=6, top_k=99)
    monkeypatch.setattr(paths, "BLOCK", block)
    assert best_first_paths(*csr, similarity, [0, 5], [1.0, 0.9], depth=4, beam=6, top_k=99) == whole
    assert len(whole) == 24


def test_a_hub_costs_no_more_memory_than_its_block_and_the_beam() -> None:
    def peak(leaves: int) -> int:
        csr = adjacency(np.zeros(leaves, dtype=int), np.arange(1, leaves + 1), leaves + 1)
        similarity = np.random.default_rng(0).random(leaves)
        tracemalloc.start()
        best_first_paths(*csr, similarity, [0, 1, 2], [1.0] * 3)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(10)  # what is loaded at the first call is not the hub's
    small, large = peak(paths.BLOCK), peak(20 * paths.BLOCK)
    assert large < 1.2 * small + 100_000
    assert large < 8 * 20 * paths.BLOCK  # less than one number for each neighbour


def test_parallel_triples_back_to_the_seed_do_not_hide_the_way_on() -> None:
    # The 300 best edges of node 1 lead back to the seed; the only way on is the worst.
    csr = adjacency([0] * 300 + [1], [1] * 300 + [2], 3)
    paths = best_first_paths(*csr, [0.9] * 300 + [0.1], [0], [1.0], depth=2, beam=4, top_k=100)
    assert any(path.nodes == (0, 1, 2) for path in paths)


@pytest.mark.parametrize("bad", [{"depth": 0}, {"beam": 0}, {"gamma": 0.0}, {"gamma": 1.5}])
def test_path_search_refuses_senseless_bounds(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        best_first_paths(*adjacency([0], [1], 2), [1.0], [0], [1.0], **bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seeds"):
        best_first_paths(*adjacency([0], [1], 2), [1.0], [2], [1.0])
