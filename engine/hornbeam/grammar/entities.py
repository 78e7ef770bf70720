"""Stage one: `["name","type"],…]}` – typed spans of the chunk, in reading order.

Order is part of the grammar: after an entity of one clause only that clause and later ones are open, and a
clause yields a few entities at most. A small model left free repeats one name until its limit (measured on
the embedded model: 160 of 192 items); here every path through the grammar ends, whatever the model prefers.

The prompt ends with `OPENING`, so that those tokens are read, not generated.
"""

from __future__ import annotations

from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.schema.model import GraphSchema

OPENING = '{"entities":['
CLOSING = "]}"


def entity_grammar(lexicon: SpanLexicon, schema: GraphSchema, max_per_clause: int) -> str | None:
    """EBNF of the completion after `OPENING`; None when the chunk has no word to name anything.

    Linear in the chunk. With k the clause and j the items that it has left, `open_k_j` begins an item there
    or moves on to the next clause, `after_k_j` closes the list or goes on.
    """
    clauses = lexicon.clauses()
    if not clauses:
        return None
    starts, span_rules = lexicon.rules("w")
    # A clause of two words names one thing, one of three or four two.
    quota = [min(max_per_clause, (len(clause) + 1) // 2) for clause in clauses]
    rules = [
        f'root ::= {literal(CLOSING)} | "[" open_0_{quota[0]}',
        f"type ::= {alternatives(literal(entity_type.name) for entity_type in schema.entity_types)}",
    ]
    for k, clause in enumerate(clauses):
        spans = alternatives(starts[index] for index in clause if index in starts)
        rules.append(rf'item_{k} ::= "\"" ({spans}) "\",\"" type "\"]"')
        following = f"open_{k + 1}_{quota[k + 1]}" if k + 1 < len(clauses) else ""
        for left in range(quota[k], 0, -1):
            skip = f" | {following}" if following else ""
            rules.append(f"open_{k}_{left} ::= item_{k} after_{k}_{left - 1}{skip}")
            onward = f"open_{k}_{left - 1}" if left > 1 else following
            close = literal(CLOSING)
            rules.append(f"after_{k}_{left - 1} ::= {close}" + (f' | ",[" {onward}' if onward else ""))
    return "\n".join(rules + span_rules)
