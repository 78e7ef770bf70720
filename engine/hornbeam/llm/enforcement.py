"""What a model server can hold its answers to: our grammar, a JSON schema, or nothing.

A server that does not know a field of a request ignores it, so its word is not taken: it is asked for a code
word that only the grammar (or the schema) names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hornbeam.llm.protocol import JsonAnswer

_CODE = "zq7vx"
_PROBE: dict[str, Any] = {"prompt": "The code word is", "temperature": 0.0}
_PROBE_TOKENS = 24

#: How servers take a grammar: vLLM, SGLang, llama.cpp.
_DIALECTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "structured_outputs": lambda grammar: {"structured_outputs": {"grammar": grammar}},
    "ebnf": lambda grammar: {"ebnf": grammar},
    "grammar": lambda grammar: {"grammar": grammar},
}


def _schema_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    form = {"name": "answer", "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


@dataclass(frozen=True, slots=True)
class Enforcement:
    """
    Args:
        kind: the strongest thing that the server was seen to enforce.
        dialect: the field in which it takes a grammar.
    """

    kind: Literal["grammar", "json schema", "nothing"]
    dialect: str = ""

    def fields(self, grammar: str, answer: JsonAnswer | None) -> dict[str, Any]:
        """What a request's body says of the form of its answer."""
        if self.kind == "grammar":
            return _DIALECTS[self.dialect](grammar)
        return _schema_fields(answer.schema) if self.kind == "json schema" and answer else {}

    def writes_whole_documents(self, answer: JsonAnswer | None) -> bool:
        """Whether the answer begins with what otherwise the prompt ends with."""
        return self.kind == "json schema" and answer is not None


def probe(complete: Callable[[dict[str, Any]], str | None]) -> Enforcement | None:
    """Find out what a server enforces, in at most five short completions.

    Args:
        complete: the text that the server answers a body with; None: it refuses the body. What it raises goes
            through.

    Returns:
        None: it refuses every body, also one that asks for no form.
    """
    body = _PROBE | {"max_tokens": _PROBE_TOKENS}
    answered = False
    for dialect, fields in _DIALECTS.items():
        text = complete(body | fields(f'root ::= "{_CODE}"'))
        answered |= text is not None
        if text is not None and text.strip() == _CODE:
            return Enforcement("grammar", dialect)
    schema = {
        "type": "object",
        "properties": {"code": {"const": _CODE}},
        "required": ["code"],
        "additionalProperties": False,
    }
    text = complete(body | _schema_fields(schema))
    if text is not None and _is_code(text):
        return Enforcement("json schema")
    if answered or text is not None or complete(body) is not None:
        return Enforcement("nothing")
    return None


def _is_code(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"code": _CODE})
    except ValueError:
        return False
