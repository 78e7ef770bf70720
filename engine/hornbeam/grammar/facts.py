"""One call: which ends do the facts of these relation types have? A line each, the value before its owner.

    birth date: July 10, 1989 | Akeem Ayers
    debut team: Tennessee Titans | Akeem Ayers

The relation types are given, in this order; only the ends are chosen, out of spans that stand in the text.
The tail comes first: what it is narrows down whose it is. A model that was trained to judge closes a line
with whether the text states it:

    birth date: July 10, 1989 | Akeem Ayers | yes
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.grammar.reading import SpanConfidence
from hornbeam.llm.protocol import Completion

_Item = TypeVar("_Item")

COLON, _BAR = ": ", " | "
_YES, _NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class FactSlot:
    """A relation type and the spans that may be its ends: tail → its possible heads, none of them empty."""

    relation: str
    heads_of: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class ReadFact:
    slot: int
    head: str
    tail: str
    head_logprob: float  # log-probability of the choice among the ends that the grammar allowed
    tail_logprob: float
    stated: float | None = None  # P(yes), where the line was judged


def line(relation: str, head: str, tail: str, stated: bool | None = None) -> str:
    """A fact as it is written, also in examples.

    Args:
        stated: the judgement that closes it; None: none.
    """
    judgement = "" if stated is None else f"{_BAR}{_YES if stated else _NO}"
    return f"{relation}{COLON}{tail}{_BAR}{head}{judgement}"


def fact_grammar(slots: Sequence[FactSlot], *, judged: bool = False) -> str:
    """EBNF of one line for each slot. Every alternative is a literal: linear in the pairs of ends.

    Args:
        judged: a line ends with yes or no.

    Raises:
        ValueError: no slot, or one without a pair of ends.
    """
    if not slots:
        raise ValueError("a grammar of facts needs at least one relation type")
    rules = ["root ::= " + " ".join(f"fact_{number}" for number in range(len(slots)))]
    closing = (
        f"({alternatives(literal(_BAR + word + chr(10)) for word in (_YES, _NO))})"
        if judged
        else literal(chr(10))
    )
    heads: dict[tuple[str, ...], str] = {}  # ends that may be the same rule
    for number, slot in enumerate(slots):
        bodies = []
        for tail, owners in slot.heads_of.items():
            key = tuple(owners)
            if key not in heads:
                heads[key] = f"heads_{len(heads)}"
                rules.append(f"{heads[key]} ::= {alternatives(literal(owner) for owner in owners)}")
            bodies.append(f"{literal(tail + _BAR)} {heads[key]}")
        rules.append(f"fact_{number} ::= {literal(slot.relation + COLON)} ({alternatives(bodies)}) {closing}")
    return "\n".join(rules)


def halved_slots(slots: Sequence[FactSlot]) -> list[tuple[FactSlot, ...]]:
    """Two lots that offer together what these slots do: halves of the types, of the tails of a single type,
    of the heads of a single tail. None of a single pair."""
    if len(slots) > 1:
        return [tuple(half) for half in _halves(slots)]
    ((relation, heads_of),) = ((slot.relation, slot.heads_of) for slot in slots)
    if len(heads_of) > 1:
        return [(FactSlot(relation, dict(half)),) for half in _halves(list(heads_of.items()))]
    ((tail, heads),) = heads_of.items()
    return [(FactSlot(relation, {tail: half}),) for half in _halves(heads)] if len(heads) > 1 else []


def _halves(items: Sequence[_Item]) -> tuple[Sequence[_Item], Sequence[_Item]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


def read_facts(completion: Completion, slots: Sequence[FactSlot], *, judged: bool = False) -> list[ReadFact]:
    """The complete lines of a completion. What the grammar guarantees is checked all the same: a server
    without one may have answered."""
    confidence = SpanConfidence(completion.text, completion.tokens)
    facts = []
    start = 0
    complete_lines = completion.text.split("\n")[:-1]
    for number, (written, slot) in enumerate(zip(complete_lines, slots, strict=False)):
        opening = slot.relation + COLON
        named, stated = written, None
        if judged:
            named, _, judgement = written.rpartition(_BAR)
            sure = math.exp(confidence.total(start + len(named), start + len(written)))
            stated = sure if judgement == _YES else 1 - sure
        tail, bar, head = named.removeprefix(opening).partition(_BAR)
        if written.startswith(opening) and bar and head in slot.heads_of.get(tail, ()):
            middle = start + len(opening) + len(tail) + len(_BAR)
            facts.append(
                ReadFact(
                    number,
                    head,
                    tail,
                    confidence.total(middle, start + len(named)),
                    confidence.total(start + len(opening), middle),
                    stated,
                )
            )
        start += len(written) + 1
    return facts
