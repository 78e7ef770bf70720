"""A model that remembers, until asked, what it was asked and what it said."""

from __future__ import annotations

from typing import Any

from hornbeam.extract.result import StageUsage
from hornbeam.llm.protocol import Completion, LanguageModel, Request


class WatchedModel:
    """The model, its answers by chunk: a request's chunk is its key up to the first slash."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._asked: dict[str, Request] = {}
        self._said: dict[str, list[tuple[Request, Completion]]] = {}
        self.spent = StageUsage()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def submit(self, request: Request) -> None:
        self._asked[request.request_id] = request
        self._model.submit(request)

    def poll(self) -> list[Completion]:
        completions = self._model.poll()
        for completion in completions:
            key = completion.request_id.partition("/")[0]
            self._said.setdefault(key, []).append((self._asked.pop(completion.request_id), completion))
            usage = completion.usage
            self.spent += StageUsage(calls=1, prompt=usage.prompt, cached=usage.cached, output=usage.output)
        return completions

    def take(self, key: str) -> list[tuple[Request, Completion]]:
        """What was asked and said about a chunk since it was last taken."""
        return self._said.pop(key, [])
