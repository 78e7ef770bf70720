"""An answer on a terminal, and as one JSON document."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from hornbeam.answer.events import (
    AnswerText,
    Asked,
    Event,
    EvidenceFound,
    Final,
    Planned,
    Stepped,
    SubQuestionFinished,
    SubQuestionStarted,
    Used,
    event_json,
    evidence_json,
    final_json,
    stages_json,
)
from hornbeam.printing import on_one_line, say
from hornbeam.retrieve.evidence import Evidence

_QUOTE_CHARACTERS = 200


class AnswerPrinter:
    """Prints the answer on standard output, what leads to it on standard error.

    Args:
        stream: print everything as it comes, not the answer alone at its end.
        explain: list every piece of evidence with its routes and why it was kept, and the costs.
    """

    def __init__(self, *, stream: bool, explain: bool = False) -> None:
        self._stream = stream
        self._explain = explain
        self._written = False

    def take(self, event: Event) -> None:
        if isinstance(event, AnswerText):
            if self._stream:
                say(event.text, end="", flush=True)
                self._written = True
        elif isinstance(event, Final):
            self._print_final(event)
        elif self._stream or self._explain:
            for line in _lines(event, explain=self._explain):
                say(line, file=sys.stderr, flush=True)

    def _print_final(self, final: Final) -> None:
        say("" if self._written else final.answer, flush=True)
        if final.out_of_time:
            say("  (the best answer at the deadline)")
        elif final.cut:
            say("  (cut at the token limit, answer.max_tokens)")
        for piece in final.citations:
            say(f"  [{piece.label}] {_place(piece)}")
            if quote := piece.quote or piece.text:
                say(f"      “{_short(quote)}”")


def _lines(event: Event, *, explain: bool) -> Iterator[str]:
    match event:
        case Asked(question, standalone, engine, reason):
            if standalone != question:
                yield f"understood as: {standalone}"
            yield f"engine: {engine} ({reason})"
        case EvidenceFound(evidence, _, sub_question, step):
            kinds = [piece.kind for piece in evidence]
            counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
            where = f" for {sub_question}" if sub_question else f" in step {step}" if step else ""
            yield f"evidence{where}: {counted or 'none'}"
            if explain:
                for piece in evidence:
                    yield from _explained(piece)
        case Planned(sub_questions):
            for one in sub_questions:
                after = f", after {', '.join(map(str, one.depends_on))}" if one.depends_on else ""
                types = f": {', '.join(one.types)}" if one.types else ""
                yield f"plan {one.number}: {one.text} ({one.level}{types}{after})"
        case SubQuestionStarted(number, question):
            yield f"sub-question {number}: {question}"
        case SubQuestionFinished(number, _, answer, labels):
            marks = "".join(f" [{label}]" for label in labels)
            yield f"answer to {number}: {answer or 'none'}{marks}"
        case Stepped(number, action, query, new_evidence, reason):
            searched = f" “{query}”, {new_evidence} new pieces" if action == "search" else ""
            yield f"step {number}: {action}{searched} ({reason})"
        case Used(tokens, milliseconds) if explain:
            for stage, spent in tokens.items():
                yield (
                    f"{stage}: {spent.calls} calls, {spent.prompt} prompt tokens ({spent.cached} cached), "
                    f"{spent.output} output"
                )
            yield "milliseconds: " + ", ".join(f"{stage} {time:g}" for stage, time in milliseconds.items())


def _explained(piece: Evidence) -> Iterator[str]:
    routes = ", ".join(f"{route} #{place.rank}" for route, place in piece.routes.items())
    yield f"  [{piece.label}] {piece.kind} {piece.score:.4f} ({piece.reason}; {routes})"
    yield f"      {_short(piece.text)}"


def _short(text: str) -> str:
    return " ".join(text.split())[:_QUOTE_CHARACTERS]


def _place(piece: Evidence) -> str:
    if piece.source is None:
        return f"{piece.kind} of the graph"
    return f"{on_one_line(piece.source)}:{piece.start}-{piece.end} ({piece.kind})"


def answer_json(events: list[Event], mode: str, version: str) -> dict[str, Any]:
    """Raises ValueError when the events ended without a Final."""
    final = events[-1] if events else None
    if not isinstance(final, Final):
        raise ValueError("the answer ended without its final event")
    document: dict[str, Any] = {"mode": mode, "version": version, "plan": [], "evidence": [], "steps": []}
    for event in events:
        form = {key: value for key, value in event_json(event).items() if key != "event"}
        match event:
            case Asked():
                document |= {"question": event.question, "standalone": event.standalone}
                document["reason"] = event.reason
            case EvidenceFound():
                document["evidence"] += [evidence_json(piece) for piece in event.evidence]
            case Planned():
                document["plan"] = form["sub_questions"]
            case SubQuestionFinished():
                planned = next(one for one in document["plan"] if one["number"] == event.number)
                planned |= {"asked": event.question, "answer": event.answer, "labels": list(event.labels)}
            case Stepped():
                document["steps"].append(form)
            case Used():
                document["stages"] = stages_json(event.tokens)
            case _:
                pass
    return document | final_json(final)
