import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from hornbeam.records import Entity
from hornbeam.retrieve.evidence import pack_evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.listing import lines
from hornbeam.retrieve.search import ROUTES, search
from hornbeam.settings import RetrieveSettings
from support.version_by_hand import TEXTS, small_rows

SETTINGS = RetrieveSettings()
QUESTION = "Marie Curie was born in the capital of which country?"


def words(text: str) -> int:
    return len(text.split())


def test_items_of_all_kinds_carry_identifiers_text_and_place(kb: KnowledgeBase) -> None:
    result = search(kb, QUESTION, SETTINGS, 50)
    kinds = {item.kind for item in result.items}
    assert kinds == {"entity", "triple", "attribute", "path", "community", "chunk"}
    for item in result.items:
        assert item.ids
        assert item.text
        assert item.routes
        if item.provenance is not None:
            text = TEXTS[item.provenance.document_id][2]
            assert 0 <= item.provenance.start < item.provenance.end <= len(text)
    scores = [item.score for item in result.items]
    assert scores == sorted(scores, reverse=True)


def test_a_fact_cites_the_smallest_window_around_its_ends(kb: KnowledgeBase) -> None:
    result = search(kb, "Curie discovered polonium", SETTINGS, 50)
    fact = next(item for item in result.items if item.kind == "triple" and item.ids == ["r3"])
    assert fact.provenance is not None
    text = TEXTS[fact.provenance.document_id][2]
    # Both "Marie Curie" and the alias "Curie" stand in the chunk; the alias is nearer.
    assert text[fact.provenance.start : fact.provenance.end] == "Curie discovered polonium"
    result = search(kb, "Which city is the capital of Poland?", SETTINGS, 50)
    capital = next(item for item in result.items if item.ids == ["r2"])
    assert capital.provenance is not None
    assert TEXTS["d2"][2][capital.provenance.start : capital.provenance.end] == (
        "Warsaw, is the capital of Poland"
    )


def test_the_graph_lifts_the_chunk_that_states_the_second_hop(kb: KnowledgeBase) -> None:
    result = search(kb, QUESTION, SETTINGS)
    second = next(item for item in result.chunks if item.ids == ["d2c1"])
    assert second.routes["pagerank"].score > 0


def test_top_k_bounds_items_and_chunks(kb: KnowledgeBase) -> None:
    result = search(kb, QUESTION, SETTINGS, 2)
    assert (len(result.items), len(result.chunks)) == (2, 2)
    assert all(item.kind == "chunk" for item in result.chunks)


def test_routes_can_be_chosen(kb: KnowledgeBase) -> None:
    result = search(kb, QUESTION, SETTINGS, routes=frozenset({"chunk_dense", "chunk_bm25"}))
    assert {item.kind for item in result.items} == {"chunk"}
    assert set(result.milliseconds) == {
        "encode",
        "chunk_dense",
        "chunk_bm25",
        "complete",
        "fuse",
        "describe",
        "total",
    }


def test_the_same_question_gives_the_same_answer(kb: KnowledgeBase) -> None:
    first, second = (search(kb, QUESTION, SETTINGS, 50).items for _ in range(2))
    assert first == second


@pytest.mark.parametrize("fusion", ["rrf", "weighted"])
def test_json_holds_the_trace_of_every_item(kb: KnowledgeBase, fusion: str) -> None:
    settings = RetrieveSettings.model_validate({"fusion": fusion})
    document = json.loads(json.dumps(search(kb, QUESTION, settings).to_json()))
    assert set(document) == {
        "question",
        "items",
        "chunks",
        "relevance",
        "found",
        "dropped",
        "milliseconds",
    }
    for item in document["items"]:
        assert set(item) == {"kind", "ids", "text", "score", "routes", "same_text", "provenance"}
        for place in item["routes"].values():
            assert place["rank"] >= 1
            assert 0 < place["score"] <= 1
        assert sum(place["part"] for place in item["routes"].values()) == pytest.approx(item["score"])


@pytest.mark.parametrize("question", ["", " \n", "?", "the of"])
def test_an_empty_question_is_answered_with_little_or_nothing(kb: KnowledgeBase, question: str) -> None:
    result = search(kb, question, SETTINGS)
    if not question.strip():
        assert result.items == result.chunks == []
    assert pack_evidence(kb, result, token_budget=50, count_tokens=words) is not None


def test_a_text_that_has_nothing_to_do_with_the_index_finds_nothing(kb: KnowledgeBase) -> None:
    nonsense = search(kb, "blarg flonk wibble", SETTINGS)
    assert nonsense.items == nonsense.chunks == nonsense.ranking == []
    assert nonsense.relevance < SETTINGS.floor
    assert search(kb, "blarg flonk wibble", RetrieveSettings(floor=0)).items
    assert search(kb, "blarg Poland wibble flonk snorp", SETTINGS).relevance == 1.0  # a whole name
    assert search(kb, "北京大学 blarg", SETTINGS).relevance == 1.0
    assert search(kb, "blarg poland wibble flonk snorp", SETTINGS).relevance < 1.0
    alone = search(kb, "blarg flonk wibble", SETTINGS, routes=frozenset({"chunk_dense"}))
    assert alone.relevance < SETTINGS.floor
    assert alone.items  # not judged: one route alone cannot tell


