"""What a question is about, without a model: its names, its terms, and whether a text speaks of them."""

from __future__ import annotations

from collections.abc import Iterable

from hornbeam.grammar.spans import Word, split_words
from hornbeam.index.tokens import STOP_WORDS, tokenise

_INSIDE_NAMES = "of the de la le du von van der den di da and & y el al bin ibn"
_ASKING = """
    about according after among am before between both by can compare could describe did do does during either
    explain give had has have how if in is list many may might much name neither please shall should since
    summarise summarize tell until was were what whats when where which who whom whose why will would
"""
_VAGUE = "also first last more most other same such than then too very"
#: Words that may stand inside a name.
_INSIDE = frozenset(_INSIDE_NAMES.split())
#: Question words and the like, which begin questions with a capital and are no name.
_NO_NAME = STOP_WORDS | frozenset(_ASKING.split())
_NO_TERM = _NO_NAME | frozenset(_VAGUE.split())


def names_in(text: str) -> list[str]:
    """Runs of capitalised words and of numbers, as written, each once; a run keeps small words between two
    capitalised ones. Scripts without capitals have none."""
    words = split_words(text)
    found: dict[str, None] = {}
    place = 0
    while place < len(words):
        if not _begins_name(words, place):
            place += 1
            continue
        last = place
        ahead = place + 1
        while ahead < len(words) and _goes_on(words, ahead):
            if _is_capital(words[ahead]):
                last = ahead
            ahead += 1
        found[text[words[place].start : words[last].end]] = None
        place = last + 1
    return list(found)


def terms_in(question: str) -> list[str]:
    """The names of a question and the other words that say what it is about, in its order, each once."""
    names = names_in(question)
    covered = {token for name in names for token in tokenise(name)}
    terms: dict[str, None] = {}
    for word in split_words(question):
        name = next(
            (one for one in names if question.find(one) <= word.start < question.find(one) + len(one)), None
        )
        if name is not None:
            terms[name] = None
        elif (
            word.kind == "word"
            and len(word.text) > 2
            and word.text.casefold() not in _NO_TERM
            and not set(tokenise(word.text)) <= covered
        ):
            terms[word.text] = None
    return list(terms)


def uncovered(terms: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The terms of which no text holds every word, and no text a word that begins alike ("die", "died")."""
    said = set(tokenise(" ".join(texts)))
    stems = {_stem(token) for token in said}
    missing = []
    for term in terms:
        tokens = tokenise(term)
        if tokens and not all(token in said or _stem(token) in stems for token in tokens):
            missing.append(term)
    return missing


def _stem(token: str) -> str:
    """The first letters of a long word: "founded", "founder" and "founding" count as one."""
    return token[: max(4, len(token) - 3)] if len(token) > 5 and token.isalpha() else token


def _is_capital(word: Word) -> bool:
    return word.kind == "word" and (word.text[0].isupper() or word.text[0].isdigit())


def _begins_name(words: list[Word], place: int) -> bool:
    word = words[place]
    return _is_capital(word) and word.text.casefold() not in _NO_NAME


def _goes_on(words: list[Word], place: int) -> bool:
    """A name runs through this word: it is capitalised, or a small one with a capitalised one behind it."""
    word = words[place]
    if not word.joins:
        return False
    if word.kind == "mark" or _is_capital(word):
        return True
    following = words[place + 1] if place + 1 < len(words) else None
    return word.text in _INSIDE and following is not None and _is_capital(following)
