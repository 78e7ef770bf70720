"""How a community is put to the model, and the grammar of its name and summary.

Instructions and example are the prompt files' (`hornbeam.prompts`, task `naming`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from hornbeam.grammar.worded import word_rules
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


def grounded_grammar(facts: Sequence[str], language: str = DEFAULT_LANGUAGE) -> str | None:
    """A name and a summary of the words of the facts and of connecting ones: nobody can be in them who is not
    in the facts, least of all from the example in the prompt. None where the facts hold no word.

    Args:
        language: of the connecting words; English ones where it has none.
    """
    rules = word_rules(facts, language)
    if not rules:
        return None
    root = 'root ::= known more{0,7} "\\",\\"summary\\":\\"" known more{0,29} ("." | "") "\\"}"'
    return "\n".join([root, *rules])


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
