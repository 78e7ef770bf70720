from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hornbeam.errors import StoreError
from hornbeam.index.walk import read_walk
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.pagerank_route import pagerank_route
from hornbeam.retrieve.query import Candidate
from hornbeam.retrieve.search import search
from hornbeam.settings import RetrieveSettings
from support.version_by_hand import small_rows

SETTINGS = RetrieveSettings()
BORN, CAPITAL = Candidate("triple", (0,), 0.8, "triple"), Candidate("triple", (1,), 0.6, "triple")


def best(found: list[Candidate], kind: str) -> dict[int, float]:
    return {candidate.rows[0]: candidate.score for candidate in found if candidate.kind == kind}


def test_the_walk_joins_entities_to_their_chunks_and_to_one_another(kb: KnowledgeBase) -> None:
    entities = len(kb.entities)
    graph = kb.walk
    assert graph.n == entities + len(kb.chunks)
    of_curie = graph.indices[graph.indptr[0] : graph.indptr[1]].tolist()
    # Named twice in the first chunk, which counts once; Warsaw and polonium are its neighbours.
    assert sorted(of_curie) == [1, 3, entities]
    assert graph.weights[graph.indptr[0] : graph.indptr[1]].sum() == pytest.approx(1.0)


def test_a_fact_leads_to_the_chunk_of_the_next_hop(kb: KnowledgeBase) -> None:
    chunks = best(pagerank_route(kb, SETTINGS, [BORN], {}), "chunk")
    assert chunks[0] == 1.0  # states the fact
    assert 0 < chunks[2] < 1  # says more about Warsaw
    assert 3 not in chunks  # a Chinese text that nothing leads to


def test_entities_are_found_beside_chunks(kb: KnowledgeBase) -> None:
    entities = best(pagerank_route(kb, SETTINGS, [BORN], {}), "entity")
    assert {0, 1, 2, 3} <= set(entities)
    assert max(entities.values()) == 1.0


def test_texts_alone_are_walked_from_too(kb: KnowledgeBase) -> None:
    chunks = best(pagerank_route(kb, SETTINGS, [], {0: 0.9, 3: 0.1}), "chunk")
    assert max(chunks, key=lambda row: chunks[row]) == 0
    assert pagerank_route(kb, SETTINGS, [], {}) == []
    assert best(pagerank_route(kb, SETTINGS, [], {2: 0.5}), "chunk")[2] == 1.0


def test_only_the_best_facts_are_walked_from(kb: KnowledgeBase) -> None:
    settings = RetrieveSettings(seed_facts=1)
    assert pagerank_route(kb, settings, [BORN, CAPITAL], {}) == pagerank_route(kb, settings, [BORN], {})
    assert pagerank_route(kb, RetrieveSettings(seed_facts=0), [BORN], {}) == []


def test_a_fact_that_is_much_less_like_the_question_than_a_text_leads_nowhere(kb: KnowledgeBase) -> None:
    texts = {3: 0.8, 2: 0.1}
    weak = best(pagerank_route(kb, SETTINGS, [Candidate("triple", (0,), 0.1, "triple")], texts), "chunk")
    strong = best(pagerank_route(kb, SETTINGS, [BORN], texts), "chunk")
    assert max(weak, key=lambda row: weak[row]) == 3
    assert max(strong, key=lambda row: strong[row]) == 0


def test_without_facts_the_named_entities_are_walked_from(kb: KnowledgeBase) -> None:
    warsaw = Candidate("entity", (1,), 1.0, "entity", "name")
    chunks = best(pagerank_route(kb, SETTINGS, [], {}, [warsaw]), "chunk")
    assert {0, 1, 2} <= set(chunks)
    assert pagerank_route(kb, SETTINGS, [BORN], {}, [warsaw]) == pagerank_route(kb, SETTINGS, [BORN], {})


def test_an_imported_graph_without_text_is_walked(
    open_rows: Callable[..., KnowledgeBase],
) -> None:
    rows = small_rows()
    kb = open_rows({name: rows[name] for name in ("entities", "relations")})
    assert 2 in best(pagerank_route(kb, SETTINGS, [BORN], {}), "entity")


def test_chunks_that_only_the_walk_found_have_their_text_scores(kb: KnowledgeBase) -> None:
    result = search(kb, "Who discovered polonium?", RetrieveSettings(candidates=1), 10)
    routes = {item.ids[0]: set(item.routes) for item in result.chunks}
    assert {"pagerank", "chunk_dense"} <= routes["d1c0"]
    exact = kb.lexical["chunks"].search(result.query.tokens, 10)
    for row, score in zip(exact[0].tolist(), exact[1].tolist(), strict=True):
        item = next((one for one in result.ranking if (one.kind, one.rows) == ("chunk", (row,))), None)
        if item is not None and "chunk_bm25" in item.routes:
            assert item.routes["chunk_bm25"].score == pytest.approx(score)


def test_a_missing_or_damaged_walk_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"walk\.npz"):
        read_walk(tmp_path)
    (tmp_path / "graph").mkdir()
    np.savez(tmp_path / "graph" / "walk.npz", indptr=np.zeros(1))
    with pytest.raises(StoreError, match=r"walk\.npz is damaged.*--repair"):
        read_walk(tmp_path)
