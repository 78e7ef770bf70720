"""A question to a stream of events: evidence first, then the answer as it is written, with its citations."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from hornbeam.answer.answerability import answerable, missing_terms, refusal
from hornbeam.answer.conversation import Turn, stand_alone
from hornbeam.answer.draft import Draft, best_so_far
from hornbeam.answer.engines import choose_engine
from hornbeam.answer.events import Asked, Event, Final, Planned, Stepped, Used
from hornbeam.answer.inquiry import Inquiry, Style
from hornbeam.answer.metering import total_tokens
from hornbeam.answer.planning import Solved, make_plan, solve
from hornbeam.answer.reflection import reflect
from hornbeam.answer.summaries import gather_summaries
from hornbeam.answer.writing import AnswerForm, AnswerReader, write_answer
from hornbeam.errors import ModelError
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.shared import OutOfTime
from hornbeam.retrieve.engines import routes_of
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.model_reranker import reranked_by_model
from hornbeam.settings import AnswerSettings, RetrieveSettings

NO_EVIDENCE = "The index holds no evidence for this question."


def answer_question(
    kb: KnowledgeBase,
    model: LanguageModel,
    question: str,
    *,
    retrieve: RetrieveSettings,
    answer: AnswerSettings,
    engine: str = "mix",
    style: Style = "sentences",
    history: Sequence[Turn] = (),
) -> Iterator[Event]:
    """Retrieve, decide (in reject mode) and answer. Closing the iterator stops the model.

    Args:
        engine: one of `engines.ENGINES`.
        history: of the conversation; a question that leans on it is rewritten to stand alone.

    Raises:
        ModelError: the model could not answer.
        UsageError: no such engine.
    """
    kb = reranked_by_model(kb, model, retrieve)
    inquiry = Inquiry(kb, model, question, retrieve=retrieve, answer=answer, style=style)
    choose_engine(engine, question)  # a wrong name costs no call
    if history:
        with suppress(OutOfTime):  # it is asked as it is
            inquiry.question = stand_alone(inquiry, history)
    chosen, reason = choose_engine(engine, inquiry.question)
    yield Asked(question, inquiry.question, chosen, reason)
    final = yield from _answer(inquiry, chosen)
    used = inquiry.meter.used()
    yield used
    yield replace(_with_costs(final, used, answer, chosen), signals=dict(inquiry.signals))


def _answer(inquiry: Inquiry, engine: str) -> Generator[Event, None, Final]:
    draft = Draft()
    try:
        if engine == "plan":
            return (yield from _planned(inquiry, draft))
        return (yield from _once(inquiry, engine, draft))
    except OutOfTime:
        draft.evidence = draft.evidence or inquiry.evidence
        return (yield from best_so_far(draft, reject=inquiry.answer.mode == "reject"))


def _once(inquiry: Inquiry, engine: str, draft: Draft) -> Generator[Event, None, Final]:
    """Gather evidence as the engine does, then answer from it once."""
    draft.evidence = evidence = yield from _gather(inquiry, engine)
    if not evidence:
        return _nothing(inquiry)
    if inquiry.answer.mode == "reject":
        draft.probability = answerable(inquiry, evidence)
        if draft.probability < inquiry.answer.answerable_threshold:
            missing = missing_terms(inquiry.question, evidence)
            return Final(refusal(missing), True, draft.probability, (), missing=missing)
    form = AnswerForm(inquiry, evidence)
    draft.reader = reader = AnswerReader(form)
    yield from write_answer(inquiry, form, reader)
    return Final(reader.text, False, draft.probability, reader.citations, cut=reader.cut)


def _planned(inquiry: Inquiry, draft: Draft) -> Generator[Event, None, Final]:
    """Evidence for the question itself, as `mix` has it; its sub-questions; then looking again."""
    draft.evidence = first = yield from _gather(inquiry, "mix")
    if not first:
        return _nothing(inquiry)
    try:
        plan = make_plan(inquiry)
    except ModelError as error:  # without a plan this is `mix`, and an answer; if that fails, too, it is said
        plan = ()
        yield Stepped(0, "stop", "", 0, f"no plan: {error}")
    yield Planned(plan)
    solved: list[Solved] = []
    if len(plan) > 1:
        solved = yield from solve(inquiry, plan)
        for one in solved:
            if one.citation is not None:
                draft.answer, draft.citation = one.answer, one.citation
    return (yield from reflect(inquiry, draft, first, solved))


def _gather(inquiry: Inquiry, engine: str) -> Generator[Event, None, Sequence[Evidence]]:
    if engine == "global":
        return (yield from gather_summaries(inquiry))
    tokens = inquiry.answer.evidence_tokens
    evidence, found = inquiry.find(inquiry.question, routes_of(engine), tokens=tokens)
    yield found
    return evidence


def _nothing(inquiry: Inquiry) -> Final:
    probability = 0.0 if inquiry.answer.mode == "reject" else None
    return Final(NO_EVIDENCE, True, probability, (), missing=missing_terms(inquiry.question, ()))


def _with_costs(final: Final, used: Used, settings: AnswerSettings, engine: str) -> Final:
    return replace(
        final,
        tokens=total_tokens(used),
        milliseconds=used.milliseconds,
        engine=engine,
        threshold=settings.answerable_threshold if settings.mode == "reject" else None,
    )
