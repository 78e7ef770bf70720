"""Building blocks of the EBNF text that xgrammar compiles."""

from __future__ import annotations

import json
from collections.abc import Iterable


def literal(text: str) -> str:
    """An EBNF literal that matches `text` itself.

    Escapes are JSON's, without `ensure_ascii`: an escaped surrogate pair would parse and never match.
    """
    return json.dumps(text, ensure_ascii=False)


def json_inner(text: str) -> str:
    """`text` as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def alternatives(bodies: Iterable[str]) -> str:
    """`a | b | c`, each once, in first-seen order.

    Raises:
        ValueError: there is none; an empty alternative would let the decoder produce nothing at all.
    """
    unique = list(dict.fromkeys(bodies))
    if not unique:
        raise ValueError("a grammar rule needs at least one alternative")
    return " | ".join(unique)
