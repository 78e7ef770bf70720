"""Stage two: relations and attributes over the entities that stage one found in the chunk.

    ["Marie Curie","born_in","Warsaw"],…],"attributes":[["Marie Curie","birth_date","1867"],…]}

Heads and tails are enumerations of the entities whose type fits the domain and the range, so closure and
typing hold by construction. A type that nothing fits is not in the grammar at all.
The prompt ends with `{"relations":[`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hornbeam.grammar.ebnf import alternatives, bounded_list, json_inner, literal
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.grammar.values import value_spans
from hornbeam.schema.model import GraphSchema

OPENING = '{"relations":['
BETWEEN = '],"attributes":['
CLOSING = "]}"


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity as stage one wrote it: a span's written form and a type of the schema."""

    name: str
    type: str


def relation_grammar(
    entities: Sequence[NamedEntity],
    lexicon: SpanLexicon,
    schema: GraphSchema,
    *,
    max_relations: int,
    max_attributes: int,
) -> str | None:
    """EBNF of the completion after `OPENING`; None when no relation and no attribute is possible."""
    sets = _TypeSets(entities)
    relations = []
    for relation in schema.relation_types:
        heads = sets.rule(schema.head_types(relation.name))
        tails = sets.rule(schema.tail_types(relation.name))
        if heads and tails and sets.connects(schema.head_types(relation.name), schema.tail_types(relation.name)):
            relations.append(f'{heads} {literal(f",{_quoted(relation.name)},")} {tails}')
    every = tuple(entity_type.name for entity_type in schema.entity_types)
    attributes, value_rules = [], []
    offered: dict[str, bool] = {}
    for attribute in schema.attribute_types:
        owners = sets.rule(attribute.domain or every)
        if not owners:
            continue
        if attribute.kind not in offered:
            rules = _value_rules(attribute.kind, lexicon)
            offered[attribute.kind] = bool(rules)
            value_rules += rules
        if offered[attribute.kind]:
            name = literal(f',{_quoted(attribute.name)},"')
            attributes.append(f'{owners} {name} value_{attribute.kind} "\\""')
    max_relations = max_relations if relations else 0
    max_attributes = max_attributes if attributes else 0
    if not max_relations and not max_attributes:
        return None
    root = (
        f"root ::= {bounded_list('relation', max_relations)} {literal(BETWEEN)} "
        f"{bounded_list('attribute', max_attributes)} {literal(CLOSING)}"
    )
    rules = [root]
    if max_relations:
        rules.append(f'relation ::= "[" ({alternatives(relations)}) "]"')
    if max_attributes:
        rules.append(f'attribute ::= "[" ({alternatives(attributes)}) "]"')
        rules += value_rules
    return "\n".join([*rules, *sets.rules])


class _TypeSets:
    """One rule per distinct set of types: the quoted names of the entities that have one of them."""

    def __init__(self, entities: Sequence[NamedEntity]) -> None:
        self._entities = entities
        self._names: dict[tuple[str, ...], str] = {}
        self.rules: list[str] = []

    def rule(self, types: tuple[str, ...]) -> str:
        """The rule's name, or "" when no entity has one of the types."""
        present = tuple(sorted({e.type for e in self._entities if e.type in types}))
        if not present:
            return ""
        if present not in self._names:
            self._names[present] = f"entity{len(self._names)}"
            names = alternatives(literal(_quoted(e.name)) for e in self._entities if e.type in present)
            self.rules.append(f"{self._names[present]} ::= {names}")
        return self._names[present]

    def connects(self, head_types: tuple[str, ...], tail_types: tuple[str, ...]) -> bool:
        """Is there a pair of two different entities? A relation of an entity to itself is none."""
        heads = {e for e in self._entities if e.type in head_types}
        tails = {e for e in self._entities if e.type in tail_types}
        return bool(heads) and bool(tails) and len(heads | tails) > 1


def _value_rules(kind: str, lexicon: SpanLexicon) -> list[str]:
    if kind == "text":
        return lexicon.rules("value_text", prefix="v") if lexicon else []
    values = value_spans(lexicon.text, kind)
    if not values:
        return []
    return [f"value_{kind} ::= {alternatives(literal(json_inner(value)) for value in values)}"]


def _quoted(name: str) -> str:
    return f'"{json_inner(name)}"'
