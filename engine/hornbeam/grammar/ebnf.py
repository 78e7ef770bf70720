"""Building blocks of the EBNF text that xgrammar compiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json.encoder import (
    encode_basestring,
)  # what json.dumps(ensure_ascii=False) does, without an encoder each


def literal(text: str) -> str:
    """An EBNF literal that matches `text` itself.

    Escapes are JSON's, without `ensure_ascii`: an escaped surrogate pair would parse and never match.
    """
    return encode_basestring(text)


def json_inner(text: str) -> str:
    """`text` as it stands between the quotes of a JSON string."""
    return encode_basestring(text)[1:-1]


def alternatives(bodies: Iterable[str]) -> str:
    """`a | b | c`, each once, in first-seen order.

    Raises:
        ValueError: there is none; an empty alternative would let the decoder produce nothing at all.
    """
    unique = list(dict.fromkeys(bodies))
    if not unique:
        raise ValueError("a grammar rule needs at least one alternative")
    return " | ".join(unique)


def items_in_order(kind: str, quotas: Sequence[int], close: str) -> tuple[str, list[str]]:
    """A comma-separated list of JSON arrays, taken from places in a fixed order, each with a quota.

    The rule `{kind}_k` is an item of place k without its opening bracket. `{kind}_open_k_j` begins an item
    there, where j are left, or moves on to the next place; `{kind}_after_k_j` closes the list or goes on. So
    every path ends, whatever is preferred on the way.

    Args:
        quotas: items of each place, at least one place, all ≥ 1.
        close: EBNF of what ends the list.

    Returns:
        the body of a rule for a non-empty list, its first bracket included, and the rules.
    """
    rules = []
    for k, quota in enumerate(quotas):
        following = f"{kind}_open_{k + 1}_{quotas[k + 1]}" if k + 1 < len(quotas) else ""
        for left in range(quota, 0, -1):
            skip = f" | {following}" if following else ""
            rules.append(f"{kind}_open_{k}_{left} ::= {kind}_{k} {kind}_after_{k}_{left - 1}{skip}")
            onward = f"{kind}_open_{k}_{left - 1}" if left > 1 else following
            rules.append(f"{kind}_after_{k}_{left - 1} ::= {close}" + (f' | ",[" {onward}' if onward else ""))
    return f'"[" {kind}_open_0_{quotas[0]}', rules
