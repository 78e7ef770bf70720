"""What a question's answer streams: one typed protocol for the terminal, programs and servers.

    Asked                          the question as it is understood, and the engine that answers it
    EvidenceFound                  before the first token of the answer; again when a step finds more
    Planned                        where the engine takes the question apart
    SubQuestionStarted, …Finished  in any order; EvidenceFound between them names the sub-question
    Stepped                        where the engine looks again, or stops looking
    AnswerText, Cited              the answer as it is written; a citation after the text that rests on it
    Used                           tokens and milliseconds by stage
    Final                          always the last

The labels of evidence are unique within a question. `event_json` gives each event's JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hornbeam.answer.plans import SubQuestion
from hornbeam.retrieve.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Asked:
    question: str  # as it was asked
    standalone: str  # as it is answered: of a follow-up, rewritten to stand alone
    engine: str
    reason: str  # why this engine


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """New pieces only."""

    evidence: tuple[Evidence, ...]
    milliseconds: dict[str, float]  # of the retrieval, by step
    sub_question: int | None = None  # that it was found for
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    sub_questions: tuple[SubQuestion, ...]


@dataclass(frozen=True, slots=True)
class SubQuestionStarted:
    number: int
    question: str  # with the answers that it depends on put in


@dataclass(frozen=True, slots=True)
class SubQuestionFinished:
    number: int
    question: str
    answer: str  # "" if the evidence holds none
    labels: tuple[int, ...]  # of the evidence that the answer cites


@dataclass(frozen=True, slots=True)
class Stepped:
    number: int  # from 1; 0 for what comes before the first step
    action: Literal["search", "answer", "stop"]
    query: str  # of a search
    new_evidence: int  # pieces that the search brought
    reason: str


@dataclass(frozen=True, slots=True)
class AnswerText:
    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A claim that ends here rests on this piece of evidence."""

    evidence: Evidence


@dataclass(frozen=True, slots=True)
class StageTokens:
    """Of the model calls of one stage, as the model's engine counted them; cached is part of prompt."""

    calls: int
    prompt: int
    cached: int
    output: int


@dataclass(frozen=True, slots=True)
class Used:
    tokens: dict[str, StageTokens]  # by stage
    milliseconds: dict[str, float]  # by stage; "first_token" and "total" since the question came


@dataclass(frozen=True, slots=True)
class Final:
    answer: str  # with its [n] marks; the refusal in words when rejected
    rejected: bool
    answerable: float | None  # P(the evidence answers the question); None in open mode
    citations: tuple[Evidence, ...]  # each once, in the order of the answer
    tokens: dict[str, int] = field(default_factory=dict)  # of all stages: calls, prompt, cached, output
    milliseconds: dict[str, float] = field(default_factory=dict)  # as in Used
    cut: bool = False  # the token limit or the deadline ended the answer; its last sentence may lack its mark
    engine: str = ""
    threshold: float | None = None  # of `answerable`; None in open mode
    missing: tuple[str, ...] = ()  # of a rejected question: its terms that no evidence covers
    out_of_time: bool = False  # the deadline came; this is the best answer until then
    signals: dict[str, float] = field(default_factory=dict)  # that `answerable` was decided by


Event = (
    Asked
    | EvidenceFound
    | Planned
    | SubQuestionStarted
    | SubQuestionFinished
    | Stepped
    | AnswerText
    | Cited
    | Used
    | Final
)


def event_json(event: Event) -> dict[str, Any]:
    """The JSON form, whose key "event" names the kind."""
    match event:
        case Asked(question, standalone, engine, reason):
            return {
                "event": "question",
                "question": question,
                "standalone": standalone,
                "engine": engine,
                "reason": reason,
            }
        case EvidenceFound(evidence, milliseconds, sub_question, step):
            return {
                "event": "evidence",
                "evidence": [evidence_json(piece) for piece in evidence],
                "sub_question": sub_question,
                "step": step,
                "milliseconds": milliseconds,
            }
        case Planned(sub_questions):
            return {"event": "plan", "sub_questions": [one.to_json() for one in sub_questions]}
        case SubQuestionStarted(number, question):
            return {"event": "sub_question_started", "number": number, "question": question}
        case SubQuestionFinished(number, question, answer, labels):
            return {
                "event": "sub_question_finished",
                "number": number,
                "question": question,
                "answer": answer,
                "labels": list(labels),
            }
        case Stepped(number, action, query, new_evidence, reason):
            return {
                "event": "step",
                "number": number,
                "action": action,
                "query": query,
                "new_evidence": new_evidence,
                "reason": reason,
            }
        case AnswerText(text):
            return {"event": "token", "text": text}
        case Cited(piece):
            return {"event": "citation", "evidence": evidence_json(piece)}
        case Used(tokens, milliseconds):
            return {"event": "usage", "tokens": stages_json(tokens), "milliseconds": milliseconds}
        case Final():
            return {"event": "final"} | final_json(event)


def stages_json(tokens: Mapping[str, StageTokens]) -> dict[str, dict[str, int]]:
    return {
        stage: {"calls": one.calls, "prompt": one.prompt, "cached": one.cached, "output": one.output}
        for stage, one in tokens.items()
    }


def final_json(final: Final) -> dict[str, Any]:
    return {
        "answer": final.answer,
        "engine": final.engine,
        "rejected": final.rejected,
        "answerable": final.answerable,
        "threshold": final.threshold,
        "missing": list(final.missing),
        "cut": final.cut,
        "out_of_time": final.out_of_time,
        "citations": [evidence_json(piece) for piece in final.citations],
        "tokens": final.tokens,
        "milliseconds": final.milliseconds,
    }


def evidence_json(evidence: Evidence) -> dict[str, Any]:
    return {
        "label": evidence.label,
        "kind": evidence.kind,
        "text": evidence.text,
        "document_id": evidence.document_id,
        "source": evidence.source,
        "title": evidence.title,
        "start": evidence.start,
        "end": evidence.end,
        "chunk_id": evidence.chunk_id,
        "quote": evidence.quote,
        "score": evidence.score,
        "reason": evidence.reason,
        "routes": {
            route: {"rank": place.rank, "score": place.score} for route, place in evidence.routes.items()
        },
    }
