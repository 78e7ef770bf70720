"""How a community is put to the model, and the grammar of its name and summary."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hornbeam.llm.protocol import LanguageModel

VERSION = "1"

_INSTRUCTIONS = """\
You name topics. Read the facts and answer with a short name for what they are about and one sentence that \
says what they tell. Use only what the facts say.

Example facts:
- Lena Sorvik: founded: Sorvik Optics
- Sorvik Optics: located in: Quillhaven
- Lena Sorvik: received award: Larch Prize
Example answer: {"name":"Lena Sorvik and Sorvik Optics","summary":"Lena Sorvik, who won the Larch Prize, \
founded Sorvik Optics in Quillhaven."}"""

OPENING = '{"name":"'
#: A word is bounded, and the number of words: the answer always ends, in any script. A name and a summary
#: have at least one word.
GRAMMAR = r"""
root ::= word (" " word){0,7} "\",\"summary\":\"" word (" " word){0,29} "\"}"
word ::= [^"\\ \x00-\x1f]{1,24}
""".strip()


def naming_prompt(model: LanguageModel, facts: Iterable[str], token_budget: int) -> str:
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
        shown.append(line)
    return model.chat_prompt(_INSTRUCTIONS, "Facts:\n" + "\n".join(shown)) + OPENING


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
