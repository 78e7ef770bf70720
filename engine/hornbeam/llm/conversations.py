"""Many conversations with one model at once, its batch kept full.

A conversation is a generator: it yields the requests that it wants answered together, is sent their
completions in the same order, and returns its result. What one chunk needs is then written as straight code,
and there is no barrier between the steps of different chunks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hornbeam.llm.protocol import Completion, LanguageModel, Request

Result = TypeVar("Result")
Conversation = Generator[list[Request], list[Completion], Result]


@dataclass(slots=True)
class _Step(Generic[Result]):
    """The requests of one conversation that are on their way."""

    conversation: Conversation[Result]
    requests: Sequence[Request]
    answers: dict[str, Completion] = field(default_factory=dict)


def run_conversations(
    model: LanguageModel,
    next_conversation: Callable[[], Conversation[Result] | None],
    window: int,
    on_progress: Callable[[int], None] = lambda in_flight: None,
) -> Iterator[Result]:
    """The conversations' results as they end, in any order.

    Args:
        next_conversation: asked for one more whenever there is room; None: there is none now. It is asked
            again as long as others are on their way, since a result may bring a new one.
        window: requests submitted to the model at once, at most. Conversations under way go before new ones.
            Request ids are unique among the conversations.
        on_progress: told before every wait how many requests are in flight.
    """
    waiting: deque[tuple[Request, _Step[Result]]] = deque()
    flying: dict[str, _Step[Result]] = {}

    def advance(conversation: Conversation[Result], answers: list[Completion] | None) -> Iterator[Result]:
        """One step; a result if that was the last one."""
        try:
            requests = next(conversation) if answers is None else conversation.send(answers)
        except StopIteration as end:
            yield end.value
            return
        step = _Step(conversation, requests)
        waiting.extend((request, step) for request in requests)

    while True:
        while len(flying) + len(waiting) < window and (new := next_conversation()) is not None:
            yield from advance(new, None)
        while waiting and len(flying) < window:
            request, step = waiting.popleft()
            flying[request.request_id] = step
            model.submit(request)
        if not flying:
            return
        on_progress(len(flying))
        for completion in model.poll():
            step = flying.pop(completion.request_id)
            step.answers[completion.request_id] = completion
            if len(step.answers) == len(step.requests):
                ordered = [step.answers[request.request_id] for request in step.requests]
                yield from advance(step.conversation, ordered)
