"""A question to a stream of events: evidence first, then the answer as it is written, with its citations."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from hornbeam.answer.answerability import answerable, missing_terms, refusal
from hornbeam.answer.engines import choose_engine
from hornbeam.answer.events import AnswerText, Asked, Cited, Event, Final, Used
from hornbeam.answer.inquiry import Inquiry, Style
from hornbeam.answer.metering import total_tokens
from hornbeam.answer.summaries import gather_summaries
from hornbeam.answer.writing import AnswerForm, AnswerReader, write_answer
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.shared import OutOfTime
from hornbeam.retrieve.engines import routes_of
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.model_reranker import reranked_by_model
from hornbeam.retrieve.sentences import sentence_spans
from hornbeam.settings import AnswerSettings, RetrieveSettings

NO_EVIDENCE = "The index holds no evidence for this question."
OUT_OF_TIME = "There was no time to answer this question."


def answer_question(
    kb: KnowledgeBase,
    model: LanguageModel,
    question: str,
    *,
    retrieve: RetrieveSettings,
    answer: AnswerSettings,
    engine: str = "mix",
    style: Style = "sentences",
    asked: str | None = None,
) -> Iterator[Event]:
    """Retrieve, decide (in reject mode) and answer. Closing the iterator stops the model.

    Args:
        question: standing alone.
        engine: one of `engines.ENGINES`.
        asked: the question as it was asked, where it was rewritten.

    Raises:
        ModelError: the model could not answer.
        UsageError: no such engine.
    """
    chosen, reason = choose_engine(engine, question)
    kb = reranked_by_model(kb, model, retrieve)
    inquiry = Inquiry(kb, model, question, retrieve=retrieve, answer=answer, style=style)
    yield Asked(question if asked is None else asked, question, chosen, reason)
    final = yield from _answer(inquiry, chosen)
    used = inquiry.meter.used()
    yield used
    yield _with_costs(final, used, answer, chosen)


def _answer(inquiry: Inquiry, engine: str) -> Generator[Event, None, Final]:
    """Gather evidence as the engine does, then answer from it once."""
    reject = inquiry.answer.mode == "reject"
    evidence: Sequence[Evidence] = ()
    probability, reader = None, None
    try:
        evidence = yield from _gather(inquiry, engine)
        if not evidence:
            missing = missing_terms(inquiry.question, ())
            return Final(NO_EVIDENCE, True, 0.0 if reject else None, (), missing=missing)
        if reject:
            probability = answerable(inquiry, evidence)
            if probability < inquiry.answer.answerable_threshold:
                missing = missing_terms(inquiry.question, evidence)
                return Final(refusal(missing), True, probability, (), missing=missing)
        form = AnswerForm(inquiry, evidence)
        reader = AnswerReader(form)
        yield from write_answer(inquiry, form, reader)
    except OutOfTime:
        if reject and probability is None:
            return Final(OUT_OF_TIME, True, None, (), out_of_time=True)
        if reader is None or not reader.text:
            return (yield from _quoted(evidence or inquiry.evidence, probability))
        return Final(reader.text, False, probability, reader.citations, cut=True, out_of_time=True)
    return Final(reader.text, False, probability, reader.citations, cut=reader.cut)


def _gather(inquiry: Inquiry, engine: str) -> Generator[Event, None, Sequence[Evidence]]:
    if engine == "global":
        return (yield from gather_summaries(inquiry))
    tokens = inquiry.answer.evidence_tokens
    evidence, found = inquiry.find(inquiry.question, routes_of(engine), tokens=tokens)
    yield found
    return evidence


def _quoted(evidence: Sequence[Evidence], probability: float | None) -> Generator[Event, None, Final]:
    """What can be said without the model: the best piece's first sentence."""
    if not evidence:
        return Final(OUT_OF_TIME, True, probability, (), out_of_time=True)
    best = next((piece for piece in evidence if piece.kind == "chunk"), evidence[0])
    start, end = next(iter(sentence_spans(best.text)), (0, len(best.text)))
    text = f"{' '.join(best.text[start:end].split())} [{best.label}]"
    cited = best
    if best.start is not None and best.text == best.quote:
        cited = replace(best, start=best.start + start, end=best.start + end, quote=best.text[start:end])
    yield AnswerText(text)
    yield Cited(cited)
    return Final(text, False, probability, (cited,), out_of_time=True)


def _with_costs(final: Final, used: Used, settings: AnswerSettings, engine: str) -> Final:
    return replace(
        final,
        tokens=total_tokens(used),
        milliseconds=used.milliseconds,
        engine=engine,
        threshold=settings.answerable_threshold if settings.mode == "reject" else None,
    )
