"""A model's answers written down and given again, by the content of the request.

For measuring everything around a model, and for runs that must not depend on one: what was recorded is
answered at once, with the same tokens, probabilities and usage; what was not, fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from hornbeam.errors import ModelError
from hornbeam.llm.protocol import Completion, LanguageModel, ModelIdentity, Request, TokenScore, Usage
from hornbeam.llm.tokenizer import DirectoryTokenizer

_FORM = 1


def request_key(request: Request) -> str:
    """What an answer depends on: everything but the request's id, and what only restates its grammar."""
    content = asdict(replace(request, request_id="", json_answer=None))
    del content["json_answer"]
    return hashlib.sha256(orjson.dumps(content)).hexdigest()[:32]


class RecordingModel:
    """A model beside which every finished completion is written to a file, one JSON line each."""

    def __init__(self, model: LanguageModel, path: Path) -> None:
        self._model = model
        self._asked: dict[str, str] = {}  # request id → key
        self._file = path.open("wb")
        identity = asdict(model.identity)
        self._write({"recording": _FORM, "identity": identity, "max_model_len": model.max_model_len})

    @property
    def identity(self) -> ModelIdentity:
        return self._model.identity

    @property
    def tokenizer(self) -> Any:
        return self._model.tokenizer

    @property
    def max_model_len(self) -> int:
        return self._model.max_model_len

    @property
    def in_flight(self) -> int:
        return self._model.in_flight

    def chat_prompt(self, system: str, user: str) -> str:
        return self._model.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._model.neutralise(text)

    def submit(self, request: Request) -> None:
        self._asked[request.request_id] = request_key(request)
        self._model.submit(request)

    def poll(self) -> list[Completion]:
        completions = self._model.poll()
        for completion in completions:
            self._keep(self._asked.pop(completion.request_id), completion)
        return completions

    def stream(self, request: Request) -> Iterator[str | Completion]:
        for event in self._model.stream(request):
            if isinstance(event, Completion):
                self._keep(request_key(request), event)
            yield event

    def close(self) -> None:
        self._file.close()
        self._model.close()

    def _keep(self, key: str, completion: Completion) -> None:
        self._write({"key": key} | asdict(replace(completion, request_id="")))

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(orjson.dumps(line) + b"\n")


class ReplayModel:
    """Answers what a recording holds.

    Args:
        path: of the recording.
        tokenizer: of the model that was recorded.

    Raises:
        ModelError: the file is no recording.
    """

    def __init__(self, path: Path, tokenizer: DirectoryTokenizer) -> None:
        self._tokenizer = tokenizer
        self._waiting: list[Request] = []
        try:
            with path.open("rb") as file:
                head = orjson.loads(file.readline())
                if head.get("recording") != _FORM:
                    raise ValueError(f"not of form {_FORM}")
                self._identity = ModelIdentity(**head["identity"])
                self._max_model_len = int(head["max_model_len"])
                self._answers = {entry["key"]: _completion(entry) for entry in map(orjson.loads, file)}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} is no recording of a model: {error}") from error

    @property
    def identity(self) -> ModelIdentity:
        return self._identity

    @property
    def tokenizer(self) -> DirectoryTokenizer:
        return self._tokenizer

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def chat_prompt(self, system: str, user: str) -> str:
        return self._tokenizer.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._tokenizer.neutralise(text)

    def submit(self, request: Request) -> None:
        self._waiting.append(request)

    def poll(self) -> list[Completion]:
        waiting, self._waiting = self._waiting, []
        return [self._answer(request) for request in waiting]

    def stream(self, request: Request) -> Iterator[str | Completion]:
        completion = self._answer(request)
        yield from (token.text for token in completion.tokens)
        yield completion

    def close(self) -> None:
        self._waiting.clear()

    def _answer(self, request: Request) -> Completion:
        answer = self._answers.get(request_key(request))
        if answer is None:
            return Completion(request.request_id, "", "error", Usage(), error="not in the recording")
        return replace(answer, request_id=request.request_id)


def _completion(entry: dict[str, Any]) -> Completion:
    return Completion(
        "",
        entry["text"],
        entry["finish_reason"],
        Usage(**entry["usage"]),
        tuple(TokenScore(**token) for token in entry["tokens"]),
        entry["error"],
    )
