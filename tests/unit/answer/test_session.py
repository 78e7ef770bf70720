"""hornbeam.open: one form for loops and tasks, a version that stays, model calls that stop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from hornbeam.answer.events import (
    AnswerText,
    Asked,
    Cited,
    Event,
    EvidenceFound,
    Final,
    Used,
    event_json,
)
from hornbeam.answer.session import Session
from hornbeam.errors import UsageError
from hornbeam.llm.protocol import LanguageModel, Request
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import Settings
from hornbeam.store.versions import Version
from support.scripted_model import ScriptedModel
from support.walker import GrammarWalker

QUESTION = "What did Curie discover in Warsaw?"


def session(kb: KnowledgeBase, model: LanguageModel) -> Session:
    return Session(kb, Version("v1", Path(kb.directory), {}), model, Settings())


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def test_events_come_in_the_order_of_the_protocol(kb: KnowledgeBase) -> None:
    with session(kb, GrammarWalker()) as opened:
        events = list(opened.ask(QUESTION, engine="mix"))
    kinds = [type(event) for event in events]
    assert kinds[:2] == [Asked, EvidenceFound]
    assert kinds[-2:] == [Used, Final]
    assert set(kinds[2:-2]) <= {AnswerText, Cited}
    used, final = events[-2:]
    assert isinstance(used, Used)
    assert isinstance(final, Final)
    assert used.tokens["answer"].calls == final.tokens["calls"] == 1
    assert used.tokens["answer"].output == final.tokens["output"] > 0
    assert {"retrieve", "answer", "first_token", "total"} <= set(used.milliseconds)


def test_every_event_has_a_json_form_that_names_it(kb: KnowledgeBase) -> None:
    with session(kb, GrammarWalker()) as opened:
        forms = [event_json(event) for event in opened.ask(QUESTION)]
    assert [form["event"] for form in forms][:2] == ["question", "evidence"]
    assert [form["event"] for form in forms][-2:] == ["usage", "final"]
    assert "".join(form["text"] for form in forms if form["event"] == "token") == forms[-1]["answer"]
    assert json.loads(json.dumps(forms)) == forms


def test_a_task_gets_the_same_events_as_a_loop(kb: KnowledgeBase) -> None:
    async def asked() -> tuple[list[Event], Final]:
        async with session(kb, GrammarWalker()) as opened:
            events = [event async for event in opened.ask(QUESTION)]
            return events, await opened.ask(QUESTION)

    events, awaited = asyncio.run(asked())
    with session(kb, GrammarWalker()) as opened:
        expected = list(opened.ask(QUESTION))
    assert [type(event) for event in events] == [type(event) for event in expected]
    final = events[-1]
    assert isinstance(final, Final)
    assert final.answer == awaited.answer == opened_answer(expected)


def opened_answer(events: list[Event]) -> str:
    final = events[-1]
    assert isinstance(final, Final)
    return final.answer


def endless() -> ScriptedModel:
    return ScriptedModel(lambda request: "word " * 10_000, pause=0.001)


def test_leaving_the_loop_stops_the_model_call(kb: KnowledgeBase) -> None:
    model = endless()
    with session(kb, model) as opened:
        for event in opened.ask(QUESTION):
            if isinstance(event, AnswerText):
                break
        until(lambda: len(model.cancelled) == 1)
        assert model.in_flight == 0


def test_closing_the_events_of_a_task_stops_the_model_call(kb: KnowledgeBase) -> None:
    model = endless()

    async def asked() -> None:
        async with session(kb, model) as opened:
            async with aclosing(opened.ask(QUESTION).__aiter__()) as events:
                async for event in events:
                    if isinstance(event, AnswerText):
                        break
            await asyncio.to_thread(until, lambda: len(model.cancelled) == 1)
            assert model.in_flight == 0

    asyncio.run(asked())


def test_cancelling_a_task_stops_the_model_call(kb: KnowledgeBase) -> None:
    model = endless()

    async def wait_for(opened: Session) -> Final:
        return await opened.ask(QUESTION)

    async def asked() -> None:
        async with session(kb, model) as opened:
            task = asyncio.create_task(wait_for(opened))
            await asyncio.to_thread(until, lambda: model.in_flight == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until, lambda: len(model.cancelled) == 1)

    asyncio.run(asked())


def test_many_questions_share_the_model_s_batch_and_come_in_order(kb: KnowledgeBase) -> None:
    model = ScriptedModel(lambda request: f"Answer {request.prompt.count('?')} [1]", pause=0.01)
    questions = [f"What did Curie discover in Warsaw{'?' * number}" for number in range(1, 7)]
    with session(kb, model) as opened:
        finals = opened.ask_many(questions, engine="mix")
        counts = [int(final.answer.split()[1]) for final in finals]
    assert counts == sorted(counts)
    assert len(set(counts)) == 6
    assert model.peak > 1


def test_at_the_deadline_the_text_so_far_is_the_answer(kb: KnowledgeBase) -> None:
    model = endless()
    with session(kb, model) as opened:
        final = opened.ask(QUESTION, deadline=0.2).final()
    assert final.out_of_time
    assert final.cut
    assert final.answer.startswith("word")
    assert len(model.cancelled) == 1


def test_at_the_deadline_before_any_text_the_best_passage_is_quoted(kb: KnowledgeBase) -> None:
    model = ScriptedModel(lambda request: "never", pause=0.5)
    with session(kb, model) as opened:
        events = list(opened.ask(QUESTION, deadline=0.2))
    final = events[-1]
    assert isinstance(final, Final)
    assert final.out_of_time
    (piece,) = final.citations
    assert piece.quote is not None
    assert final.answer == f"{' '.join(piece.quote.split())} [{piece.label}]"


@pytest.mark.parametrize(
    "options", [{"mode": "maybe"}, {"style": "long"}, {"deadline": 0.0}, {"engine": "magic"}]
)
def test_an_option_that_there_is_not_is_said(kb: KnowledgeBase, options: dict[str, object]) -> None:
    with session(kb, GrammarWalker()) as opened, pytest.raises(UsageError):
        list(opened.ask(QUESTION, **options))  # type: ignore[arg-type]


def test_a_failed_request_names_the_stage(kb: KnowledgeBase) -> None:
    from hornbeam.errors import ModelError

    def fail(request: Request) -> str:
        return "the server is gone"

    with (
        session(kb, GrammarWalker(fail_when=fail)) as opened,
        pytest.raises(ModelError, match=r"answer.*the server is gone"),
    ):
        opened.ask(QUESTION).final()
