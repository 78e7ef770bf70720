"""Names for types that nobody has named yet, made of a chunk's own words.

A name is snake_case: one to three words, lower-cased, each of which stands in the chunk; in scripts without
spaces a run of two to four characters of it. Or, for a model that can be trusted with it, of any letters.
"""

from __future__ import annotations

from collections.abc import Collection

import regex

from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.grammar.spans import SpanLexicon

MAX_WORDS = 3
#: Letters of a word, at least and at most.
_SHORTEST, _LONGEST = 3, 20
_UNSPACED_RUNS = range(2, 5)  # characters
_LETTERS = regex.compile(r"[\p{L}\p{M}]+")
_WORDS = """
    about after all also and another any are as at be been before being between both but by can could
    did does down each few for from had has have he her here hers herself him himself his how if in into
    is it its itself many may might more most much must no nor not now of off on once one only or other
    our out over own same she should since so some still such than that the their them themselves then
    there these they this those through to too two three under until up upon very was we well were what
    when where which while who whom whose why will with within without would year years yet you your без
    более был была были было быть вас вот все всё где для его ему если есть еще ещё или как когда
    которая которое которые который кто лет между мне над нас нет они она оно перед под после при про
    так также там тем того тоже только том уже чего чем через что чтобы эта эти это этот
"""
#: Words that say nothing on their own: a name does not begin with one.
FUNCTION_WORDS = frozenset(_WORDS.split())
#: Blocks of the scripts that a name may be written in.
_SCRIPTS = ("az", "ßž", "αώ", "аё", "את", "ءي", "ぁゟ", "ァヿ", "一鿿", "가힣")
_LOWER_OR_CASELESS = regex.compile(r"[\p{Ll}\p{Lo}\p{Lm}]")


def _letter_class() -> str:
    """An EBNF class of the lower-case letters of `_SCRIPTS`, and of their letters that have no case.

    Blocks hold more than that: capitals stand between their small letters, marks among kana.
    """
    ranges: list[list[str]] = []
    for block in _SCRIPTS:
        for letter in map(chr, range(ord(block[0]), ord(block[-1]) + 1)):
            if not _LOWER_OR_CASELESS.fullmatch(letter) or letter != letter.lower():
                continue
            if ranges and ord(letter) == ord(ranges[-1][1]) + 1:
                ranges[-1][1] = letter
            else:
                ranges.append([letter, letter])
    return "[" + "".join(a if a == b else f"{a}-{b}" for a, b in ranges) + "]"


_ANY_LETTER = _letter_class()


def name_rules(
    lexicon: SpanLexicon, rule: str, *, taken: Collection[str] = (), any_words: bool = False
) -> str:
    """EBNF rules for names, the main one called `rule`; "" when the chunk has no word to make one of.

    Args:
        taken: words of which a name may not be made; folded.
        any_words: of any letters, not only of the chunk's words.
    """
    if any_words:
        word = f"{_ANY_LETTER}{{2,{_LONGEST}}}"
        return f'{rule} ::= {word} ("_" {word}){{0,{MAX_WORDS - 1}}}'
    first, following, runs = _words(lexicon, taken)
    bodies = []
    rules = []
    if first:
        bodies.append(f'{rule}_first ("_" {rule}_next){{0,{MAX_WORDS - 1}}}')
        rules.append(f"{rule}_first ::= {alternatives(literal(word) for word in first)}")
        rules.append(f"{rule}_next ::= {alternatives(literal(word) for word in following)}")
    bodies += [literal(run) for run in runs]
    if not bodies:
        return ""
    return "\n".join([f"{rule} ::= {alternatives(bodies)}", *rules])


def _words(lexicon: SpanLexicon, taken: Collection[str]) -> tuple[list[str], list[str], list[str]]:
    """Words that a name may begin with, words that may follow, and runs of unspaced characters."""
    following: dict[str, None] = {}
    for word in lexicon.words:
        lower = word.text.lower()
        if (
            word.kind == "word"
            and len(lower) <= _LONGEST
            and _LETTERS.fullmatch(lower)
            and lower not in taken
        ):
            following[lower] = None
    first = [word for word in following if len(word) >= _SHORTEST and word not in FUNCTION_WORDS]
    runs: dict[str, None] = {}
    for clause in lexicon.clauses():
        for start in clause:
            for length in _UNSPACED_RUNS:
                words = lexicon.words[start : min(start + length, clause.stop)]
                run = "".join(word.text for word in words)
                if (
                    len(words) == length
                    and all(word.kind == "unspaced" for word in words)
                    and not any(word.spaced for word in words[1:])
                    and _LETTERS.fullmatch(run)
                    and run not in taken
                ):
                    runs[run] = None
    return first, list(following) if first else [], list(runs)
