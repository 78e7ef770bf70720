"""How written forms of one name differ: initials, parts, endings, adjectives of places, slips of spelling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import regex

from hornbeam.resolve.evidence import LocalName
from hornbeam.resolve.names import is_unspaced, name_words, ordinals_of, spelling_key

_SMALL_WORDS = """
a an and at by de del der des di do du e et for für in la le les of on the to und van von y & и в на по о об
при для
"""
#: Words of a long form that its acronym may pass over.
_SMALL = frozenset(_SMALL_WORDS.split())
_COMPANY_WORDS = """
inc incorporated corp corporation company co ltd limited llc plc gmbh ag kg mbh sa s.a spa sarl bv nv ab as oy
pty pte llp lp kk records and & ооо оао зао пао ао
"""
#: What a company may be called with or without.
_COMPANY = frozenset(_COMPANY_WORDS.split())
_TITLE_WORDS = """
mr dr prof professor sir captain capt president senator sen governor gov general gen colonel col lieutenant lt
sergeant sgt major judge justice minister chancellor reverend rev father archbishop bishop cardinal господин
доктор профессор генерал капитан президент
"""
_TITLES = frozenset(_TITLE_WORDS.split())
_ACRONYM_LETTERS = (2, 10)
_CYRILLIC_WORD = regex.compile(r"[\p{Cyrillic}]{4,}")
_CASES = """
ями ами ого его ому ему ыми ими ой ей ою ею ий ый ая яя ое ее ые ие ам ям ах ях ом ем ым им ых их ую юю а я о
е у ю ы и й ь
"""
#: Case endings of Russian nouns, adjectives and surnames. Not -ов and -ев, which make surnames.
_ENDINGS = sorted(_CASES.split(), key=len, reverse=True)
_SHORTEST_STEM = 3
_SCRIPTS = [
    (script, regex.compile(rf"\p{{{script}}}"))
    for script in ("Latin", "Cyrillic", "Greek", "Han", "Hangul", "Hiragana", "Katakana", "Arabic", "Hebrew")
]
#: A name that is another but for one letter has at least so many letters.
_LEAST_LETTERS_FOR_A_SLIP = 6


def is_acronym_of(short: LocalName, long: LocalName) -> bool:
    """Whether `short` is made of the initials of the words of `long`, small words counted or not."""
    letters = spelling_key(short.canonical)
    least, most = _ACRONYM_LETTERS
    if not least <= len(letters) <= most or not _looks_like_acronym(short.written):
        return False
    return letters in acronyms_of(long.canonical)


def _looks_like_acronym(written: str) -> bool:
    cased = [character for character in written if character.isalpha()]
    return (
        len(cased) >= _ACRONYM_LETTERS[0]
        and " " not in written.strip(". ")
        and 2 * sum(character.isupper() for character in cased) > len(cased)
    )


@lru_cache(maxsize=1 << 14)
def acronyms_of(canonical: str) -> frozenset[str]:
    """Initials of all words, and of all but the small ones; empty for one word."""
    words = name_words(canonical)
    if len(words) < 2 or is_unspaced(canonical):
        return frozenset()
    large = [word for word in words if word not in _SMALL]
    found = {"".join(word[0] for word in chosen) for chosen in (words, large) if len(chosen) > 1}
    return frozenset(spelling_key(letters) for letters in found)


def of_other_script(first: LocalName, second: LocalName) -> bool:
    """Whether the two names have no script in common: one is the other's original form."""
    scripts = [
        {script for script, letters in _SCRIPTS if letters.search(name.canonical)} for name in (first, second)
    ]
    return bool(scripts[0] and scripts[1]) and not scripts[0] & scripts[1]


def is_person_part(short: Sequence[str], full: Sequence[str]) -> bool:
    """Whether a person of the name `full` may be called `short`: a surname or a given name alone, or some
    names in their order, given names as initials, with the surname among them."""
    if len(short) == len(full) > 1:
        return sum(map(len, short)) < sum(map(len, full)) and _in_order(short, full)
    if len(short) >= len(full):
        return False
    if len(short) == 1:
        (word,) = short
        return len(word) > 1 and word in (full[0], full[-1])
    return short[-1] == full[-1] and _in_order(short[:-1], full[:-1])


def without_title(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a person's name after titles that tell nobody from anybody: "Dr. Weber" is Weber."""
    first = next((place for place, word in enumerate(words) if word not in _TITLES), len(words))
    return words[first:] or words


def is_given_name(short: str, full: str) -> bool:
    """Whether a name in characters ends with `short`, two of them or more: 智深 of 鲁智深."""
    return len(short) >= 2 and len(full) - len(short) in (1, 2) and full.endswith(short)


def _in_order(short: Sequence[str], full: Sequence[str]) -> bool:
    """Each word of `short` is one of `full`, or the initial of one or has it as its initial, in order."""
    place = 0
    for word in short:
        while place < len(full) and not _same_given(word, full[place]):
            place += 1
        if place == len(full):
            return False
        place += 1
    return True


def _same_given(first: str, second: str) -> bool:
    return first == second or (min(len(first), len(second)) == 1 and first[0] == second[0])


def is_company_part(short: Sequence[str], full: Sequence[str]) -> bool:
    """Whether `full` is `short` and what kind of company it is."""
    length = len(short)
    if not 0 < length < len(full) or _COMPANY.issuperset(short):
        return False
    after = tuple(full[:length]) == tuple(short) and _COMPANY.issuperset(full[length:])
    before = tuple(full[-length:]) == tuple(short) and _COMPANY.issuperset(full[:-length])
    return after or before


@lru_cache(maxsize=1 << 16)
def stem_key(canonical: str) -> str | None:
    """A Cyrillic name without case endings, a word at a time; None for names of other scripts."""
    words = name_words(canonical)
    if not words or not any(_CYRILLIC_WORD.fullmatch(word) for word in words):
        return None
    return " ".join(_stem(word) for word in words)


def _stem(word: str) -> str:
    if _CYRILLIC_WORD.fullmatch(word):
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
                return word[: -len(ending)]
    return word


def one_slip_apart(first: str, second: str) -> bool:
    """Whether two canonical names differ by one letter within a word: not its first letter, nor its last two,
    which make plurals and adjectives."""
    from rapidfuzz.distance import Levenshtein

    ours, theirs = name_words(first), name_words(second)
    if len(ours) != len(theirs) or ordinals_of(first) != ordinals_of(second):
        return False
    unlike = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    if len(unlike) != 1:
        return False
    (one, other) = unlike[0]
    if min(len(one), len(other)) < _LEAST_LETTERS_FOR_A_SLIP or one[0] != other[0] or one[-2:] != other[-2:]:
        return False
    return Levenshtein.distance(one, other, score_cutoff=1) == 1


#: Of 100; below, two names have next to nothing in common.
_LEAST_LIKENESS = 55


def names_alike(first: str, second: str) -> bool:
    """Whether two canonical names could be forms of one: much in common, or one the other's initials."""
    from rapidfuzz.fuzz import token_set_ratio

    if ordinals_of(first) != ordinals_of(second):
        return False
    if spelling_key(first) in acronyms_of(second) or spelling_key(second) in acronyms_of(first):
        return True
    return bool(token_set_ratio(first, second) >= _LEAST_LIKENESS)
