"""A question taken apart: typed sub-questions that may rest on earlier ones' answers.

The model writes the plan under a grammar, so that every plan is one: at most so many questions, each with a
level, with types of the schema, and with "#1" only where a first question stands before it. What rests on
what is read off these marks; a cycle cannot be written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hornbeam.answer.grammars import ANY_WORD
from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.grammar.spans import split_words

#: What answers a sub-question: one thing's description, a fact between two things, or a whole topic.
Level = Literal["node", "triple", "community"]

_TYPES_EACH = 3
_WORDS = 24
#: Words that turn parts of a question into questions, beside the question's own.
_SPACED = (
    "Who What When Where Which How is was are were did does many the a of in by for to and first name year"
)
#: One character each, as words of such scripts are: longer ones could be read in two ways, and slowly.
_UNSPACED = "谁什么哪里何时多少是的在"
_MARK = re.compile(r"#(\d)")
_OPENING, _CLOSING = '{"questions":[', "]}"


@dataclass(frozen=True, slots=True)
class SubQuestion:
    number: int  # from 1
    text: str  # "#1" stands for the answer of sub-question 1
    level: Level
    types: tuple[str, ...]  # of the schema, that it involves
    depends_on: tuple[int, ...]  # earlier numbers, ascending

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "question": self.text,
            "level": self.level,
            "types": list(self.types),
            "depends_on": list(self.depends_on),
        }


def plan_grammar(question: str, types: Sequence[str], limit: int, *, any_words: bool = False) -> str:
    """`{"questions":[[level,[type, …],"text?"], …]}`, one to `limit` of them.

    Args:
        question: of whose words the sub-questions are made.
        types: of the schema.
        limit: 1 to 9.
        any_words: of any words.
    """
    own = [word for word in split_words(question) if word.kind != "mark"]
    unspaced = any(word.kind == "unspaced" for word in own)
    helpers = [*_SPACED.split(), *(_UNSPACED if unspaced else ())]
    word = (
        ANY_WORD if any_words else alternatives(literal(text) for text in [*(w.text for w in own), *helpers])
    )
    gap = '" "?' if unspaced and not any_words else '" "'
    tail = ""
    for number in range(limit, 1, -1):
        tail = f' ("," q{number}{tail})?'
    rules = [f"root ::= {literal(_OPENING)} q1{tail} {literal(_CLOSING)}"]
    for number in range(1, limit + 1):
        marks = [literal(f"#{earlier}") for earlier in range(1, number)]
        rules += [
            f'q{number} ::= "[" level ",[" {"types" if types else ""} "],\\"" t{number} "?\\"]"',
            f"t{number} ::= w{number} ({gap} w{number}){{1,{_WORDS - 1}}}",
            f"w{number} ::= {' | '.join(['word', *marks])}",
        ]
    rules.append(f"word ::= {word}")
    rules.append(f"level ::= {alternatives(literal(_json(level)) for level in get_args(Level))}")
    if types:
        rules.append(f'types ::= type ("," type){{0,{_TYPES_EACH - 1}}}')
        rules.append(f"type ::= {alternatives(literal(_json(name)) for name in types)}")
    return "\n".join(rules)


def parse_plan(text: str) -> tuple[SubQuestion, ...]:
    """The sub-questions of a plan; of one that a token limit cut, those that are whole.

    A question that is asked again is the first one. A model without grammars may have written anything: what
    is no sub-question ends the plan.
    """
    plan: list[SubQuestion] = []
    places: list[int] = []  # of each question as written, its place in the plan
    for item in _items(text):
        match item:
            case [str(level), list(types), str(question)] if level in get_args(Level) and question.strip():
                marks = {int(mark) for mark in _MARK.findall(question)}
                if any(not 0 < mark <= len(places) for mark in marks):
                    break
                question = put_in(question, {mark: f"#{places[mark - 1] + 1}" for mark in marks})
                asked = [one.text.casefold() for one in plan]
                if question.casefold() in asked:
                    places.append(asked.index(question.casefold()))
                    continue
                places.append(len(plan))
                rests = tuple(sorted({int(mark) for mark in _MARK.findall(question)}))
                names = tuple(dict.fromkeys(name for name in types if isinstance(name, str)))
                plan.append(SubQuestion(len(plan) + 1, question, level, names, rests))  # type: ignore[arg-type]
            case _:
                break
    return tuple(plan)


def put_in(text: str, answers: dict[int, str]) -> str:
    """A sub-question with the answers that it rests on in place of their marks."""
    return _MARK.sub(lambda mark: answers.get(int(mark[1]), mark[0]), text)


def _items(text: str) -> Iterator[Any]:
    """The items of the list, one by one, as far as they are whole."""
    decoder = json.JSONDecoder()
    at = text.find("[") + 1
    while at and at < len(text):
        try:
            item, end = decoder.raw_decode(text, at)
        except ValueError:
            return
        yield item
        at = end + 1  # the comma


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
