"""A model that says what a test tells it, slowly enough to be interrupted."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from threading import Event, Lock

from hornbeam.llm.protocol import Completion, ModelIdentity, Part, Request, Usage
from support.walker import vocabulary


class ScriptedModel:
    """A `LanguageModel` and `Stepper`: each step brings every request under way its next word.

    Args:
        answer: request → its text.
        pause: seconds that one step takes.
        hold: no step ends while it is clear.

    Attributes:
        requests: those begun, in order. cancelled: ids of those stopped.
        peak: the most requests under way in one step.
    """

    def __init__(
        self, answer: Callable[[Request], str], *, pause: float = 0.0, hold: Event | None = None
    ) -> None:
        from hornbeam.llm.embedded import embedded_model_directory

        self._answer = answer
        self._pause = pause
        self._hold = hold
        self._tokenizer = vocabulary(embedded_model_directory()).tokenizer
        self._flying: dict[str, tuple[Request, bool, list[str]]] = {}
        self._lock = Lock()
        self.requests: list[Request] = []
        self.cancelled: list[str] = []
        self.peak = 0
        self.closed = False

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity("scripted", "scripted", "test", "a test's model")

    @property
    def tokenizer(self):  # type: ignore[no-untyped-def]
        return self._tokenizer

    @property
    def max_model_len(self) -> int:
        return 4096

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    def chat_prompt(self, system: str, user: str) -> str:
        return self._tokenizer.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._tokenizer.neutralise(text)

    def start(self, request: Request, *, streaming: bool) -> None:
        self.requests.append(request)
        with self._lock:
            self._flying[request.request_id] = (request, streaming, [])

    def step(self) -> list[Part]:
        time.sleep(self._pause)
        if self._hold is not None:
            self._hold.wait(60)
        self.peak = max(self.peak, len(self._flying))
        parts: list[Part] = []
        for request_id, (request, streaming, said) in list(self._flying.items()):
            pieces = re.findall(r"\s*\S+", text := self._answer(request))
            if len(said) < len(pieces):
                said.append(pieces[len(said)])
                if streaming:
                    parts.append((request_id, said[-1]))
                continue
            del self._flying[request_id]
            count = self._tokenizer.count
            usage = Usage(count(request.prompt), 0, count(text))
            parts.append((request_id, Completion(request_id, text, "stop", usage)))
        return parts

    def cancel(self, request_id: str) -> None:
        if self._flying.pop(request_id, None) is not None:
            self.cancelled.append(request_id)

    def submit(self, request: Request) -> None:
        self.start(request, streaming=False)

    def poll(self) -> list[Completion]:
        while self._flying:
            if done := [part for _, part in self.step() if isinstance(part, Completion)]:
                return done
        return []

    def stream(self, request: Request) -> Iterator[str | Completion]:
        self.start(request, streaming=True)
        while request.request_id in self._flying:
            yield from (part for request_id, part in self.step() if request_id == request.request_id)

    def close(self) -> None:
        self._flying.clear()
        self.closed = True
