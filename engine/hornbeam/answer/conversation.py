"""Follow-up questions, rewritten so that they stand alone.

Only a question that leans on what was said before is rewritten: one with a word that points back ("he",
"there"), or one that only names what is new ("And Poland?"). The model chooses, under a grammar, among
the question as it is and the ways in which names from before could be put into it; a model that may use words
of its own writes one line. Everything else goes through untouched and costs no call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from hornbeam.answer.grammars import ANY_WORD
from hornbeam.answer.inquiry import Inquiry
from hornbeam.answer.names import names_in
from hornbeam.grammar.ebnf import alternatives, literal

#: Turns that are shown, and names of them that may be put in, the latest first.
_TURNS = 3
_NAMES = 8
_TOKENS = 96
_WORDS = 40
_OWNED = r"his|her|hers|its|their|theirs|whose"
_POINTING = regex.compile(
    rf"\b(?P<owned>{_OWNED})\b|\b(?:he|she|it|they|him|them|there|this|that|these|those|"
    r"он|она|оно|они|его|её|ее|их|ему|ей|им|там|это|этот|эта)\b|他们|她们|它们|他|她|它|那里|这里|那个|这个",
    regex.IGNORECASE,
)
_ELLIPSIS = regex.compile(
    r"^\s*(?:and|what about|how about|а)\b[\s,]*(?:the\s+)?(?P<rest>.+?)[?？\s]*$", regex.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Turn:
    question: str  # as it was answered, standing alone
    answer: str  # without marks; "" of a declined question


def stand_alone(inquiry: Inquiry, history: Sequence[Turn]) -> str:
    """The inquiry's question in a form that needs no history.

    Raises:
        ModelError: the model could not say.
    """
    question = inquiry.question
    forms = rewritings(question, history)
    if len(forms) == 1:
        return question
    shown = " ".join(f"{turn.question} {turn.answer}".strip() for turn in history[-_TURNS:])
    if inquiry.own_words:
        grammar = f'root ::= word (" " word){{0,{_WORDS - 1}}}\nword ::= {ANY_WORD}'
    else:
        grammar = f"root ::= {alternatives(literal(form) for form in forms)}"
    prompt = inquiry.chat("standalone", history=shown, question=question)
    request = inquiry.request("standalone", prompt, _room(inquiry, forms), grammar=grammar)
    (completion,) = inquiry.complete("standalone", [request])
    return completion.text.strip() or question


def rewritings(question: str, history: Sequence[Turn]) -> list[str]:
    """The question itself, then every way in which a name from before could complete it; each once."""
    names = _names(question, history)
    forms = {question: None}
    if match := _POINTING.search(question):
        for name in names:
            put = f"{name}'s" if match["owned"] else name
            forms[question[: match.start()] + put + question[match.end() :]] = None
    elif history and (ellipsis := _ELLIPSIS.match(question)):
        before = history[-1].question
        for name in names_in(before):
            forms[before.replace(name, ellipsis["rest"])] = None
    return list(forms)


def _names(question: str, history: Sequence[Turn]) -> list[str]:
    """Names of the last turns that the question does not hold itself, the latest first; a short answer that
    holds no capital counts as one."""
    found: dict[str, None] = {}
    for turn in reversed(history[-_TURNS:]):
        for text in (turn.answer, turn.question):
            names = names_in(text)
            if not names and text is turn.answer and text and len(text) <= 40:
                names = [text]
            found |= dict.fromkeys(name for name in names if name not in question)
    return list(found)[:_NAMES]


def _room(inquiry: Inquiry, forms: Sequence[str]) -> int:
    """Tokens that hold the longest form whole."""
    return max(_TOKENS, 4 + max(inquiry.model.tokenizer.count(form) for form in forms))
