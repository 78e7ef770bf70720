import pytest

from hornbeam.retrieve.fusion import Fused, RouteScore, chunk_votes, drop_contained, fuse
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import Candidate


def chunk(row: int, score: float, route: str) -> Candidate:
    return Candidate("chunk", (row,), score, route)


RANKED = {
    "chunk_dense": [chunk(7, 0.8, "chunk_dense"), chunk(3, 0.6, "chunk_dense")],
    "chunk_bm25": [chunk(3, 0.5, "chunk_bm25")],
    "triple→chunks": [chunk(9, 0.4, "triple→chunks"), chunk(7, 0.2, "triple→chunks")],
}


def test_reciprocal_rank_fusion_by_hand() -> None:
    fused = {item.rows[0]: item for item in fuse(RANKED, "rrf", 60)}
    assert fused[3].score == pytest.approx(1 / 62 + 1 / 61)
    assert fused[7].score == pytest.approx(1 / 61 + 0.2 * 0.2 / 62)  # weight · vote / (60 + rank)
    assert fused[9].score == pytest.approx(0.2 * 0.4 / 61)
    assert list(fused) == [3, 7, 9]
    assert fused[7].routes == {"chunk_dense": RouteScore(1, 0.8), "triple→chunks": RouteScore(2, 0.2)}


def test_weighted_sum_by_hand() -> None:
    fused = {item.rows[0]: item.score for item in fuse(RANKED, "weighted", 60)}
    assert fused[3] == pytest.approx((0.6 + 0.5) / 2.2)
    assert fused[7] == pytest.approx((0.8 + 0.2 * 0.2) / 2.2)
    assert fused[9] == pytest.approx(0.2 * 0.4 / 2.2)


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


def test_votes_add_up_and_are_shared_among_the_chunks_of_a_thing(kb: KnowledgeBase) -> None:
    found = [
        Candidate("entity", (1,), 0.9, "entity"),  # Warsaw, in chunks 0, 1 and 2
        Candidate("entity", (2,), 0.5, "entity"),  # Poland, in chunk 2
        Candidate("community", (0,), 0.1, "entity"),  # votes by its facts, not itself
    ]
    votes = {vote.rows[0]: vote for vote in chunk_votes(kb, "entity", found)}
    contrast = (0.5 - 0.1) / (0.9 - 0.1)
    assert votes[2].score == pytest.approx(1 - (1 - 0.9 / 3) * (1 - 0.5 * contrast))
    assert votes[0].score == votes[1].score == pytest.approx(0.3)
    assert list(votes) == [2, 0, 1]
    assert votes[2].route == "entity→chunks"


def test_a_path_votes_for_the_chunks_of_each_of_its_relations(kb: KnowledgeBase) -> None:
    votes = chunk_votes(kb, "path", [Candidate("path", (0, 1), 0.2, "path", nodes=(0, 1, 2))])
    assert {vote.rows[0]: vote.score for vote in votes} == pytest.approx({0: 0.2, 2: 0.2})


def test_only_the_best_few_vote_and_the_least_of_the_route_does_not(kb: KnowledgeBase) -> None:
    many = [Candidate("triple", (1,), 0.3, "triple")] * 5 + [Candidate("triple", (0,), 0.3, "triple")]
    assert [vote.rows for vote in chunk_votes(kb, "triple", many)] == [(2,)]
    two = [Candidate("triple", (1,), 0.8, "triple"), Candidate("triple", (0,), 0.3, "triple")]
    assert [vote.rows for vote in chunk_votes(kb, "triple", two)] == [(2,)]
    assert chunk_votes(kb, "triple", []) == []


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
