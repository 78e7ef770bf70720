from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hornbeam.records import Entity
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.names import name_matches
from hornbeam.retrieve.path_route import edges_within_reach, path_route
from hornbeam.retrieve.query import VECTOR_CHARACTERS, Candidate, encode_query
from hornbeam.retrieve.routes import (
    WORD_SHARE,
    chunk_bm25_route,
    chunk_dense_route,
    community_route,
    entity_route,
    triple_route,
)
from hornbeam.retrieve.search import ROUTES
from hornbeam.settings import RetrieveSettings
from support.version_by_hand import HashedWords, small_rows

SETTINGS = RetrieveSettings()
TWO_HOPS = "Marie Curie was born in the capital of which country?"


def test_the_entity_that_the_question_names_comes_first(kb: KnowledgeBase) -> None:
    found = entity_route(kb, encode_query(kb.embedder, "When did Warsaw grow?"), SETTINGS)
    assert (found[0].rows, found[0].detail) == ((1,), "name, as written")
    assert found[0].score == 1.0


def test_an_alias_counts_as_a_name(kb: KnowledgeBase) -> None:
    assert name_matches(kb, encode_query(kb.embedder, "Did Curie travel?"), 10) == {0: 1.0}


def test_part_of_a_name_counts_less_than_the_whole(open_rows: Callable[..., KnowledgeBase]) -> None:
    rows = small_rows()
    rows["entities"][0] = replace(rows["entities"][0], aliases=[])
    kb = open_rows(rows)
    matches = name_matches(kb, encode_query(kb.embedder, "Did Curie see Poland?"), 10)
    assert matches[2] == 1.0
    assert 0 < matches[0] < 0.5


def test_a_name_inside_a_longer_word_is_no_match(kb: KnowledgeBase) -> None:
    assert name_matches(kb, encode_query(kb.embedder, "Polandia and Curies' work"), 10).get(2) is None


def test_a_chinese_name_is_found_within_a_sentence(kb: KnowledgeBase) -> None:
    found = entity_route(kb, encode_query(kb.embedder, "请问北京大学在哪里"), SETTINGS)
    assert (found[0].rows, found[0].score) == ((4,), 1.0)


def test_a_common_name_is_worth_less_than_a_rare_one(open_rows: Callable[..., KnowledgeBase]) -> None:
    names = ["company", "Acme", *(f"company {letter}" for letter in "abcdefghij")]
    kb = open_rows(
        {"entities": [Entity(f"e{i:02}", name, "x", "", [], 1, 0, 1.0) for i, name in enumerate(names)]}
    )
    matches = name_matches(kb, encode_query(kb.embedder, "Is Acme a company?"), 20)
    assert matches[1] == 1.0
    assert 0.5 < matches[0] < 0.6


def test_triples_come_with_their_cosine_and_the_words_they_share(kb: KnowledgeBase) -> None:
    query = encode_query(kb.embedder, "Warsaw capital of Poland")
    found = triple_route(kb, query, SETTINGS)
    assert (found[0].kind, found[0].rows) == ("triple", (1,))
    assert found[0].score == pytest.approx(1, abs=1e-5)
    idf = kb.lexical["chunks"].idf
    born = next(one for one in found if one.rows == (0,))  # shares "Warsaw" alone
    share = idf("warsaw") / (idf("warsaw") + idf("capital") + idf("poland"))
    cosine = kb.vectors["triples"].similarities(query.vector)[0]
    assert born.score == pytest.approx((1 - WORD_SHARE) * cosine + WORD_SHARE * share, abs=1e-5)


def test_a_community_brings_its_central_facts(kb: KnowledgeBase) -> None:
    found = community_route(kb, encode_query(kb.embedder, "places in Poland: Warsaw capital"), SETTINGS)
    assert (found[0].kind, found[0].rows) == ("community", (1,))
    facts = [candidate for candidate in found if candidate.kind == "triple"]
    assert (1,) in [fact.rows for fact in facts]
    assert all(fact.score <= found[0].score for fact in facts)


def test_a_two_hop_chain_is_found_as_a_path(kb: KnowledgeBase) -> None:
    query = encode_query(kb.embedder, TWO_HOPS)
    found = path_route(kb, query, SETTINGS)
    chain = next(
        candidate for candidate in found if candidate.kind == "path" and set(candidate.rows) == {0, 1}
    )
    assert chain.nodes in ((0, 1, 2), (2, 1, 0))
    cosines = kb.vectors["triples"].similarities(query.vector)
    seed = next(one.score for one in entity_route(kb, query, SETTINGS) if one.rows == chain.nodes[:1])
    assert chain.score == pytest.approx(seed * cosines[0] * cosines[1] * SETTINGS.gamma**2, rel=1e-5)


