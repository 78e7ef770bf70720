"""What the evidence itself says of whether it answers a question."""

from __future__ import annotations

import pytest

from hornbeam.answer.answerability import by_evidence, signals_of
from hornbeam.index.tokens import tokenise
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.fusion import RouteScore


def asked(question: str, evidence: list[Evidence]) -> dict[str, float]:
    return signals_of(question, evidence, {token: float(len(token)) for token in tokenise(question)})


QUESTION = "Which prize did Marie Curie win with Pierre Curie?"


def piece(text: str, score: float, **routes: float) -> Evidence:
    found = {name: RouteScore(1, value) for name, value in routes.items()}
    return Evidence(1, "chunk", text, None, None, None, None, None, None, None, score, found)


def test_without_evidence_nothing_speaks_for_an_answer() -> None:
    assert set(asked(QUESTION, []).values()) == {0.0}


def test_the_best_score_of_each_route_counts() -> None:
    evidence = [
        piece("x", 0.4, chunk_dense=0.7, chunk_bm25=0.1),
        piece("y", 0.6, chunk_dense=0.2, chunk_bm25=0.3),
        piece("z", 0.1, triple=0.5),
    ]
    signals = asked(QUESTION, evidence)
    scores = {name: signals[name] for name in ("fused", "cosine", "words", "fact")}
    assert scores == {"fused": 0.6, "cosine": 0.7, "words": 0.3, "fact": 0.5}


def test_terms_may_be_covered_together_or_by_one_piece() -> None:
    apart = [piece("Marie Curie won a prize.", 0.5), piece("Pierre Curie was her husband.", 0.5)]
    signals = asked(QUESTION, apart)
    assert signals["named"] == 1.0
    assert signals["covered"] > signals["together"] > 0
    nothing = asked(QUESTION, [piece("The tide gauge is in Brest.", 0.5)])
    assert nothing["covered"] == nothing["named"] == nothing["together"] == 0.0


def test_words_count_by_weight_where_most_of_them_stand_in_one_piece() -> None:
    evidence = [piece("the tide of 1900", 0.5), piece("a gauge measures floods", 0.5)]
    assert signals_of("tide gauge", evidence, {"tide": 1.0, "gauge": 3.0})["share"] == 0.75
    assert signals_of("tide gauge", [piece("gauge, tide", 0.5)], {"tide": 1.0, "gauge": 3.0})["share"] == 1.0


def test_the_more_of_a_question_the_evidence_speaks_of_the_likelier_it_answers() -> None:
    full = asked(QUESTION, [piece("Marie Curie did win a prize, which she won with Pierre Curie.", 0.5)])
    part = asked(QUESTION, [piece("Marie Curie was born in Warsaw.", 0.5)])
    none = asked(QUESTION, [piece("The tide gauge is in Brest.", 0.5)])
    assert 1 > by_evidence(full) > by_evidence(part) > by_evidence(none) > 0
    assert by_evidence(full) > 0.5 > by_evidence(none)


def test_a_question_without_names_lacks_none() -> None:
    assert asked("what is a tide gauge?", [piece("A tide gauge is a device.", 0.5)])["named"] == 1.0


@pytest.mark.parametrize("question", ["", "?", "и", "谁是她的丈夫？"])
def test_any_question_has_signals_between_nothing_and_one(question: str) -> None:
    signals = asked(question, [piece("她的丈夫是皮埃尔。", 1.0, chunk_dense=1.0)])
    assert all(0 <= value <= 1 for value in signals.values())
