"""Words of a text for lexical search, for spaced and unspaced scripts alike."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

#: Words that say nothing about what a text is about. Short on purpose: BM25 discounts frequent words anyway,
#: and a long list loses names such as "The Who" or "IT".
_WORDS = """
    a an and are as at be been but by did do does for from had has have he her his how i if in into is it its
    of on or she than that the their them then there these they this to was we were what when where which who
    whom whose why will with would you your
    а без бы был была были было быть в во вы да для до его ее её если есть же за и из или им их к как какая
    какие какой ко когда которая которые который кто ли мы на над не него нее неё нет но о об она они оно от
    по под при с со так также то только у уже что чтобы чем это этот эта эти я где он
"""
STOP_WORDS = frozenset(_WORDS.split())

#: Scripts that are written without spaces between words.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"


@functools.cache
def _patterns() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    import regex

    # Kana's length mark and iteration marks have the script "Common" and would break a run.
    unspaced = rf"[{_UNSPACED}ー々〆]"
    run = rf"(?P<unspaced>{unspaced}[{_UNSPACED}ー々〆\p{{M}}]*)"
    letters = rf"[\p{{L}}\p{{M}}\p{{N}}--[{_UNSPACED}ー々〆]]+"
    # "3.5", "1,867" and "don't" are one word; of "Curie's" the last two characters are passed over.
    word = rf"(?P<spaced>{letters}(?:(?<=\p{{N}})[.,](?=\p{{N}}){letters}|'(?!s\b){letters})*)(?:'s\b)?"
    return (
        regex.compile(rf"{run}|{word}", regex.V1),
        regex.compile(r"\X"),
    )


#: What `_patterns` finds in a text of ASCII alone, in a fraction of the time.
_ASCII_WORD = re.compile(
    r"([a-z0-9]+(?:(?<=[0-9])[.,](?=[0-9])[a-z0-9]+|'(?!s\b)[a-z0-9]+)*)(?:'s\b)?", re.ASCII
)


def tokenise(text: str) -> list[str]:
    """The lexical tokens of `text`, in order, with repetitions.

    NFKC and case folding first. Spaced scripts: words without stop words, a plain English plural stripped,
    numbers whole ("3.5", "1867"). Unspaced scripts (Han, Kana, Thai, Lao, Khmer, Burmese): each character
    and each pair of neighbours, because there is no telling where a word ends. Hangul is spaced.
    """
    if text.isascii():
        return _tokens_of_words(_ASCII_WORD.findall(text.casefold()))
    words, graphemes = _patterns()
    tokens: list[str] = []
    for run, word in words.findall(normalise(text)):
        if not run:
            tokens += _tokens_of_words([word])
            continue
        characters = graphemes.findall(run)  # a Thai vowel sign stays with its consonant
        tokens.extend(characters)
        tokens.extend(left + right for left, right in itertools.pairwise(characters))
    return tokens


def _tokens_of_words(words: list[str]) -> list[str]:
    return [_singular(word) for word in words if word not in STOP_WORDS]


def normalise(text: str) -> str:
    """NFKC, case folded, one kind of apostrophe: how lexical search sees a text. Lengths may change."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.replace("’", "'")


@functools.lru_cache(maxsize=1 << 16)
def _singular(word: str) -> str:
    """Harman's S-stemmer: "cities" → "city", "films" → "film", "glass" and "status" as they are."""
    if not word.isascii() or len(word) < 4 or not word.endswith("s") or not word.isalpha():
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es"):
        return word if word.endswith(("aes", "ees", "oes")) else word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]
