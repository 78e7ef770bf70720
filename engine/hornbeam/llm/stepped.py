"""What the models of this process share: requests begin, go on by steps, and come back from one place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from hornbeam.llm.protocol import Completion, Part, Request, Usage
from hornbeam.llm.tokenizer import DirectoryTokenizer


class SteppedModel(ABC):
    """`submit`, `poll` and `stream` of a `LanguageModel` over `start`, `step` and `cancel`.

    A request that cannot begin is put in `_refused` and comes back from the next `step`.
    """

    def __init__(self, tokenizer: DirectoryTokenizer) -> None:
        self._tokenizer = tokenizer
        self._refused: list[Completion] = []
        self._finished: list[Completion] = []  # beside a stream, for the next poll

    @property
    def tokenizer(self) -> DirectoryTokenizer:
        return self._tokenizer

    @property
    def in_flight(self) -> int:
        return self._under_way() + len(self._refused) + len(self._finished)

    @abstractmethod
    def start(self, request: Request, *, streaming: bool) -> None: ...

    @abstractmethod
    def step(self) -> list[Part]: ...

    @abstractmethod
    def cancel(self, request_id: str) -> None: ...

    @abstractmethod
    def _under_way(self) -> int:
        """Requests that began and have not come back."""

    def chat_prompt(self, system: str, user: str) -> str:
        return self._tokenizer.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._tokenizer.neutralise(text)

    def submit(self, request: Request) -> None:
        self.start(request, streaming=False)

    def poll(self) -> list[Completion]:
        while not self._finished and self.in_flight:
            self._finished += [part for _, part in self.step() if isinstance(part, Completion)]
        finished, self._finished = self._finished, []
        return finished

    def stream(self, request: Request) -> Iterator[str | Completion]:
        self.start(request, streaming=True)
        done = False
        try:
            while not done:
                parts = self.step()
                for request_id, part in parts:
                    if request_id != request.request_id and isinstance(part, Completion):
                        self._finished.append(part)
                for request_id, part in parts:
                    if request_id == request.request_id:
                        done = isinstance(part, Completion)
                        yield part
        finally:
            if not done:
                self.cancel(request.request_id)

    def _refuse(self, request: Request, message: str) -> None:
        self._refused.append(Completion(request.request_id, "", "error", Usage(), error=message))

    def _take_refused(self) -> list[Part]:
        refused, self._refused = self._refused, []
        return [(completion.request_id, completion) for completion in refused]
