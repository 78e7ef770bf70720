"""Retrieval engines against known supporting passages: one question, many questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hornbeam.evaluate.gold_passages import Gold
from hornbeam.evaluate.question_files import Question
from hornbeam.evaluate.retrieval_metrics import (
    CUTS,
    claim_scores,
    confidence_interval,
    percentiles,
    ranking_scores,
)
from hornbeam.index.tokens import tokenise
from hornbeam.retrieve.engines import BASELINE
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import SearchResult, of_kind, search
from hornbeam.settings import RetrieveSettings

#: Measures that are given with an interval, and compared with the baseline question by question.
COMPARED = ("recall@5", "all_gold@5", "mrr", "evidence_recall@5")
#: Units of one ranking that are kept.
_KEPT = max(CUTS)
#: Questions asked before the clock counts: the first ones read pages of the index in.
_WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one engine found for one question."""

    units: tuple[int, ...]  # rows of `Gold.unit`, best first
    scores: tuple[float, ...]  # fused, of each unit's best chunk
    measures: dict[str, float]  # empty where the question names neither passages nor claims
    milliseconds: dict[str, float]  # by step


def evaluate(
    kb: KnowledgeBase,
    questions: Sequence[Question],
    gold: Gold,
    engines: Mapping[str, frozenset[str]],
    settings: RetrieveSettings,
    on_question: Callable[[Question, dict[str, Ranking]], None] = lambda question, found: None,
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, dict[str, Any]]]]:
    """engine → its row of the report; and kind of question → engine → the means over its questions, where
    the file has more than one kind. Every engine is asked every question, one after another.

    Args:
        engines: name → routes; `BASELINE` among them.
        on_question: told the rankings of each question as soon as it is done.
    """
    for question in questions[:_WARM_UP]:
        for routes in engines.values():
            search(kb, question.text, settings, routes=routes)
    found: dict[str, list[Ranking]] = {engine: [] for engine in engines}
    for question, passages in zip(questions, gold.units_of, strict=True):
        claims = [
            {token: kb.lexical["chunks"].idf(token) for token in tokenise(claim)} for claim in question.claims
        ]
        of_engine = {}
        for engine, routes in engines.items():
            result = search(kb, question.text, settings, routes=routes)
            of_engine[engine] = _ranking(kb, result, gold, passages, claims)
            found[engine].append(of_engine[engine])
        on_question(question, of_engine)
    rows = {engine: _row(found[engine], found[BASELINE]) for engine in engines}
    return rows, _by_kind(questions, found)


def _by_kind(
    questions: Sequence[Question], found: Mapping[str, list[Ranking]]
) -> dict[str, dict[str, dict[str, Any]]]:
    kinds = dict.fromkeys(question.kind for question in questions)
    if len(kinds) < 2:
        return {}
    of_kind = {
        kind: [place for place, question in enumerate(questions) if question.kind == kind] for kind in kinds
    }
    return {
        kind: {
            engine: {"questions": len(places)} | _means([rankings[place] for place in places])
            for engine, rankings in found.items()
        }
        for kind, places in of_kind.items()
    }


def _ranking(
    kb: KnowledgeBase,
    result: SearchResult,
    gold: Gold,
    passages: tuple[frozenset[int], ...],
    claims: list[dict[str, float]],
) -> Ranking:
    chunks = of_kind(result.ranking, "chunk")
    score_of: dict[int, float] = {}
    for item in chunks:
        (unit,) = gold.ranked_units(kb, item.rows)
        score_of.setdefault(unit, item.score)
    units = tuple(score_of)[:_KEPT]
    measures = ranking_scores(units, passages) if passages else {}
    if claims:
        tokens = [frozenset(tokenise(kb.chunks.text("text", item.rows[0]))) for item in chunks[:_KEPT]]
        for cut in CUTS:
            measures |= claim_scores(claims, tokens, cut)
    return Ranking(units, tuple(score_of[unit] for unit in units), measures, result.milliseconds)


def _row(rankings: list[Ranking], baseline: list[Ranking]) -> dict[str, Any]:
    """Means over the questions that have the measure, intervals, and milliseconds by step."""
    row: dict[str, Any] = dict(_means(rankings))
    for name in COMPARED:
        if name in row:
            values = [ranking.measures[name] for ranking in rankings if name in ranking.measures]
            before = [ranking.measures[name] for ranking in baseline if name in ranking.measures]
            difference = np.array(values) - np.array(before)
            row.setdefault("interval_95", {})[name] = _rounded(confidence_interval(values))
            row.setdefault(f"over_{BASELINE}", {})[name] = {
                "difference": round(float(difference.mean()), 4),
                "interval_95": _rounded(confidence_interval(difference)),
            }
    steps = dict.fromkeys(step for ranking in rankings for step in ranking.milliseconds)
    row["milliseconds"] = {
        step: percentiles([ranking.milliseconds.get(step, 0.0) for ranking in rankings]) for step in steps
    }
    return row


def _means(rankings: Sequence[Ranking]) -> dict[str, float]:
    """Each measure over the questions that have it."""
    values: dict[str, list[float]] = {}
    for ranking in rankings:
        for name, value in ranking.measures.items():
            values.setdefault(name, []).append(value)
    return {name: round(float(np.mean(of_name)), 4) for name, of_name in values.items()}


def _rounded(interval: tuple[float, float]) -> list[float]:
    return [round(bound, 4) for bound in interval]
