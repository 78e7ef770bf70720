import pytest

from hornbeam.retrieve.fusion import WEIGHTS, Fused, RouteScore, drop_contained, fuse
from hornbeam.retrieve.query import Candidate


def chunk(row: int, score: float, route: str) -> Candidate:
    return Candidate("chunk", (row,), score, route)


RANKED = {
    "chunk_dense": [chunk(7, 0.8, "chunk_dense"), chunk(3, 0.6, "chunk_dense")],
    "chunk_bm25": [chunk(3, 0.5, "chunk_bm25")],
    "pagerank": [
        chunk(9, 1.0, "pagerank"),
        Candidate("entity", (1,), 1.0, "pagerank"),
        chunk(7, 0.2, "pagerank"),
    ],
}
DENSE, BM25, PAGERANK = (WEIGHTS[route] for route in RANKED)


def test_reciprocal_rank_fusion_by_hand() -> None:
    fused = {item.rows[0]: item for item in fuse(RANKED, "rrf", 60) if item.kind == "chunk"}
    assert fused[3].score == pytest.approx(DENSE / 62 + BM25 / 61)
    assert fused[7].score == pytest.approx(DENSE / 61 + PAGERANK / 62)  # the second chunk of its route
    assert fused[9].score == pytest.approx(PAGERANK / 61)
    assert list(fused) == [7, 9, 3]
    assert fused[7].routes == {"chunk_dense": RouteScore(1, 0.8), "pagerank": RouteScore(2, 0.2)}


def test_weighted_sum_by_hand() -> None:
    fused = {(item.kind, item.rows[0]): item.score for item in fuse(RANKED, "weighted", 60)}
    total = DENSE + BM25 + PAGERANK
    assert fused["chunk", 3] == pytest.approx((DENSE * 0.6 + BM25 * 0.5) / total)
    assert fused["chunk", 7] == pytest.approx((DENSE * 0.8 + PAGERANK * 0.2) / total)
    assert fused["chunk", 9] == pytest.approx(PAGERANK / total)
    assert fused["entity", 1] == 1.0  # no other route found entities


def test_cosines_weigh_as_much_as_they_tell_meaning() -> None:
    ranked = {
        "chunk_dense": [chunk(1, 0.9, "chunk_dense"), chunk(2, 0.6, "chunk_dense")],
        "chunk_bm25": [chunk(2, 0.4, "chunk_bm25"), chunk(1, 0.2, "chunk_bm25")],
    }
    assert [item.rows[0] for item in fuse(ranked, "weighted", 60)] == [1, 2]
    by_words = fuse(ranked, "weighted", 60, meaning=0.1)
    assert [item.rows[0] for item in by_words] == [2, 1]
    total = 0.1 * DENSE + BM25
    assert by_words[0].score == pytest.approx((0.1 * DENSE * 0.6 + BM25 * 0.4) / total)
    for item in by_words:
        assert sum(place.part for place in item.routes.values()) == pytest.approx(item.score)


def test_a_path_counts_by_the_mean_of_its_hops() -> None:
    paths = [Candidate("path", (1, 2), 0.16, "path", nodes=(0, 1, 2))]
    assert fuse({"path": paths}, "weighted", 60)[0].score == pytest.approx(0.4)


def test_a_route_that_found_nothing_does_not_dilute_the_weighted_sum() -> None:
    ranked = {"chunk_dense": [chunk(1, 0.8, "chunk_dense")], "chunk_bm25": []}
    assert fuse(ranked, "weighted", 60)[0].score == pytest.approx(0.8)


def test_equals_are_ordered_by_kind_and_row() -> None:
    ranked = {
        "b": [chunk(5, 0.5, "b")],
        "a": [chunk(2, 0.5, "a")],
        "c": [Candidate("triple", (1,), 0.5, "c")],
    }
    assert [(item.kind, item.rows[0]) for item in fuse(ranked, "rrf", 60)] == [
        ("chunk", 2),
        ("chunk", 5),
        ("triple", 1),
    ]


def test_nothing_fuses_to_nothing() -> None:
    assert fuse({}, "rrf", 60) == fuse({"a": []}, "weighted", 60) == []


def item(kind: str, rows: tuple[int, ...]) -> Fused:
    return Fused(kind, rows, 0.1)  # type: ignore[arg-type]


def test_a_triple_inside_a_better_path_is_left_out() -> None:
    ranking = [item("path", (1, 2)), item("triple", (2,)), item("triple", (3,)), item("path", (2, 1))]
    assert [kept.rows for kept in drop_contained(ranking)] == [(1, 2), (3,)]


def test_a_better_triple_stays_beside_a_path_that_adds_to_it() -> None:
    ranking = [item("triple", (1,)), item("path", (1, 2)), item("chunk", (1,))]
    assert drop_contained(ranking) == ranking


def test_a_path_stays_though_its_triples_stand_above_it() -> None:
    ranking = [item("triple", (1,)), item("triple", (2,)), item("path", (1, 2))]
    assert drop_contained(ranking) == ranking
