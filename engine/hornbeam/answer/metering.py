"""What a question has cost: tokens and time by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hornbeam.answer.events import StageTokens, Used
from hornbeam.llm.protocol import Usage


class Meter:
    """Of one question, from the moment it is made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._tokens: dict[str, StageTokens] = {}
        self._milliseconds: dict[str, float] = {}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        before = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - before) * 1000
            self._milliseconds[stage] = self._milliseconds.get(stage, 0.0) + spent

    def called(self, stage: str, usage: Usage) -> None:
        """Count one model call."""
        before = self._tokens.get(stage, StageTokens(0, 0, 0, 0))
        self._tokens[stage] = StageTokens(
            before.calls + 1,
            before.prompt + usage.prompt,
            before.cached + usage.cached,
            before.output + usage.output,
        )

    def first_token(self) -> None:
        self._milliseconds.setdefault("first_token", self._since_start())

    def retrieved(self, milliseconds: Mapping[str, float]) -> None:
        """The steps of one retrieval, added to those before."""
        for step, spent in milliseconds.items():
            stage = "retrieve" if step == "total" else step
            self._milliseconds[stage] = self._milliseconds.get(stage, 0.0) + spent

    def used(self) -> Used:
        spent = {**self._milliseconds, "total": self._since_start()}
        return Used(dict(self._tokens), {stage: round(value, 1) for stage, value in spent.items()})

    def _since_start(self) -> float:
        return (time.perf_counter() - self._started) * 1000


def total_tokens(used: Used) -> dict[str, int]:
    stages = used.tokens.values()
    return {
        "calls": sum(stage.calls for stage in stages),
        "prompt": sum(stage.prompt for stage in stages),
        "cached": sum(stage.cached for stage in stages),
        "output": sum(stage.output for stage in stages),
    }
