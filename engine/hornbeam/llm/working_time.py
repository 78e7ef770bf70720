"""How much of a stage a model had something to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from hornbeam.llm.protocol import Completion, LanguageModel, ModelIdentity, Request, Served, Tokenizer


class TimedModel:
    """A model beside which the time is counted in which it works.

    An engine in this process works while it is polled: whatever the host does between two polls, it waits.
    One behind servers works as long as a request is on its way. Loading the engine, at the first request, is
    counted apart.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.inner = model
        self._apart = isinstance(model, Served)
        self._since: float | None = None  # it has something to do
        self._begun = False
        self.working_s = 0.0
        self.starting_s = 0.0

    @property
    def identity(self) -> ModelIdentity:
        return self.inner.identity

    @property
    def tokenizer(self) -> Tokenizer:
        return self.inner.tokenizer

    @property
    def max_model_len(self) -> int:
        return self.inner.max_model_len

    @property
    def in_flight(self) -> int:
        return self.inner.in_flight

    def chat_prompt(self, system: str, user: str) -> str:
        return self.inner.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self.inner.neutralise(text)

    def submit(self, request: Request) -> None:
        before = time.perf_counter()
        self.inner.submit(request)
        if not self._begun:
            self._begun = True
            self.starting_s = time.perf_counter() - before
        if self._apart and self._since is None:
            self._since = time.perf_counter()

    def poll(self) -> list[Completion]:
        if self._since is None:
            self._since = time.perf_counter()
        completions = self.inner.poll()
        now = time.perf_counter()
        self.working_s += now - self._since
        self._since = now if self._apart and self.inner.in_flight else None
        return completions

    def stream(self, request: Request) -> Iterator[str | Completion]:
        before = time.perf_counter()
        try:
            yield from self.inner.stream(request)
        finally:
            self.working_s += time.perf_counter() - before

    def serving(self) -> dict[str, Any] | None:
        """Of the servers, if it is behind some."""
        return self.inner.serving() if isinstance(self.inner, Served) else None

    def close(self) -> None:
        self.inner.close()


def idle_figures(seconds: float, working: float, starting: float) -> dict[str, float]:
    """Of a stage: its seconds without the engine's start, and the share of them in which the model waited."""
    able = max(0.0, seconds - starting)
    idle = max(0.0, able - working)
    return {
        "seconds": round(able, 3),
        "idle_seconds": round(idle, 3),
        "idle_share": round(idle / able, 4) if able else 0.0,
    }
