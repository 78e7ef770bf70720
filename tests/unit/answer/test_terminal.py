"""What a person and a program see of an answer."""

from __future__ import annotations

import json

import pytest
import typer

from hornbeam.answer.events import (
    AnswerText,
    Asked,
    Event,
    EvidenceFound,
    Final,
    Planned,
    StageTokens,
    Stepped,
    SubQuestionFinished,
    SubQuestionStarted,
    Used,
    event_json,
)
from hornbeam.answer.plans import SubQuestion
from hornbeam.answer.terminal import AnswerPrinter, answer_json
from hornbeam.commands.asking import _seconds
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.fusion import RouteScore

PIECE = Evidence(
    1,
    "chunk",
    "Lena Sorvik.",
    "d1",
    "a.txt",
    "A",
    0,
    12,
    "c1",
    "Lena Sorvik.",
    0.9,
    {"chunk_dense": RouteScore(2, 0.8)},
    "best chunk",
)
EVENTS: list[Event] = [
    Asked("And she?", "Who is Lena Sorvik?", "plan", "one thing hangs on another in it"),
    EvidenceFound((PIECE,), {"total": 4.0}),
    Planned((SubQuestion(1, "Who?", "node", ("person",), ()), SubQuestion(2, "#1?", "triple", (), (1,)))),
    SubQuestionStarted(1, "Who?"),
    SubQuestionFinished(1, "Who?", "Lena Sorvik", (1,)),
    SubQuestionStarted(2, "Lena Sorvik?"),
    SubQuestionFinished(2, "Lena Sorvik?", "", ()),
    Stepped(1, "search", "Sorvik", 3, "the model asked for it"),
    AnswerText("Lena Sorvik [1]"),
    Used({"answer": StageTokens(1, 9, 3, 4)}, {"total": 12.0}),
    Final("Lena Sorvik [1]", False, None, (PIECE,), engine="plan"),
]


def test_streaming_shows_what_leads_to_the_answer_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    printer = AnswerPrinter(stream=True)
    for event in EVENTS:
        printer.take(event)
    shown = capsys.readouterr()
    assert shown.out.splitlines()[:2] == ["Lena Sorvik [1]", "  [1] a.txt:0-12 (chunk)"]
    for line in (
        "understood as: Who is Lena Sorvik?",
        "engine: plan",
        "evidence: 1 chunk",
        "plan 2: #1? (triple, after 1)",
        "sub-question 2: Lena Sorvik?",
        "answer to 1: Lena Sorvik [1]",
        "step 1: search “Sorvik”, 3 new pieces",
    ):
        assert line in shown.err
    assert "best chunk" not in shown.err


def test_explaining_says_why_a_piece_was_kept_and_what_it_cost(capsys: pytest.CaptureFixture[str]) -> None:
    printer = AnswerPrinter(stream=False, explain=True)
    for event in EVENTS:
        printer.take(event)
    shown = capsys.readouterr()
    assert "[1] chunk 0.9000 (best chunk; chunk_dense #2)" in shown.err
    assert "answer: 1 calls, 9 prompt tokens (3 cached), 4 output" in shown.err
    assert shown.out.startswith("Lena Sorvik [1]\n")


def test_without_either_only_the_answer_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    printer = AnswerPrinter(stream=False)
    for event in EVENTS:
        printer.take(event)
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith("Lena Sorvik [1]\n")


def test_the_json_document_holds_the_plan_with_its_answers() -> None:
    document = answer_json(EVENTS, "open", "v1")
    assert document["standalone"] == "Who is Lena Sorvik?"
    assert [one["answer"] for one in document["plan"]] == ["Lena Sorvik", ""]
    assert document["steps"][0]["query"] == "Sorvik"
    assert document["evidence"][0]["reason"] == "best chunk"
    assert document["stages"] == {"answer": {"calls": 1, "prompt": 9, "cached": 3, "output": 4}}
    assert json.loads(json.dumps(document)) == document
    with pytest.raises(ValueError, match="final"):
        answer_json(EVENTS[:-1], "open", "v1")


def test_the_json_forms_name_their_events() -> None:
    names = [event_json(event)["event"] for event in EVENTS]
    assert names == [
        "question",
        "evidence",
        "plan",
        *["sub_question_started", "sub_question_finished"] * 2,
        "step",
        "token",
        "usage",
        "final",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"), [("3s", 3.0), ("500ms", 0.5), ("2m", 120.0), ("1.5", 1.5), (".5 s", 0.5)]
)
def test_a_deadline_may_carry_its_unit(text: str, seconds: float) -> None:
    assert _seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-3s", "3h", "0s", "1e3"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no time"):
        _seconds(text)
