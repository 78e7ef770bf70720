"""A model that is sent no grammar before it was compiled here, within a time limit, beside the model.

A request whose grammar is refused comes back as an error that says so; what to ask instead is the caller's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, wait
from typing import Protocol

from hornbeam.llm.protocol import Completion, LanguageModel, ModelIdentity, Request, Tokenizer, Usage

#: Begins the error of a request whose grammar was refused.
GRAMMAR_REFUSED = "the grammar takes too long to compile, or does not parse"
#: Characters of grammars that are made for no chunk alone, such as a yes or no.
_SHARED = 200


class Check(Protocol):
    def submit(self, grammar: str) -> Future[bool]:
        """Whether it is to be refused, some time later."""
        ...


class CheckedModel:
    """Requests reach the model in the order in which they came, each as soon as its grammar is known to be
    good: the order must not follow which thread was faster."""

    def __init__(self, model: LanguageModel, check: Check) -> None:
        self._model = model
        self._check = check
        self._waiting: deque[tuple[Request, Future[bool]]] = deque()
        self._refused: list[Completion] = []
        self._good: set[str] = set()  # grammars that many requests share
        self.refused = 0

    @property
    def identity(self) -> ModelIdentity:
        return self._model.identity

    @property
    def tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    @property
    def max_model_len(self) -> int:
        return self._model.max_model_len

    @property
    def in_flight(self) -> int:
        return self._model.in_flight + len(self._waiting) + len(self._refused)

    def chat_prompt(self, system: str, user: str) -> str:
        return self._model.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._model.neutralise(text)

    def submit(self, request: Request) -> None:
        if request.grammar is None or request.grammar in self._good:
            done: Future[bool] = Future()
            done.set_result(False)
            self._waiting.append((request, done))
        else:
            self._waiting.append((request, self._check.submit(request.grammar)))

    def poll(self) -> list[Completion]:
        self._pass_on()
        # With less than half of them at the model it would work on a batch of a few.
        while self._waiting and not self._refused and len(self._waiting) > self._model.in_flight:
            wait([self._waiting[0][1]])
            self._pass_on()
        refused, self._refused = self._refused, []
        if refused:
            return refused
        return self._model.poll() if self._model.in_flight else []

    def stream(self, request: Request) -> Iterator[str | Completion]:
        return self._model.stream(request)

    def close(self) -> None:
        self._model.close()

    def _pass_on(self) -> None:
        while self._waiting and self._waiting[0][1].done():
            request, verdict = self._waiting.popleft()
            if verdict.result():
                self.refused += 1
                error = f"{GRAMMAR_REFUSED} ({len(request.grammar or '')} characters)"
                self._refused.append(Completion(request.request_id, "", "error", Usage(), error=error))
                continue
            if request.grammar is not None and len(request.grammar) < _SHARED:
                self._good.add(request.grammar)
            self._model.submit(request)
