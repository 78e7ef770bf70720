"""Which entity types a question asks for: a hint, never a filter."""

from __future__ import annotations

from collections.abc import Iterable

from hornbeam.index.texts import relation_words
from hornbeam.index.tokens import tokenise

#: What a question word asks for, by the words that types commonly are named with.
_ASKED_BY: dict[str, frozenset[str]] = {
    "who": frozenset({"person", "people", "character", "author", "organization", "organisation"}),
    "whom": frozenset({"person", "people", "character", "author"}),
    "whose": frozenset({"person", "people", "character", "author"}),
    "where": frozenset({"place", "location", "city", "country", "region", "address"}),
    "when": frozenset({"date", "time", "year", "period", "event"}),
    "кто": frozenset({"person", "character", "organization"}),
    "где": frozenset({"place", "location", "city", "country"}),
    "когда": frozenset({"date", "time", "event"}),
}


def asked_types(question: str, types: Iterable[str]) -> frozenset[str]:
    """Those of `types` that the question names ("which river …") or that its question word asks for."""
    tokens = set(tokenise(question))
    hinted = [_ASKED_BY[word] for word in question.casefold().split() if word in _ASKED_BY]
    wanted = frozenset().union(*hinted) | tokens
    return frozenset(name for name in types if name and set(tokenise(relation_words(name))) & wanted)
