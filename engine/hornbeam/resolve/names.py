"""Forms of a name: the canonical one, which is its identity, and looser ones, which tell what may be one."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import regex

#: Outer punctuation and symbols, except those that tell names apart at their end (C++, C#).
_OUTER = regex.compile(r"^[\p{P}\p{S}\s]+|[\p{P}\p{S}\s--[+#]]+$", regex.V1)
_GAPS = regex.compile(r"[\s\p{Pd}_]+")
_NOT_SPELLED = regex.compile("[^0-9A-Za-z+#]+")
_ARTICLE = regex.compile(r"^the (?=\S)")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}]+)*")
#: Written without blanks: a character is a word.
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")
_ORDINAL = regex.compile(
    r"\p{N}+|\b(?:[ivx]+|jr|sr|junior|senior|the younger|the elder|младший|старший|мл|ст)\b"
)
#: Letters that carry no mark that NFD could take off.
_PLAIN = str.maketrans({
    "ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ё": "е",
})  # fmt: skip


@lru_cache(maxsize=1 << 16)
def canonical_name(name: str) -> str:
    """Unicode NFKC, case folded, dashes and white space as one blank, outer punctuation and an English
    article dropped. A name that is nothing but punctuation stays itself.

    Diacritics stay: Peña is not pena. Traditional and simplified characters stay: one simplified character
    stands for several traditional ones (后 for 后 and 後), and names tell them apart.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    reduced = _ARTICLE.sub("", _OUTER.sub("", _GAPS.sub(" ", folded)).strip())
    return reduced or folded


@lru_cache(maxsize=1 << 16)
def spelling_key(canonical: str) -> str:
    """Without diacritics of Latin and Greek, blanks and punctuation: "u.s." and "us", "peña" and "pena".

    Marks of other scripts are letters of their own there (й is not и).
    """
    if canonical.isascii():  # nearly all, and a character at a time takes a hundred times as long
        return _NOT_SPELLED.sub("", canonical) or canonical
    plain = []
    base_takes_marks = False
    for character in unicodedata.normalize("NFD", canonical.translate(_PLAIN)):
        if unicodedata.category(character) == "Mn":
            if not base_takes_marks:
                plain.append(character)
        elif character.isalnum() or character in "+#":
            base_takes_marks = unicodedata.name(character, "").startswith(("LATIN", "GREEK"))
            plain.append(character)
    return "".join(plain) or canonical


@lru_cache(maxsize=1 << 16)
def name_words(canonical: str) -> tuple[str, ...]:
    """The words of a canonical name; in scripts without blanks, its characters."""
    if _UNSPACED.search(canonical):
        return tuple(character for character in canonical if character.isalnum())
    return tuple(_WORD.findall(canonical))


def is_unspaced(canonical: str) -> bool:
    """Whether the name is in a script without blanks between words."""
    return bool(_UNSPACED.search(canonical))


@lru_cache(maxsize=1 << 16)
def ordinals_of(canonical: str) -> tuple[str, ...]:
    """What counts a name off from others of its like: numbers, Roman ones, junior and senior. Names that
    differ in them are never the same (World War I and II, Carol I and Carol)."""
    return tuple(_ORDINAL.findall(canonical))
