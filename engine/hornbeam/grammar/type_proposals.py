"""Answers that propose types, about the things of one chunk.

    ["Corvane Tidal Works","works"],…]}                       entity types: a span and a name
    ["Ilsabet Corvane","built","Selkie turbine"],…],"attribute_types":[["Selkie turbine","weight","40 t"],…]}

Spans, endpoints and values are as in extraction; the name in the middle is free within `type_names`. Lists
are short and in reading order, so every answer ends, whatever the model prefers. The prompts end with
`ENTITY_OPENING` and `FACT_OPENING`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from hornbeam.grammar.ebnf import alternatives, items_in_order, json_inner, literal
from hornbeam.grammar.entities import stretches
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.grammar.type_names import name_rules
from hornbeam.grammar.values import value_spans

ENTITY_OPENING = '{"entity_types":['
FACT_OPENING = '{"relation_types":['
FACT_BETWEEN = '],"attribute_types":['
CLOSING = "]}"
_VALUE_KINDS = ("number", "date")


def entity_type_grammar(
    lexicon: SpanLexicon, *, max_items: int, taken: Collection[str], any_words: bool
) -> str | None:
    """EBNF of the completion after `ENTITY_OPENING`; None when the chunk offers no span or no name.

    Args:
        max_items: types proposed at most.
        taken: names of types that exist, folded.
        any_words: see `type_names.name_rules`.
    """
    # One to a stretch: what a chunk holds is spread over it.
    places = stretches(lexicon.clauses(), 1, max_items)
    names = name_rules(lexicon, "name", taken=taken, any_words=any_words)
    if not places or not names:
        return None
    starts, span_rules = lexicon.rules("w")
    first, order = items_in_order("entity", [quota for _, quota in places], literal(CLOSING))
    rules = [f"root ::= {literal(CLOSING)} | {first}", names]
    for k, (words, _) in enumerate(places):
        spans = alternatives(starts[index] for index in words if index in starts)
        rules.append(rf'entity_{k} ::= "\"" ({spans}) ",\"" name "\"]"')
    return "\n".join(rules + order + span_rules)


def fact_type_grammar(
    entities: Sequence[str], lexicon: SpanLexicon, *, max_items: int, any_words: bool
) -> str | None:
    """EBNF of the completion after `FACT_OPENING`; None when no entity is given or the chunk offers no name.

    Args:
        entities: names of entities of the chunk, in reading order, each once.
        max_items: relation types proposed at most, and attribute types.
    """
    names = name_rules(lexicon, "name", any_words=any_words)
    if not entities or not names:
        return None
    starts, span_rules = lexicon.rules("v")
    values = [json_inner(value) for kind in _VALUE_KINDS for value in value_spans(lexicon.text, kind)]
    value = alternatives([*(literal(text + '"') for text in values), *starts.values()])
    rules = [names, f"value ::= {value}", *span_rules]
    relations = attributes = ""
    groups = _groups(len(entities), max_items)
    if len(entities) > 1:
        relations, order = items_in_order("relation", [1] * len(groups), literal(FACT_BETWEEN) + " after")
        rules += order
        for k, group in enumerate(groups):
            bodies = [
                f"{literal(_quoted(entities[head]) + ',')} {_name()} {_others(entities, head)}"
                for head in group
            ]
            rules.append(f'relation_{k} ::= ({alternatives(bodies)}) "]"')
    attributes, order = items_in_order("attribute", [1] * len(groups), literal(CLOSING))
    rules += order
    for k, group in enumerate(groups):
        owners = alternatives(literal(_quoted(entities[owner]) + ",") for owner in group)
        rules.append(rf'attribute_{k} ::= ({owners}) {_name()} "\"" value "]"')
    rules.append(f"after ::= {literal(CLOSING)} | {attributes}")
    nothing = f"{literal(FACT_BETWEEN)} after"
    root = f"root ::= {nothing}" + (f" | {relations}" if relations else "")
    return "\n".join([root, *rules])


def _name() -> str:
    return r'"\"" name "\","'


def _others(entities: Sequence[str], head: int) -> str:
    tails = (literal(_quoted(name)) for place, name in enumerate(entities) if place != head)
    return f"({alternatives(tails)})"


def _groups(count: int, most: int) -> list[range]:
    """`count` places in at most `most` runs of like length."""
    runs = min(count, most)
    bounds = [count * number // runs for number in range(runs + 1)]
    return [range(first, last) for first, last in pairwise(bounds)]


def _quoted(name: str) -> str:
    return f'"{json_inner(name)}"'
