"""A tree of communities carried over to a graph that has changed."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from hornbeam_kernels.communities import Graph, Method, community_tree
from hornbeam_kernels.updating import NEW, update_tree

METHOD = Method(max_size=20, restarts=2)


def planted(groups: int, size: int, seed: int = 0) -> Graph:
    """Communities with a vector of their own and edges inside."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((groups, 16))
    own = np.repeat(np.arange(groups), size)
    vectors = centres[own] + 0.3 * rng.standard_normal((groups * size, 16))
    heads = rng.integers(0, groups * size, 4 * groups * size)
    tails = own[heads] * size + rng.integers(0, size, len(heads))
    return Graph(vectors, rng.standard_normal((3, 16)), heads, rng.integers(0, 3, len(heads)), tails)


def part(graph: Graph, kept: NDArray[np.bool_]) -> Graph:
    number = np.cumsum(kept) - 1
    inside = kept[graph.heads] & kept[graph.tails]
    return Graph(
        graph.entity_vectors[kept],
        graph.relation_vectors,
        number[graph.heads[inside]],
        graph.relations[inside],
        number[graph.tails[inside]],
    )


def check_hierarchy(levels: list[NDArray[np.int32]]) -> None:
    for below, above in pairwise(levels):
        assert all(len(np.unique(above[below == label])) == 1 for label in np.unique(below))


def test_a_graph_that_has_not_changed_keeps_its_tree() -> None:
    graph = planted(80, 10)
    tree = community_tree(graph, METHOD)
    assert len(tree.levels) > 1
    lost = np.zeros(int(tree.levels[0].max()) + 1, dtype=bool)
    again = update_tree(graph, tree.levels, lost, METHOD)
    assert all((a == b).all() for a, b in zip(again.levels, tree.levels, strict=True))


def test_signals_that_are_known_are_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted(80, 10)
    tree = community_tree(graph, METHOD)
    assert tree.signals is not None
    known = replace(tree.signals, relation_weight=0.25)
    monkeypatch.setattr(
        "hornbeam_kernels.communities.measure_signals", lambda *_, **__: pytest.fail("measured")
    )
    lost = np.zeros(int(tree.levels[0].max()) + 1, dtype=bool)
    again = update_tree(graph, tree.levels, lost, METHOD, signals=known)
    assert again.signals == known
    assert again.rows.shape[1] > graph.entity_vectors.shape[1], "the slot of relation types is there"


def test_only_communities_that_gain_or_lose_a_member_are_found_anew() -> None:
    whole = planted(80, 10)
    n = len(whole.entity_vectors)
    # Of community 0 half is new; of community 1 half has gone.
    was, now = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
    was[:5], now[10:15] = False, False
    old = community_tree(part(whole, was), METHOD)
    labels = [np.full(n, NEW) for _ in old.levels]
    for level, known in zip(labels, old.levels, strict=True):
        level[was] = known
    lost = np.zeros(int(old.levels[0].max()) + 1, dtype=bool)
    lost[labels[0][10:15]] = True
    before = [level[now] for level in labels]

    tree = update_tree(part(whole, now), before, lost, METHOD)

    check_hierarchy(tree.levels)
    assert len(tree.levels) == len(old.levels)
    leaves = tree.levels[0]
    touched = np.isin(before[0], np.flatnonzero(lost)) | (before[0] == NEW)
    best = np.unique(before[0][5:10])  # where the new ones belong
    untouched = ~touched & ~np.isin(before[0], best)
    for label in np.unique(before[0][untouched]):
        members = before[0] == label
        assert len(np.unique(leaves[members])) == 1
        assert members.sum() == (leaves == leaves[members][0]).sum()
    assert len(np.unique(leaves[:10])) == 1, "the new ones are with their own"
    assert np.bincount(leaves).max() <= METHOD.max_size


def test_the_order_of_entities_says_nothing() -> None:
    graph = planted(20, 10)
    tree = community_tree(graph, METHOD)
    lost = np.zeros(int(tree.levels[0].max()) + 1, dtype=bool)
    lost[:3] = True
    before = [level.copy() for level in tree.levels]
    for level in before:
        level[50:53] = NEW
    order = np.random.default_rng(1).permutation(len(before[0]))
    place = np.argsort(order)
    turned = Graph(
        graph.entity_vectors[order],
        graph.relation_vectors,
        place[graph.heads],
        graph.relations,
        place[graph.tails],
    )
    one = update_tree(graph, before, lost, METHOD).levels[0]
    other = update_tree(turned, [level[order] for level in before], lost, METHOD).levels[0]
    assert len(set(zip(one[order].tolist(), other.tolist(), strict=True))) == len(np.unique(one))


def test_where_nothing_stays_the_tree_is_found_from_scratch() -> None:
    graph = planted(8, 10)
    n = len(graph.entity_vectors)
    fresh = update_tree(graph, [np.full(n, NEW)], np.zeros(0, dtype=bool), METHOD)
    scratch = community_tree(graph, METHOD)
    assert (fresh.levels[0] == scratch.levels[0]).all()


def test_labels_that_do_not_fit_are_refused() -> None:
    graph = planted(2, 10)
    with pytest.raises(ValueError, match="integers"):
        update_tree(graph, [np.zeros(3, dtype=int)], np.zeros(1, dtype=bool))
    with pytest.raises(ValueError, match="lost"):
        update_tree(graph, [np.zeros(20, dtype=int)], np.zeros(0, dtype=bool))
