"""Stage one: `["name","type"],…]}` – typed spans of the chunk, in reading order; where descriptions are asked
for, `["name","type","description"]` as well, with another span of the same place.

Order is part of the grammar: after an entity of one clause only that clause and later ones are open, and a
clause yields a few entities at most. A small model left free repeats one name until its limit (measured on
the embedded model: 160 of 192 items); here every path through the grammar ends, whatever the model prefers.

The prompt ends with `OPENING`, so that those tokens are read, not generated.
"""

from __future__ import annotations

from itertools import pairwise

from hornbeam.grammar.ebnf import alternatives, items_in_order, literal
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.schema.model import GraphSchema

OPENING = '{"entities":['
CLOSING = "]}"


def entity_grammar(
    lexicon: SpanLexicon,
    schema: GraphSchema,
    max_per_clause: int,
    max_entities: int | None = None,
    words: range | None = None,
    described: SpanLexicon | None = None,
) -> str | None:
    """EBNF of the completion after `OPENING`; None when the chunk has no word to name anything.

    Linear in the chunk. The places of the list are stretches of clauses.

    Args:
        max_per_clause: entities of one clause.
        max_entities: entities of the chunk; clauses are taken together until their quotas keep to it. None:
            as many as the clauses allow.
        words: where names may begin; None: anywhere. The grammars of several ranges that make up the text
            allow together what one of the whole text does.
        described: of the same text: an entity may have one of its spans as a description, one that begins in
            the entity's stretch of clauses or in the next.
    """
    places = stretches(lexicon.clauses(words), max_per_clause, max_entities)
    if not places:
        return None
    starts, span_rules = lexicon.rules("w", words)
    first, order = items_in_order("entity", [quota for _, quota in places], literal(CLOSING))
    rules = [
        f"root ::= {literal(CLOSING)} | {first}",
        f"type ::= {alternatives(literal(entity_type.name) for entity_type in schema.entity_types)}",
    ]
    about, about_rules = described.rules("d") if described is not None else ({}, [])
    for k, (stretch, _) in enumerate(places):
        spans = alternatives(starts[index] for index in stretch if index in starts)
        following = places[min(k + 1, len(places) - 1)][0]
        near = [about[index] for index in range(stretch.start, following.stop) if index in about]
        ending = rf'("\"]" | "\",\"" ({alternatives(near)}) "]")' if near else r'"\"]"'
        rules.append(rf'entity_{k} ::= "\"" ({spans}) ",\"" type {ending}')
    return "\n".join(rules + order + span_rules + about_rules)


def stretches(clauses: list[range], max_per_clause: int, max_entities: int | None) -> list[tuple[range, int]]:
    """Runs of clauses, each with the entities that it may yield; the quotas sum to at most `max_entities`."""
    # A clause of two words names one thing, one of three or four two.
    quotas = [min(max_per_clause, (len(clause) + 1) // 2) for clause in clauses]
    if max_entities is None or sum(quotas) <= max_entities:
        return list(zip(clauses, quotas, strict=True))
    per_stretch = min(max_per_clause, max_entities)
    count = max_entities // per_stretch  # of stretches; equal shares of the clauses
    bounds = [len(clauses) * number // count for number in range(count + 1)]
    return [
        (range(clauses[first].start, clauses[last - 1].stop), per_stretch)
        for first, last in pairwise(bounds)
        if first < last
    ]