def test_texts_that_read_the_same_are_found_once(open_rows: Callable[..., KnowledgeBase]) -> None:
    rows = small_rows()
    twin = replace(rows["documents"][0], document_id="d9", source="twin.txt")
    first = next(chunk for chunk in rows["chunks"] if chunk.document_id == "d1")
    rows["documents"].append(twin)
    rows["chunks"].append(replace(first, chunk_id="d9c0", document_id="d9"))
    kb = open_rows(rows)
    result = search(kb, "Marie Curie discovered polonium", SETTINGS, 50)
    assert len({item.text for item in result.chunks}) == len(result.chunks)
    (both,) = (item for item in result.chunks if item.text == first.text)
    assert sorted([*both.ids, *both.same_text]) == ["d1c0", "d9c0"]
    assert "1 more read the same" in "\n".join(lines(result, 0.38, explain=True))
    packed = pack_evidence(kb, result, token_budget=500, count_tokens=words)
    assert sum(piece.text == first.text for piece in packed) == 1


def test_an_attribute_of_a_named_entity_is_found_with_its_place(kb: KnowledgeBase) -> None:
    result = search(kb, "What was the workplace of Marie Curie?", SETTINGS, 50)
    found = next(item for item in result.items if item.kind == "attribute")
    assert (found.ids, found.text) == (["a1"], "Marie Curie workplace: Paris")
    assert found.provenance is not None
    assert TEXTS["d1"][2][found.provenance.start : found.provenance.end] == "Paris"
    # Whole name, one of the question's three words beside two of the name's.
    assert 0.5 < found.routes["attribute"].score <= 1.0


def test_the_listing_explains_every_score(kb: KnowledgeBase) -> None:
    result = search(kb, QUESTION, SETTINGS)
    plain, explained = "\n".join(lines(result, 0.38)), "\n".join(lines(result, 0.38, explain=True))
    assert "from pagerank: score" in explained
    assert "milliseconds: encode" in explained
    assert "from pagerank" not in plain
    assert "pioneers.txt:0-75" in plain
    assert "below retrieve.floor 0.38" in "\n".join(lines(search(kb, "blarg flonk wibble", SETTINGS), 0.38))


def test_a_question_of_100000_characters_is_answered(kb: KnowledgeBase) -> None:
    result = search(kb, "Warsaw " * 14_300, SETTINGS)
    assert result.items


def test_questions_in_chinese_and_russian_are_answered(kb: KnowledgeBase) -> None:
    # The floor is calibrated for the embedded embedder, not for the tests'.
    assert search(kb, "清华大学在哪里", RetrieveSettings(floor=0)).chunks[0].ids == ["d3c0"]
    assert search(kb, "Где Warsaw?", SETTINGS).items


def test_an_empty_graph_finds_nothing(open_rows: Callable[..., KnowledgeBase]) -> None:
    kb = open_rows({})
    result = search(kb, QUESTION, SETTINGS)
    assert result.items == result.ranking == []
    assert pack_evidence(kb, result, token_budget=100, count_tokens=words) == []


def test_one_entity_without_text_is_found_without_provenance(
    open_rows: Callable[..., KnowledgeBase],
) -> None:
    kb = open_rows({"entities": [Entity("e1", "Marie Curie", "person", "", [], 0, 0, 1.0)]})
    (item,) = search(kb, QUESTION, SETTINGS).items
    assert (item.kind, item.text, item.provenance) == ("entity", "Marie Curie (person)", None)


def test_chunks_without_a_graph_are_found(open_rows: Callable[..., KnowledgeBase]) -> None:
    rows = small_rows()
    kb = open_rows({name: rows[name] for name in ("documents", "chunks")})
    assert {item.kind for item in search(kb, QUESTION, SETTINGS).items} == {"chunk"}


def test_missing_communities_leave_the_other_routes(open_rows: Callable[..., KnowledgeBase]) -> None:
    kb = open_rows({**small_rows(), "communities": [], "community_members": []})
    kinds = {item.kind for item in search(kb, QUESTION, SETTINGS, 50).items}
    assert kinds == {"entity", "triple", "attribute", "path", "chunk"}


def test_imported_triples_without_text_are_evidence_without_a_quote(
    open_rows: Callable[..., KnowledgeBase],
) -> None:
    rows = small_rows()
    kept = ("entities", "relations", "communities", "community_members")
    kb = open_rows({name: rows[name] for name in kept})
    evidence = pack_evidence(kb, search(kb, QUESTION, SETTINGS), token_budget=200, count_tokens=words)
    assert {piece.kind for piece in evidence} >= {"triple", "community"}
    assert all(piece.quote is None and piece.document_id is None for piece in evidence)


def test_the_real_embedder_finds_a_paraphrase(tmp_path_factory: pytest.TempPathFactory) -> None:
    from hornbeam.index.build import build_indexes
    from hornbeam.index.embedder import Embedder, find_embedder
    from hornbeam.settings import EmbedderSettings
    from support.version_by_hand import write_tables

    embedder = Embedder(find_embedder(None), device="cpu")
    directory = write_tables(tmp_path_factory.mktemp("real") / "version", small_rows())
    build_indexes(directory, embedder, EmbedderSettings())
    kb = KnowledgeBase.open(directory, embedder, expected_embedder_fingerprint=embedder.fingerprint)
    result = search(kb, "Which chemical was found by the scientist?", SETTINGS, 50)
    assert result.chunks[0].ids == ["d1c0"]
    best = next(item for item in result.items if item.kind == "triple")
    assert best.ids == ["r3"]
    assert set(ROUTES) <= set(result.milliseconds)
