"""The canonical form of a name: what makes two written forms the same entity of a type."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import regex

#: Outer punctuation and symbols, except those that tell names apart at their end (C++, C#).
_OUTER = regex.compile(r"^[\p{P}\p{S}\s]+|[\p{P}\p{S}\s--[+#]]+$", regex.V1)
_GAPS = regex.compile(r"[\s\p{Pd}_]+")
_ARTICLE = regex.compile(r"^the (?=\S)")


@lru_cache(maxsize=1 << 16)
def canonical_name(name: str) -> str:
    """Unicode NFKC, case folded, dashes and white space as one blank, outer punctuation and an English
    article dropped. A name that is nothing but punctuation stays itself."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    reduced = _ARTICLE.sub("", _OUTER.sub("", _GAPS.sub(" ", folded)).strip())
    return reduced or folded
