"""A model that is there for its tokenizer alone: builds without a model count tokens as later ones will."""

from __future__ import annotations

from collections.abc import Iterator

from hornbeam.errors import ModelError
from hornbeam.llm.protocol import Completion, LanguageModel, ModelIdentity, Request, Tokenizer


class UnusedModel:
    """Another model's tokenizer and fingerprint; whoever asks it for text is told that there is no model.

    The fingerprint is the other's, so that a run with that model finds the same chunks.
    """

    max_model_len = 0
    in_flight = 0

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def identity(self) -> ModelIdentity:
        counted = self._model.identity
        return ModelIdentity(
            "none", counted.fingerprint, "none", f"the tier uses no model; tokens are those of {counted.name}"
        )

    @property
    def tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    def chat_prompt(self, system: str, user: str) -> str:
        raise _refusal()

    def neutralise(self, text: str) -> str:
        raise _refusal()

    def submit(self, request: Request) -> None:
        raise _refusal()

    def poll(self) -> list[Completion]:
        return []

    def stream(self, request: Request) -> Iterator[str | Completion]:
        raise _refusal()

    def close(self) -> None:
        self._model.close()


def _refusal() -> ModelError:
    return ModelError("a model was asked in a build that uses none (extract.tier = fast)")
