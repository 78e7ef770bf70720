"""Conversations with a model side by side: order of answers, the window, what is asked first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import Completion, Request, Usage


class Echo:
    """Answers with the prompt, the last request first, `per_poll` at once."""

    def __init__(self, per_poll: int) -> None:
        self.per_poll = per_poll
        self.waiting: list[Request] = []
        self.order: list[str] = []
        self.peak = 0

    def submit(self, request: Request) -> None:
        self.waiting.append(request)
        self.order.append(request.request_id)
        self.peak = max(self.peak, len(self.waiting))

    def poll(self) -> list[Completion]:
        done = [self.waiting.pop() for _ in range(min(self.per_poll, len(self.waiting)))]
        return [Completion(r.request_id, r.prompt, "stop", Usage()) for r in done]


def talk(name: str, steps: list[int]) -> Conversation[tuple[str, list[str]]]:
    heard: list[str] = []
    for step, requests in enumerate(steps):
        completions = yield [Request(f"{name}.{step}.{n}", f"{name}{step}{n}", 8) for n in range(requests)]
        heard += [completion.text for completion in completions]
    return name, heard


@pytest.mark.parametrize("window", [1, 2, 5, 50])
@pytest.mark.parametrize("per_poll", [1, 3])
def test_every_conversation_hears_its_answers_in_the_order_of_its_requests(
    window: int, per_poll: int
) -> None:
    model = Echo(per_poll)
    wanted: Iterator[tuple[str, list[int]]] = iter(
        [("a", [1, 3]), ("b", []), ("c", [2]), ("d", [1, 1, 1]), ("e", [7])]
    )

    def following() -> Conversation[tuple[str, list[str]]] | None:
        pair = next(wanted, None)
        return None if pair is None else talk(*pair)

    results = dict(run_conversations(model, following, window))  # type: ignore[arg-type]
    assert results == {
        "a": ["a00", "a10", "a11", "a12"],
        "b": [],
        "c": ["c00", "c01"],
        "d": ["d00", "d10", "d20"],
        "e": [f"e0{n}" for n in range(7)],
    }
    assert model.peak <= window


def test_a_result_may_bring_a_new_conversation_when_there_seemed_to_be_none() -> None:
    todo = [talk("first", [1])]
    results = []
    for name, _ in run_conversations(Echo(1), lambda: todo.pop() if todo else None, 4):  # type: ignore[arg-type]
        results.append(name)
        if name == "first":
            todo.append(talk("second", [2]))
    assert results == ["first", "second"]
