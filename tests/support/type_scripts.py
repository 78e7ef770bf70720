"""A model that answers questions about types from a script and walks every other grammar by chance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hornbeam.grammar.type_proposals import CLOSING, ENTITY_OPENING, FACT_BETWEEN, FACT_OPENING
from hornbeam.llm.protocol import Completion, Request, TokenScore, Usage
from support.walker import GrammarWalker

Rows = Sequence[Sequence[str]]


def entity_answer(rows: Rows) -> str:
    return _rows(rows) + CLOSING


def fact_answer(relations: Rows = (), attributes: Rows = ()) -> str:
    return _rows(relations) + FACT_BETWEEN + _rows(attributes) + CLOSING


def completion(text: str, *, logprob: float = -0.1, request_id: str = "q") -> Completion:
    """As if every character were a token."""
    tokens = tuple(TokenScore(character, logprob) for character in text)
    return Completion(request_id, text, "stop", Usage(10, 0, len(tokens)), tokens)


class TypeScript(GrammarWalker):
    """
    Args:
        entity_types: from a prompt to the rows of the answer; None: the walker answers.
        fact_types: the same for relations and attributes.
    """

    def __init__(
        self,
        entity_types: Callable[[str], Rows] | None = None,
        fact_types: Callable[[str], tuple[Rows, Rows]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**({"closing": 0.15} | options))
        self._entity_types = entity_types
        self._fact_types = fact_types

    def complete(self, request: Request) -> Completion:
        answer = None
        if request.prompt.endswith(ENTITY_OPENING) and self._entity_types:
            answer = entity_answer(self._entity_types(shown_text(request)))
        elif request.prompt.endswith(FACT_OPENING) and self._fact_types:
            answer = fact_answer(*self._fact_types(shown_text(request)))
        if answer is None or (self.fail_when and self.fail_when(request)):
            return super().complete(request)
        return completion(answer, request_id=request.request_id)


def asks_for_types(request: Request) -> bool:
    return request.prompt.endswith((ENTITY_OPENING, FACT_OPENING))


def shown_text(request: Request) -> str:
    """The chunk in a prompt, and what follows it."""
    return request.prompt.rpartition("Text: ")[2]


def _rows(rows: Rows) -> str:
    return ",".join(json.dumps(list(row), ensure_ascii=False, separators=(",", ":")) for row in rows)
