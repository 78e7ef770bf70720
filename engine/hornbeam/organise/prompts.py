"""How a community is put to the model, and the grammar of its name and summary.

Instructions and example are the prompt files' (`hornbeam.prompts`, task `naming`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import regex

from hornbeam.grammar.ebnf import alternatives, json_inner, literal
from hornbeam.llm.protocol import LanguageModel
from hornbeam.prompts import DEFAULT_LANGUAGE, PromptText

TASK = "naming"
VERSION = "3"

OPENING = '{"name":"'
#: Any words. A word is bounded, and the number of words: the answer always ends, in any script. A name and a
#: summary have at least one word.
FREE_GRAMMAR = r"""
root ::= word (" " word){0,7} "\",\"summary\":\"" word (" " word){0,29} "\"}"
word ::= [^"\\ \x00-\x1f]{1,24}
""".strip()


_ENGLISH = """
a after also an and are as at be been before between both but by during for from had has have in into is it
its more of on one or other over since that the their these they this to under until was were where which who
whose with
"""
_CHINESE = "的 了 和 与 及 是 在 于 由 为 被 把 从 向 到 有 曾 后 并 也 其 他 她 它 这 该"
#: Words that no fact need hold, to make a sentence of those that stand in the facts; by language.
CONNECTING = {"en": tuple(_ENGLISH.split()), "zh": tuple(_CHINESE.split())}
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’.\-&/][\p{L}\p{M}\p{N}]+)*")
#: Longer runs, of scripts without blanks, are cut.
_LONGEST_WORD = 24


def facts_that_fit(model: LanguageModel, facts: Iterable[str], token_budget: int) -> list[str]:
    """Facts in order of importance, from the first on as many as fit `token_budget`; not one more is read.

    A first fact that does not fit on its own is cut: without any, the model would invent a topic.
    """
    shown: list[str] = []
    left = token_budget
    for fact in facts:
        line = f"- {model.neutralise(fact)}"
        cost = model.tokenizer.count(line) + 1
        while cost > left and not shown and len(line) > 1:
            line = line[: max(1, min(len(line) - 1, len(line) * left // cost))]
            cost = model.tokenizer.count(line) + 1
        if cost > left:
            break
        left -= cost
        shown.append(line.removeprefix("- "))
    return shown


def naming_prompt(model: LanguageModel, text: PromptText, facts: Sequence[str]) -> str:
    lines = "\n".join(f"- {fact}" for fact in facts)
    return model.chat_prompt(text.instruct(), text.ask(facts=lines)) + OPENING


def words_of_facts(facts: Iterable[str]) -> list[str]:
    """The words that stand in the facts, each once; of a fact without letters what it is made of."""
    words: dict[str, None] = {}
    for fact in facts:
        found = _WORD.findall(fact) or [piece for piece in fact.split() if piece.isprintable()]
        for word in found:
            for start in range(0, len(word), _LONGEST_WORD):
                words[word[start : start + _LONGEST_WORD]] = None
    return list(words)


def grounded_grammar(facts: Sequence[str], language: str = DEFAULT_LANGUAGE) -> str | None:
    """A name and a summary of the words of the facts and of connecting ones: nobody can be in them who is not
    in the facts, least of all from the example in the prompt. None where the facts hold no word.

    Args:
        language: of the connecting words; English ones where it has none.
    """
    words = words_of_facts(facts)
    if not words:
        return None
    known = alternatives(literal(json_inner(word)) for word in words)
    connecting = alternatives(
        literal(word) for word in CONNECTING.get(language, CONNECTING[DEFAULT_LANGUAGE])
    )
    return "\n".join(
        (
            'root ::= known more{0,7} "\\",\\"summary\\":\\"" known more{0,29} ("." | "") "\\"}"',
            'more ::= (" " | ", ") (known | connecting)',
            f"known ::= {known}",
            f"connecting ::= {connecting}",
        )
    )


def read_naming(text: str) -> tuple[str, str] | None:
    """Name and summary of a completion; None when it was cut short."""
    try:
        answer = json.loads(OPENING + text)
    except ValueError:
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("name"), str):
        return None
    name, summary = answer["name"].strip(), str(answer.get("summary", "")).strip()
    return (name, summary) if name and summary else None