def test_a_path_is_found_once_though_it_can_be_walked_from_both_ends(kb: KnowledgeBase) -> None:
    found = path_route(kb, encode_query(kb.embedder, "Marie Curie Warsaw Poland born capital"), SETTINGS)
    relations = [tuple(sorted(candidate.rows)) for candidate in found]
    assert len(relations) == len(set(relations))


def test_depth_bounds_the_hops(kb: KnowledgeBase) -> None:
    query = encode_query(kb.embedder, TWO_HOPS)
    assert {c.kind for c in path_route(kb, query, RetrieveSettings(depth=1))} == {"triple"}


def test_reach_is_bounded_and_takes_hubs_last(kb: KnowledgeBase) -> None:
    seeds = np.array([0, 2])  # Curie touches two relations, Poland one
    assert edges_within_reach(kb, seeds, 5, 10).tolist() == [0, 1, 2]
    assert edges_within_reach(kb, seeds, 5, 1).tolist() == [1]
    assert edges_within_reach(kb, np.array([3]), 1, 10).tolist() == [2]


def test_paths_are_the_same_when_only_what_is_within_reach_is_searched(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = encode_query(kb.embedder, TWO_HOPS)
    whole = path_route(kb, query, SETTINGS)
    monkeypatch.setattr("hornbeam.retrieve.path_route.MAX_EDGES", 0)
    assert path_route(kb, query, SETTINGS) == []
    monkeypatch.setattr("hornbeam.retrieve.path_route.MAX_EDGES", 2)
    assert len(kb.relations) > 2
    near = path_route(kb, query, SETTINGS, [Candidate("entity", (2,), 1.0, "entity")])
    assert [(one.rows, one.nodes) for one in near] == [((1,), ()), ((1, 0), (2, 1, 0))]
    assert {one.rows for one in near} <= {one.rows for one in whole} | {one.rows[::-1] for one in whole}


def test_chunk_routes_find_the_passage(kb: KnowledgeBase) -> None:
    query = encode_query(kb.embedder, "largest city and capital")
    assert chunk_dense_route(kb, query, SETTINGS)[0].rows == (2,)
    assert chunk_bm25_route(kb, query, SETTINGS)[0].rows == (2,)


def test_bm25_finds_a_chinese_passage(kb: KnowledgeBase) -> None:
    found = chunk_bm25_route(kb, encode_query(kb.embedder, "清华大学"), SETTINGS)
    assert found[0].rows == (3,)


@pytest.mark.parametrize("question", ["", "   \n", "北京大学在哪", "Где родилась Кюри?", "x" * 100_000])
def test_every_score_is_in_the_unit_interval_and_falls(kb: KnowledgeBase, question: str) -> None:
    query = encode_query(kb.embedder, question)
    routes = {
        "entity": entity_route,
        "triple": triple_route,
        "community": community_route,
        "path": path_route,
        "chunk_dense": chunk_dense_route,
        "chunk_bm25": chunk_bm25_route,
    }
    assert set(routes) == set(ROUTES) - {"attribute", "pagerank"}
    for name, route in routes.items():
        scores = [candidate.score for candidate in route(kb, query, SETTINGS)]
        assert all(0 < score <= 1 for score in scores), name
        assert scores == sorted(scores, reverse=True), name
        if query.blank:
            assert scores == [], name


def test_the_vector_of_a_very_long_question_stands_for_its_ends() -> None:
    seen: list[str] = []

    class Recorder(HashedWords):
        def encode(self, texts, *, batch_size=64):  # type: ignore[no-untyped-def]
            seen.extend(texts)
            return super().encode(texts, batch_size=batch_size)

    query = encode_query(Recorder(), "begin " + "filler " * 20_000 + "end")
    assert seen[0].startswith("begin ")
    assert seen[0].endswith(" end")
    assert len(seen[0]) == VECTOR_CHARACTERS + 1
    assert "end" in query.tokens


def test_no_more_candidates_than_asked_for(kb: KnowledgeBase) -> None:
    query = encode_query(kb.embedder, "Marie Curie Warsaw")
    few = RetrieveSettings(candidates=1)
    assert len(entity_route(kb, query, few)) == len(chunk_dense_route(kb, query, few)) == 1
