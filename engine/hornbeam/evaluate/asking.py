"""Questions with known answers, asked of an index: what came, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hornbeam.answer.events import EvidenceFound, Final
from hornbeam.answer.inquiry import Style
from hornbeam.answer.loop import answer_question
from hornbeam.answer.writing import without_marks
from hornbeam.errors import UsageError
from hornbeam.evaluate.answer_checks import counted
from hornbeam.evaluate.answer_metrics import exact_match, f1
from hornbeam.evaluate.gold_passages import Gold
from hornbeam.evaluate.question_files import Question
from hornbeam.evaluate.retrieval_metrics import claim_scores
from hornbeam.index.tokens import tokenise
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.shared import SharedModel
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.hiding import hide
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import AnswerSettings, RetrieveSettings

#: Parts of the system that can be left out, as in the paper's ablations.
PARTS = ("community", "agent", "schema")
#: What answers where the agent (planning, reflection, the choice of an engine) is left out.
_WITHOUT_AGENT = "mix"


@dataclass(frozen=True, slots=True)
class Variant:
    """An engine, with all its parts or without some: a row of the report."""

    name: str
    engine: str
    retrieve: RetrieveSettings


def variant(engine: str, without: Sequence[str], retrieve: RetrieveSettings) -> Variant:
    """
    Raises:
        UsageError: no such part.
    """
    changes: dict[str, Any] = {}
    answering = engine
    for part in without:
        if part == "community":
            changes["without"] = (*retrieve.without, "community")
        elif part == "schema":
            changes["asked_types"] = False
        elif part == "agent":
            answering = _WITHOUT_AGENT if engine in ("auto", "plan", "global") else engine
        else:
            raise UsageError(f"no part '{part}' to leave out: choose among {', '.join(PARTS)}")
    name = engine + "".join(f", no {part}" for part in without)
    return Variant(name, answering, retrieve.model_copy(update=changes))


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to ask."""

    question: Question
    passages: tuple[frozenset[int], ...]  # rows of `Gold.unit` that hold its evidence
    removed: bool = False  # ask it with these passages out of sight

    @property
    def answerable(self) -> bool:
        return self.question.answerable and not self.removed


@dataclass(frozen=True, slots=True)
class Reply:
    ask: Ask
    answer: str  # without marks; "" of a rejected question
    final: Final
    evidence: tuple[Evidence, ...]
    measures: dict[str, float]  # em, f1 where answers are known; evidence_recall where evidence is
    counts: dict[str, int]  # of plans and citations: `answer_checks.COUNTS`


def asks_of(questions: Sequence[Question], gold: Gold, *, removed: bool) -> list[Ask]:
    """Every question once; with `removed` again without its evidence, where the index is known to hold it."""
    asks = []
    for question, passages in zip(questions, gold.units_of, strict=True):
        asks.append(Ask(question, passages))
        if removed and question.answerable and any(passages):
            asks.append(Ask(question, passages, removed=True))
    return asks


def ask_all(
    kb: KnowledgeBase,
    model: SharedModel,
    asks: Sequence[Ask],
    gold: Gold,
    variant: Variant,
    answer: AnswerSettings,
    style: Style,
    *,
    concurrency: int = 1,
    on_reply: Callable[[Reply], None] = lambda reply: None,
) -> list[Reply]:
    """The replies in the asks' order; `concurrency` questions are under way at once.

    Args:
        on_reply: told each reply as soon as it is there, in this thread.

    Raises:
        ModelError: the model failed.
    """

    def one(ask: Ask) -> Reply:
        caller = model.caller(None)
        try:
            return _asked(kb, caller, ask, gold, variant, answer, style)
        finally:
            caller.close()

    with ThreadPoolExecutor(concurrency, thread_name_prefix="question") as pool:
        futures = [pool.submit(one, ask) for ask in asks]
        try:
            for future in as_completed(futures):
                on_reply(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _asked(
    kb: KnowledgeBase,
    model: LanguageModel,
    ask: Ask,
    gold: Gold,
    variant: Variant,
    answer: AnswerSettings,
    style: Style,
) -> Reply:
    if ask.removed:
        kb = replace(kb, hidden=hide(kb, _chunks(kb, gold, ask.passages)))
    asked = answer_question(
        kb,
        model,
        ask.question.text,
        retrieve=variant.retrieve,
        answer=answer,
        engine=variant.engine,
        style=style,
    )
    events = list(asked)
    final = events[-1]
    assert isinstance(final, Final)
    evidence = [piece for event in events if isinstance(event, EvidenceFound) for piece in event.evidence]
    said = "" if final.rejected else without_marks(final.answer)
    counts = counted(kb, events, answer.plan_questions)
    return Reply(ask, said, final, tuple(evidence), _measures(kb, ask, gold, said, evidence), counts)


def _measures(
    kb: KnowledgeBase, ask: Ask, gold: Gold, said: str, evidence: Sequence[Evidence]
) -> dict[str, float]:
    measures: dict[str, float] = {}
    if not ask.answerable:
        return measures
    if ask.question.answers:
        measures["em"] = exact_match(said, ask.question.answers)
        measures["f1"] = f1(said, ask.question.answers)
    if ask.passages:
        shown = {piece.document_id if gold.unit == "document" else piece.chunk_id for piece in evidence}
        table, identifier = (
            (kb.documents, "document_id") if gold.unit == "document" else (kb.chunks, "chunk_id")
        )
        met = [any(table.text(identifier, row) in shown for row in rows) for rows in ask.passages]
        measures["evidence_recall"] = sum(met) / len(met)
    elif ask.question.claims:
        claims = [
            {token: kb.lexical["chunks"].idf(token) for token in tokenise(claim)}
            for claim in ask.question.claims
        ]
        texts = [frozenset(tokenise(piece.text)) for piece in evidence]
        found = claim_scores(claims, texts, max(1, len(texts)))
        measures["evidence_recall"] = next(iter(found.values()))
    return measures


def _chunks(kb: KnowledgeBase, gold: Gold, passages: Collection[frozenset[int]]) -> list[int]:
    rows = sorted(set().union(*passages))
    if gold.unit == "chunk":
        return rows
    return [int(row) for row in np.flatnonzero(np.isin(kb.chunk_documents, rows))]
