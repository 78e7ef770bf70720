"""One model behind many callers: all in one batch, each with its own answers, each to be stopped alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.llm.protocol import Completion, Request
from hornbeam.llm.shared import Cancelled, OutOfTime, SharedModel
from support.scripted_model import ScriptedModel
from support.walker import GrammarWalker


def echo(request: Request) -> str:
    return f"said {request.prompt} again"


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def test_streams_of_many_callers_are_in_one_batch_and_do_not_mix() -> None:
    hold = threading.Event()
    model = ScriptedModel(echo, hold=hold)
    shared = SharedModel(model)

    def ask(number: int) -> tuple[str, Completion]:
        parts = list(shared.caller().stream(Request("same id", f"n{number}", 9)))
        assert isinstance(parts[-1], Completion)
        return "".join(part for part in parts if isinstance(part, str)), parts[-1]

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, number) for number in range(8)]
        # Those that came too late for the step that is held wait behind it.
        until(lambda: len(model.requests) + shared._commands.qsize() == 8)
        hold.set()
        for number, one in enumerate(asked):
            text, completion = one.result(60)
            assert text == completion.text == f"said n{number} again"
            assert completion.request_id == "same id"
    assert model.peak == 8
    shared.close()
    assert model.closed


def test_a_caller_polls_what_it_submitted_and_nothing_else() -> None:
    shared = SharedModel(ScriptedModel(echo))
    first, second = shared.caller(), shared.caller()
    for number in range(3):
        first.submit(Request(f"f{number}", f"f{number}", 9))
    second.submit(Request("s", "s", 9))
    assert second.in_flight == 1
    done: list[Completion] = []
    while first.in_flight:
        done += first.poll()
    assert {one.request_id: one.text for one in done} == {f"f{n}": f"said f{n} again" for n in range(3)}
    assert [one.text for one in second.poll()] == ["said s again"]
    assert second.poll() == []
    shared.close()


def test_closing_a_stream_stops_that_request_alone() -> None:
    model = ScriptedModel(lambda request: "word " * 10_000, pause=0.001)
    shared = SharedModel(model)
    left, going_on = shared.caller(), shared.caller()
    other = going_on.stream(Request("b", "b", 9))
    next(other)
    stream = left.stream(Request("a", "a", 9))
    next(stream)
    stream.close()  # type: ignore[attr-defined] # a generator
    until(lambda: bool(model.cancelled))
    assert [name.split()[1] for name in model.cancelled] == ["a"]
    assert isinstance(next(other), str)
    shared.close()


def test_closing_a_caller_from_another_thread_ends_its_wait() -> None:
    hold = threading.Event()
    model = ScriptedModel(echo, hold=hold)
    shared = SharedModel(model)
    caller = shared.caller()
    with ThreadPoolExecutor(1) as pool:
        caller.submit(Request("a", "a", 9))
        waiting = pool.submit(caller.poll)
        until(lambda: bool(model.requests))
        caller.close()
        with pytest.raises(Cancelled):
            waiting.result(60)
    hold.set()
    until(lambda: len(model.cancelled) == 1)
    shared.close()


def test_at_the_deadline_the_wait_ends_and_the_request_is_stopped() -> None:
    model = ScriptedModel(lambda request: "word " * 10_000, pause=0.001)
    shared = SharedModel(model)
    caller = shared.caller(deadline=time.monotonic() + 0.05)
    with pytest.raises(OutOfTime):
        list(caller.stream(Request("a", "a", 9)))
    until(lambda: len(model.cancelled) == 1)
    with pytest.raises(OutOfTime):
        caller.submit(Request("b", "b", 9))
    shared.close()


def test_a_model_that_breaks_fails_the_requests_that_wait_and_no_others() -> None:
    broken = [True]

    def answer(request: Request) -> str:
        if broken[0]:
            raise RuntimeError("out of memory")
        return "fine"

    shared = SharedModel(ScriptedModel(answer))
    caller = shared.caller()
    caller.submit(Request("a", "a", 9))
    (completion,) = caller.poll()
    assert completion.finish_reason == "error"
    assert "out of memory" in completion.error
    broken[0] = False
    caller.submit(Request("b", "b", 9))
    assert caller.poll()[0].text == "fine"
    shared.close()
    with pytest.raises(ModelError, match="closed"):
        caller.submit(Request("c", "c", 9))


def test_a_model_that_can_only_be_polled_is_shared_too() -> None:
    shared = SharedModel(GrammarWalker())
    first, second = shared.caller(), shared.caller()
    grammar = 'root ::= "yes" | "no"'
    first.submit(Request("a", "a", 4, grammar=grammar))
    pieces = list(second.stream(Request("b", "b", 4, grammar=grammar)))
    assert isinstance(pieces[-1], Completion)
    assert "".join(pieces[:-1]) == pieces[-1].text  # type: ignore[arg-type]
    assert first.poll()[0].text in ("yes", "no")
    shared.close()
