from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hornbeam.records import Chunk, Document
from hornbeam.retrieve.evidence import Evidence, pack_evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.retrieve.sentences import nearest_run, sentence_spans
from hornbeam.settings import RetrieveSettings
from support.version_by_hand import TEXTS, small_rows

QUESTION = "Marie Curie was born in the capital of which country?"


def words(text: str) -> int:
    return len(text.split())


def pack(kb: KnowledgeBase, question: str, budget: int) -> list[Evidence]:
    return pack_evidence(
        kb, search(kb, question, RetrieveSettings()), token_budget=budget, count_tokens=words
    )


@pytest.mark.parametrize("budget", [0, 5, 12, 30, 60, 500])
@pytest.mark.parametrize("question", [QUESTION, "清华大学在哪里", "Warsaw river", ""])
def test_quotes_are_the_documents_text_and_the_budget_holds(
    kb: KnowledgeBase, question: str, budget: int
) -> None:
    evidence = pack(kb, question, budget)
    assert sum(words(piece.text) for piece in evidence) <= budget
    assert [piece.label for piece in evidence] == list(range(1, len(evidence) + 1))
    for piece in evidence:
        assert piece.document_id is not None
        title, source, text, _ = TEXTS[piece.document_id]
        assert (piece.title, piece.source) == (title, source)
        assert text[piece.start : piece.end] == piece.quote != ""
        if piece.kind == "chunk":
            assert piece.text == piece.quote
        assert piece.routes


def test_source_text_goes_in_before_facts(kb: KnowledgeBase) -> None:
    smallest = pack(kb, QUESTION, 12)
    assert smallest[0].kind == "chunk"
    assert smallest[0].text == TEXTS["d1"][2]


def test_all_kinds_are_mixed_when_there_is_room(kb: KnowledgeBase) -> None:
    evidence = pack(kb, QUESTION, 120)
    assert {piece.kind for piece in evidence} >= {"chunk", "path", "community"}  # the path holds the triples
    facts = sum(words(piece.text) for piece in evidence if piece.kind != "chunk")
    assert facts <= 0.35 * 120


def test_a_fact_is_not_stated_twice(kb: KnowledgeBase) -> None:
    texts = [piece.text for piece in pack(kb, QUESTION, 500)]
    assert len(texts) == len(set(texts))
    # The only path holds both relations: as one line or as two, not both.
    born, capital, path = "Marie Curie born in Warsaw", "Warsaw capital of Poland", "-["
    assert (born in texts) == (capital in texts) != any(path in text for text in texts)


@pytest.mark.parametrize("cut", [False, True])
def test_a_sentence_of_a_text_that_is_packed_is_no_fact_beside_it(
    open_rows: Callable[[Mapping[str, Sequence[Any]]], KnowledgeBase], cut: bool
) -> None:
    sentences = {
        "r1": "Marie Curie was born in Warsaw.",
        "r2": "The largest city, Warsaw, is the capital of Poland.",
        "r3": "Later, in Paris, Curie discovered polonium.",
    }
    if cut:  # a long sentence is described by its beginning
        sentences["r1"] = "Marie Curie was born in Warsaw…"
    rows = small_rows()
    rows["relations"] = [
        replace(relation, type="occurs_with", description=sentences[relation.relation_id])
        for relation in rows["relations"]
    ]
    kb = open_rows(rows)
    question = "Warsaw, where Marie Curie was born"
    found = [item.text for item in search(kb, question, RetrieveSettings()).items if item.kind == "triple"]
    assert sentences["r1"] in found

    tight = [piece.text for piece in pack(kb, question, len(TEXTS["d1"][2].split()) + 20)]
    roomy = [piece.text for piece in pack(kb, question, 500)]

    for texts in (tight, roomy):
        assert TEXTS["d1"][2] in texts
        assert sentences["r1"] not in texts
    assert sentences["r2"] not in roomy  # its chunk came in after the facts, in its place


def test_a_long_chunk_is_cut_to_the_sentences_nearest_to_the_question(
    open_rows: Callable[..., KnowledgeBase],
) -> None:
    head = "Preface. "
    body = "Rain fell. " * 30 + "Radium was isolated by Curie. It glows. " + "Wind blew. " * 30
    document = Document("d1", "a.txt", "t", head + body, "en", [])
    chunk = Chunk("c1", "d1", len(head), len(head + body), body, 100, "done")
    kb = open_rows({"documents": [document], "chunks": [chunk]})
    (piece,) = pack(kb, "Who isolated radium?", 30)
    assert "Radium was isolated by Curie." in piece.text
    assert words(piece.text) <= 30
    assert document.text[piece.start : piece.end] == piece.text


def test_a_budget_too_small_for_a_sentence_gives_nothing(kb: KnowledgeBase) -> None:
    assert pack(kb, QUESTION, 2) == []


def test_sentences_end_at_stops_not_at_abbreviations_or_numbers() -> None:
    text = "Dr. J. Smith paid 3.5 dollars, e.g. once. “Why?” He left!\n\nNew part 北京大学。清华大学！End"
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "Dr. J. Smith paid 3.5 dollars, e.g. once.",
        "“Why?”",
        "He left!",
        "New part 北京大学。",
        "清华大学！",
        "End",
    ]


def test_the_nearest_run_is_worth_most_then_longest_then_first() -> None:
    text = "A cat. A dog. A cat and a dog. Nothing. A cat."
    weights = {"cat": 1.0, "dog": 1.0}
    start, end = nearest_run(text, weights, 6, words) or (0, 0)
    assert text[start:end] == "A cat and a dog. Nothing."
    assert nearest_run(text, weights, 1, words) == (text.index("Nothing"), text.index("Nothing") + 8)
    assert nearest_run("One two three.", weights, 2, words) is None
    assert nearest_run("", weights, 2, words) is None


def test_small_rows_are_grounded() -> None:
    rows = small_rows()
    chunks = {chunk.chunk_id: chunk.text for chunk in rows["chunks"]}
    for mention in rows["mentions"]:
        assert chunks[mention.chunk_id][mention.start : mention.end] == mention.surface
