"""The kernels against plain loops, on small random graphs with every awkward shape in them."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam_kernels.adjacency import adjacency
from hornbeam_kernels.backend import select_backend
from hornbeam_kernels.closeness import CalibratedFit, Members
from hornbeam_kernels.clustering import kmeans, split_to_size
from hornbeam_kernels.density import dbscan
from hornbeam_kernels.dual_perception import (
    centres,
    centroids,
    community_counts,
    keywords,
    own_scores,
    relation_type_counts,
    structural_similarity,
)
from hornbeam_kernels.indexing import members_by_community, renumber
from hornbeam_kernels.merging import merge_communities
from hornbeam_kernels.partition import connected_components, leiden, modularity
from hornbeam_kernels.paths import best_first_paths
from hornbeam_kernels.refining import refine_communities
from hornbeam_kernels.representation import entity_representation
from hornbeam_kernels.search import build_index, search
from hornbeam_kernels.signals import Signals
from hornbeam_kernels.tree import community_levels
from support.kernel_references import (
    D,
    calibrated_fit_by_loops,
    centre_fit_by_loops,
    communities_by_loops,
    dbscan_by_loops,
    graphs,
    jaccard_by_loops,
    merge_by_loops,
    propagated_by_loops,
    slots_by_loops,
    type_counts,
    unit,
)

pytestmark = pytest.mark.filterwarnings("error")


def represent(g: dict[str, Any], **options: Any) -> np.ndarray:
    return entity_representation(g["entities"], g["types"], g["heads"], g["relations"], g["tails"], **options)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_paper_form_is_the_mean_over_touching_triples(g: dict[str, Any]) -> None:
    x = represent(g, form="paper")
    assert x.shape == (g["n"], 3 * D)
    assert x.dtype == np.float32
    for i, slots in enumerate(slots_by_loops(g)):
        np.testing.assert_allclose(x[i], unit(slots.reshape(-1)), atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    graphs(),
    st.builds(
        Signals,
        hops=st.integers(0, 3),
        neighbour_weight=st.floats(0.1, 0.9),
        relation_weight=st.sampled_from([0.0, 0.7]),
    ),
    st.sampled_from([1, None]),
)
def test_propagated_form_adds_up_neighbours_and_relation_types(
    g: dict[str, Any], signals: Signals, limit: int | None
) -> None:
    x = represent(g, signals=signals, memory_limit=limit)
    expected = propagated_by_loops(g, signals)
    assert len(x) == g["n"]
    assert x.shape[1] == D + (min(g["r"], D) if signals.relation_weight else 0) or not g["n"]
    # The relation slot comes in another basis: lengths and angles are what must agree.
    np.testing.assert_allclose(x @ x.T, expected @ expected.T, atol=2e-3)


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_representation_follows_a_renaming_of_the_entities(g: dict[str, Any]) -> None:
    order = g["rng"].permutation(g["n"])
    place = np.argsort(order)
    other = {**g, "entities": g["entities"][order]}
    other["heads"], other["tails"] = place[g["heads"]], place[g["tails"]]
    for form in ("propagated", "paper"):
        np.testing.assert_allclose(represent(other, form=form), represent(g, form=form)[order], atol=1e-3)


def psi(g: dict[str, Any]) -> Any:
    return relation_type_counts(g["heads"], g["relations"], g["tails"], g["n"], g["r"])


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from([1, 200, None]))
def test_structural_similarity_is_the_multiset_jaccard(g: dict[str, Any], limit: int | None) -> None:
    dense = type_counts(g)
    np.testing.assert_array_equal(psi(g).toarray(), dense)
    labels = renumber(g["rng"].integers(0, 3, g["n"]))
    means = [dense[members].mean(axis=0) for members in members_by_community(labels)]
    for other, rows in ((psi(g), dense), (community_counts(psi(g), labels), means)):
        block = structural_similarity(psi(g), other, memory_limit=limit)
        assert block.shape == (g["n"], len(rows))
        for i, j in itertools.product(range(g["n"]), range(len(rows))):
            assert block[i, j] == pytest.approx(jaccard_by_loops(dense[i], rows[j]), abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.floats(0, 1), st.sampled_from([1, None]))
def test_scores_centres_and_keywords_follow_the_formula(
    g: dict[str, Any], w: float, limit: int | None
) -> None:
    x, labels = represent(g), renumber(g["rng"].integers(0, 3, g["n"]))
    scores = own_scores(x, psi(g), labels, w, memory_limit=limit)
    expected, middle, _, _ = communities_by_loops(x, type_counts(g), labels, w)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    np.testing.assert_allclose(centroids(x, labels), np.array(middle).reshape(-1, x.shape[1]), atol=1e-5)
    ranked = [
        sorted(members, key=lambda i: (-round(float(scores[i]), 6), i))
        for members in members_by_community(labels)
    ]
    assert centres(scores, labels).tolist() == [row[0] for row in ranked]
    assert [row.tolist() for row in keywords(scores, labels, 2)] == [row[:2] for row in ranked]


@pytest.mark.parametrize("form", ["calibrated", "centres"])
@pytest.mark.parametrize("seed", range(25))
def test_merging_equals_plain_rounds_when_the_search_is_exhaustive(seed: int, form: Any) -> None:
    rng = np.random.default_rng(seed)
    n, r, t = 40, 4, 60
    x = rng.normal(size=(n, 6)) + 2 * rng.normal(size=(6, 6))[rng.integers(0, 6, n)]
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    columns = rng.integers(0, n, t), rng.integers(0, r, t), rng.integers(0, n, t)
    counts = relation_type_counts(*columns, n, r)
    start = renumber(rng.integers(0, 25, n))
    options: dict[str, Any] = {"threshold": 0.5, "max_size": 12, "form": form}
    merged = merge_communities(x, counts, start, candidates=99, **options)
    if form == "centres":
        fit_of = partial(centre_fit_by_loops, x, counts.toarray(), w=0.3)
    else:
        fit = CalibratedFit(Members(x, counts, start, 0.3, select_backend("cpu")))
        fit_of = partial(
            calibrated_fit_by_loops,
            x,
            counts.toarray(),
            w=0.3,
            pooled=pooled_by_loops(x, start),
            background=fit.background,
        )
    np.testing.assert_array_equal(merged, merge_by_loops(fit_of, start, 0.5, 12))
    few = merge_communities(x, counts, start, candidates=2, memory_limit=1, **options)
    assert np.bincount(few).max() <= 12
    assert few.max() < start.max()


def pooled_by_loops(x: np.ndarray, labels: np.ndarray) -> float:
    pairs = [(i, j) for i in range(len(x)) for j in range(len(x)) if i != j and labels[i] == labels[j]]
    return max(float(np.mean([x[i].astype(float) @ x[j] for i, j in pairs])), 1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_refining_moves_everyone_to_the_nearest_centroid_with_room(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, max_size = 40, int(rng.integers(6, 15))
    x = rng.normal(size=(n, 6)) + 2 * rng.normal(size=(6, 6))[rng.integers(0, 6, n)]
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    start = renumber(rng.integers(0, 8, n))
    refined = refine_communities(x, start, max_size=max_size, rounds=1, candidates=99)
    np.testing.assert_array_equal(refined, refine_by_loops(x, start, max_size))
    few = refine_communities(x, start, max_size=max_size, rounds=3, candidates=1, memory_limit=1)
    assert np.bincount(few).max() <= max(max_size, np.bincount(start).max())


def refine_by_loops(x: np.ndarray, labels: np.ndarray, max_size: int) -> np.ndarray:
    middle = centroids(x, labels).astype(float)
    cosine = np.round(x.astype(float) @ middle.T, 6)
    sizes, moved = np.bincount(labels), labels.copy()
    wishes = []
    for i, own in enumerate(labels):
        best = max(range(len(middle)), key=lambda c: (cosine[i, c], c == own, -c))
        if best != own:
            wishes.append((-(cosine[i, best] - cosine[i, own]), i, best))
    for _, i, best in sorted(wishes):
        if sizes[best] < max_size:
            sizes[best] += 1
            moved[i] = best
    return renumber(moved)


@settings(max_examples=30, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_every_entity_keeps_a_community_at_every_step(g: dict[str, Any], max_size: int) -> None:
    x = represent(g)
    split = split_to_size(x, max_size=max_size, restarts=1)
    merged = merge_communities(x, psi(g), split, threshold=0.6, max_size=max_size)
    walk = leiden(g["heads"], g["tails"], None, g["n"], max_size=max_size)
    for labels in (split, merged, walk, *community_levels(x, merged)):
        assert labels.shape == (g["n"],)
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(labels, renumber(labels))
    for labels in (split, merged, walk):
        assert np.bincount(labels, minlength=1).max() <= max_size
    for part in members_by_community(split):
        assert len(set(merged[part])) == 1  # communities are joined, never torn


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_partition_measures_equal_networkx(g: dict[str, Any]) -> None:
    weights = g["rng"].integers(1, 4, len(g["heads"])).astype(float)
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(g["n"]))
    graph.add_weighted_edges_from(
        zip(g["heads"].tolist(), g["tails"].tolist(), weights.tolist(), strict=True)
    )
    components = connected_components(g["heads"], g["tails"], g["n"])
    expected = {frozenset(c) for c in networkx.connected_components(graph)}
    assert {frozenset(c.tolist()) for c in members_by_community(components)} == expected
    labels = renumber(g["rng"].integers(0, 3, g["n"]))
    q = modularity(g["heads"], g["tails"], weights, labels)
    if len(weights):
        groups = [set(c.tolist()) for c in members_by_community(labels)]
        assert q == pytest.approx(networkx.community.modularity(graph, groups, weight="weight"))
    else:
        assert q == 0.0


def paths_by_loops(
    g: dict[str, Any], similarity: np.ndarray, seeds: dict[int, float], depth: int
) -> list[Any]:
    edges = list(zip(g["heads"].tolist(), g["tails"].tolist(), strict=True))
    found, alive = [], [((s,), (), score) for s, score in seeds.items()]
    for _ in range(depth):
        longer = []
        for nodes, walked, score in alive:
            for e, (h, t) in enumerate(edges):
                for here, there in {(h, t), (t, h)}:
                    if here == nodes[-1] and there not in nodes:
                        value = score * min(1.0, max(0.0, similarity[e])) * 0.5
                        if value > 0:
                            longer.append(((*nodes, there), (*walked, e), value))
        alive = longer
        found += longer
    return sorted(found, key=lambda p: (-p[2], p[0], p[1]))


@settings(max_examples=60, deadline=None)
@given(graphs(max_nodes=6), st.integers(1, 3))
def test_wide_beam_finds_every_path_in_order(g: dict[str, Any], depth: int) -> None:
    similarity = np.round(g["rng"].uniform(-0.2, 1.2, len(g["heads"])), 1)  # ties and values to clip
    seeds = {i: 1.0 - 0.25 * i for i in range(min(2, g["n"]))}
    csr = adjacency(g["heads"], g["tails"], g["n"])
    found = best_first_paths(
        *csr, similarity, list(seeds), list(seeds.values()), depth=depth, beam=10**4, top_k=50
    )
    expected = paths_by_loops(g, similarity, seeds, depth)
    assert [(p.nodes, p.edges) for p in found] == [p[:2] for p in expected][:50]
    assert [p.score for p in found] == pytest.approx([p[2] for p in expected][:50])
    for beam in (1, 3):  # a narrow beam never invents, and keeps the best first hop
        narrow = best_first_paths(
            *csr, similarity, list(seeds), list(seeds.values()), depth=depth, beam=beam, top_k=50
        )
        assert {(p.nodes, p.edges) for p in narrow} <= {p[:2] for p in expected}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 30), st.integers(0, 4), st.integers(0, 12), st.integers(0, 10**6))
def test_exact_search_equals_sorting_all_products(n: int, q: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stored, asked = rng.normal(size=(n, D)).astype(np.float32), rng.normal(size=(q, D)).astype(np.float32)
    scores, ids = search(build_index(stored), asked, k)
    assert scores.shape == ids.shape == (q, k)
    for row in range(q):
        products = sorted(((float(asked[row] @ stored[i]), i) for i in range(n)), reverse=True)[:k]
        np.testing.assert_allclose(scores[row, : len(products)], [p for p, _ in products], atol=1e-4)
        assert ids[row, : len(products)].tolist() == [i for _, i in products]
        assert (ids[row, len(products) :] == -1).all()
        assert np.isneginf(scores[row, len(products) :]).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.integers(1, 6), st.integers(1, 8), st.integers(0, 10**6))
def test_kmeans_gives_each_distinct_row_its_own_cluster_when_there_are_few(
    n: int, distinct: int, k: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    which = rng.integers(0, distinct, n)
    labels = kmeans(rng.normal(size=(distinct, D))[which], k, restarts=1)
    if len(set(which.tolist())) <= k:
        np.testing.assert_array_equal(labels, renumber(which))
    else:
        assert labels.max() < k


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 40),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.05, 0.3, 1.0, 2.0]),
    st.integers(1, 5),
    st.integers(0, 10**6),
    st.sampled_from([1, None]),
)
def test_dbscan_is_the_plain_loops_in_any_order_of_rows(
    n: int, distinct: int, eps: float, min_samples: int, seed: int, limit: int | None
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(distinct, 3))[rng.integers(0, distinct, n)]  # some rows more than once
    x[rng.random(n) < 0.1] = 0
    labels = dbscan(x, eps=eps, min_samples=min_samples, memory_limit=limit)
    np.testing.assert_array_equal(labels, dbscan_by_loops(x, eps, min_samples))
    order = rng.permutation(n)
    again = dbscan(x[order], eps=eps, min_samples=min_samples)
    np.testing.assert_array_equal(again == -1, labels[order] == -1)
    np.testing.assert_array_equal(renumber(again), renumber(labels[order]))
