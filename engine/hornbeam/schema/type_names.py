"""What names of types are made of, and when two of them say the same."""

from __future__ import annotations

import unicodedata

import regex

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_CAMEL_HUMP = regex.compile(r"(?<=[\p{Ll}\p{N}])(?=\p{Lu})")
#: Endings that come and go with a word's form, the longest first. English and Russian; names in other
#: languages are the same only when they are written alike.
_ENGLISH = ("ing", "ed", "s")
_RUSSIAN = (
    *("ами", "ями", "ого", "его", "ому", "ему"),
    *("ов", "ев", "ам", "ям", "ах", "ях", "ом", "ем", "ой", "ей", "ый", "ий", "ая", "ое", "ые", "ую"),
    *("а", "я", "о", "е", "ё", "и", "ы", "у", "ю", "ь", "й"),
)
#: What is left of a word when its ending is gone, at least.
_SHORTEST_STEM = 3


def name_words(name: str) -> list[str]:
    """The words of a name, case folded: `bornIn`, `born_in` and `Born in` have the same two."""
    humps = _CAMEL_HUMP.sub(" ", unicodedata.normalize("NFKC", name))
    return [word.casefold() for word in _WORD.findall(humps)]


def spoken(name: str) -> str:
    """A name as one says it: for an embedding model, and for a sentence."""
    return " ".join(name_words(name)) or name


def name_key(name: str) -> str:
    """Equal for names that differ only in case, joining or the forms of their words.

    `companies` and `company`, `founded` and `founds`; what is no word at all is its own key.
    """
    return "_".join(stem(word) for word in name_words(name)) or name


def stem(word: str) -> str:
    """A word of `name_words` without the ending that its form gives it: crude, and the same for all forms."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "i"
    for ending in _RUSSIAN if regex.search(r"\p{Cyrillic}", word) else _ENGLISH:
        left = word.removesuffix(ending)
        if ending == "s" and left.endswith("s"):
            break  # address
        if left != word and len(left) >= _SHORTEST_STEM:
            word = left
            break
    if word.endswith("y") and len(word) > _SHORTEST_STEM:
        return word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > _SHORTEST_STEM else word
