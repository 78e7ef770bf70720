"""Free sentences that can name nobody: made of the words of given texts and of connecting ones."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from hornbeam.grammar.ebnf import alternatives, json_inner, literal

_ENGLISH = """
a after also an and are as at be been before between both but by during for from had has have in into is it
its more of on one or other over since that the their these they this to under until was were where which who
whose with
"""
_CHINESE = "的 了 和 与 及 是 在 于 由 为 被 把 从 向 到 有 曾 后 并 也 其 他 她 它 这 该"
_DEFAULT = "en"
#: Words that no text need hold, to make a sentence of those that stand in the texts; by language.
CONNECTING = {_DEFAULT: tuple(_ENGLISH.split()), "zh": tuple(_CHINESE.split())}
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’.\-&/][\p{L}\p{M}\p{N}]+)*")
#: Longer runs, of scripts without blanks, are cut.
_LONGEST_WORD = 24


def words_of(texts: Iterable[str]) -> list[str]:
    """The words that stand in the texts, each once; of a text without letters what it is made of."""
    words: dict[str, None] = {}
    for text in texts:
        found = _WORD.findall(text) or [piece for piece in text.split() if piece.isprintable()]
        for word in found:
            for start in range(0, len(word), _LONGEST_WORD):
                words[word[start : start + _LONGEST_WORD]] = None
    return list(words)


def word_rules(texts: Iterable[str], language: str = _DEFAULT) -> list[str]:
    """Rules `known`, a word of the texts as it stands in a JSON string, and `more`, a further word, known or
    connecting, with what parts it from the one before. [] where the texts hold no word.

    Args:
        language: of the connecting words; English ones where it has none.
    """
    words = words_of(texts)
    if not words:
        return []
    connecting = CONNECTING.get(language, CONNECTING[_DEFAULT])
    return [
        'more ::= (" " | ", ") (known | connecting)',
        f"known ::= {alternatives(literal(json_inner(word)) for word in words)}",
        f"connecting ::= {alternatives(literal(word) for word in connecting)}",
    ]


def sentence_grammar(texts: Iterable[str], language: str = _DEFAULT, max_words: int = 30) -> str | None:
    """One sentence; None where the texts hold no word."""
    rules = word_rules(texts, language)
    return "\n".join([f'root ::= known more{{0,{max_words - 1}}} "."', *rules]) if rules else None
