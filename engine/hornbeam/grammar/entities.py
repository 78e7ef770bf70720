"""Stage one: `["name","type"],…]}` – a list of typed spans of the chunk.

The prompt ends with `{"entities":[`, so that those tokens are read, not generated.
"""

from __future__ import annotations

from hornbeam.grammar.ebnf import alternatives, bounded_list, literal
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.schema.model import GraphSchema

OPENING = '{"entities":['


def entity_grammar(lexicon: SpanLexicon, schema: GraphSchema, max_entities: int) -> str | None:
    """EBNF of the completion after `OPENING`; None when the chunk has no word to name anything."""
    if not lexicon:
        return None
    types = alternatives(literal(entity_type.name) for entity_type in schema.entity_types)
    rules = [
        f'root ::= {bounded_list("item", max_entities)} "]}}"',
        r'item ::= "[\"" span "\",\"" type "\"]"',
        f"type ::= {types}",
        *lexicon.rules("span"),
    ]
    return "\n".join(rules)
