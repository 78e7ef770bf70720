"""Stage two: relations and attributes over the entities that stage one found in the chunk.

    ["Marie Curie","born_in","Warsaw"],…],"attributes":[["Marie Curie","birth_date","1867"],…]}

Heads and tails are the entities whose type fits the domain and the range, so closure and typing hold by
construction; a type that nothing fits is not in the grammar at all. Heads come in the entities' order, each
with a few facts at most, so that the list ends whatever the model prefers.
The prompt ends with `OPENING`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from hornbeam.grammar.ebnf import alternatives, items_in_order, json_inner, literal
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
    relations_per_head: int,
    attributes_per_entity: int,
    max_relations: int | None = None,
    max_attributes: int | None = None,
) -> str | None:
    """EBNF of the completion after `OPENING`; None when no relation and no attribute is possible."""
    facts = _FactRules(entities, lexicon, schema)
    relations = _ordered_list("relation", entities, facts.relations_of, relations_per_head, max_relations)
    attributes = _ordered_list(
        "attribute", entities, facts.attributes_of, attributes_per_entity, max_attributes
    )
    if not relations and not attributes:
        return None
    root = f"root ::= {'relation_list' if relations else ''} {literal(BETWEEN)} "
    root += f"{'attribute_list' if attributes else ''} {literal(CLOSING)}"
    return "\n".join([root, *relations, *attributes, *facts.rules])


def _ordered_list(
    kind: str,
    entities: Sequence[NamedEntity],
    rest_of: Callable[[NamedEntity], str],
    per_entity: int,
    maximum: int | None,
) -> list[str]:
    """Rules of `{kind}_list`: facts by entity, in order, at most `per_entity` of each; [] if none can be.

    `rest_of` names the rule of what may follow an entity, or "". When all together could be more than
    `maximum`, each entity may have fewer; when even one each is too many, the last have none.
    """
    able = [(entity, rest) for entity in entities if (rest := rest_of(entity))] if per_entity else []
    if not able:
        return []
    if maximum is not None:
        able = able[:maximum]
        per_entity = min(per_entity, max(1, maximum // len(able)))
    first, order = items_in_order(kind, [per_entity] * len(able), '""')
    items = [
        f'{kind}_{k} ::= {literal(_quoted(entity.name) + ",")} {rest} "]"'
        for k, (entity, rest) in enumerate(able)
    ]
    return [f'{kind}_list ::= "" | {first}', *items, *order]


class _FactRules:
    """The rules of what may be said of an entity, made as they are asked for, shared where they are equal."""

    def __init__(self, entities: Sequence[NamedEntity], lexicon: SpanLexicon, schema: GraphSchema) -> None:
        self._lexicon = lexicon
        self._schema = schema
        # relation type -> types of its heads, names of the entities that may be its tail
        self._sides = {
            relation.name: (
                frozenset(schema.head_types(relation.name)),
                _names_of_types(entities, schema.tail_types(relation.name)),
            )
            for relation in schema.relation_types
        }
        self._named: dict[tuple[str, ...], str] = {}
        self.rules: list[str] = []

    def relations_of(self, head: NamedEntity) -> str:
        """`"type","tail"` for every relation type that the head can have to another entity; "" for none."""
        able = tuple(
            name
            for name, (head_types, tails) in self._sides.items()
            if head.type in head_types and len(tails) > (head.name in tails)
        )
        return self._rule(
            ("relations", *able),
            lambda: [f"{literal(_quoted(name) + ',')} {self._tails(name)}" for name in able],
        )

    def attributes_of(self, owner: NamedEntity) -> str:
        """`"type","value"` for every attribute type of which a value stands in the chunk; "" for none."""
        return self._rule(("attributes", owner.type), lambda: self._attribute_bodies(owner.type))

    def _attribute_bodies(self, owner_type: str) -> list[str]:
        bodies = []
        for attribute in self._schema.attributes_of(owner_type):
            value = self._rule(("value", attribute.kind), partial(self._values, attribute.kind))
            if value:
                name = literal(_quoted(attribute.name) + ',"')
                bodies.append(f"{name} {value}")
        return bodies

    def _values(self, kind: str) -> list[str]:
        if kind == "text":
            starts, rules = self._lexicon.rules("w")
            self.rules += rules
            return list(starts.values())
        return [literal(f'{json_inner(value)}"') for value in value_spans(self._lexicon.text, kind)]

    def _tails(self, relation: str) -> str:
        tails = self._sides[relation][1]
        return self._rule(("tails", *tails), lambda: [literal(_quoted(name)) for name in tails])

    def _rule(self, key: tuple[str, ...], bodies_of: Callable[[], list[str]]) -> str:
        """Name of the rule for `key`, or "" where it has no alternative."""
        if key not in self._named:
            bodies = bodies_of()
            self._named[key] = f"{key[0]}_{len(self._named)}" if bodies else ""
            if bodies:
                self.rules.append(f"{self._named[key]} ::= {alternatives(bodies)}")
        return self._named[key]


def _names_of_types(entities: Sequence[NamedEntity], types: Collection[str]) -> dict[str, None]:
    """An ordered set of names."""
    return dict.fromkeys(entity.name for entity in entities if entity.type in types)


def _quoted(name: str) -> str:
    return f'"{json_inner(name)}"'
