"""Relation and attribute types as one list: what a fact can say, of which ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hornbeam.extract.argument_spans import Kind
from hornbeam.schema.model import GraphSchema, ValueKind
from hornbeam.schema.ontology import literal_kind

_NAMES: tuple[Kind, ...] = ("name", "phrase")
_ANY: tuple[Kind, ...] = ("name", "phrase", "number", "date", "year")
_VALUES: dict[ValueKind, tuple[Kind, ...]] = {
    "number": ("number", "year"),
    "date": ("date", "year"),
    "text": _ANY,
}


@dataclass(frozen=True, slots=True)
class Predicate:
    name: str
    head_types: tuple[str, ...]
    tail_types: tuple[str, ...]  # empty: an attribute, its tail is a value
    tail_kinds: tuple[Kind, ...]

    @property
    def is_attribute(self) -> bool:
        return not self.tail_types


def predicates(schema: GraphSchema) -> dict[str, Predicate]:
    """By name. A relation whose range is a kind of value ("number", "Date") has tails of that kind only."""
    every = [entity_type.name for entity_type in schema.entity_types]
    found = {}
    for relation in schema.relation_types:
        tails = tuple(schema.tail_types(relation.name))
        kinds = _ANY if not relation.range else _tail_kinds(tails)
        found[relation.name] = Predicate(relation.name, tuple(schema.head_types(relation.name)), tails, kinds)
    for attribute in schema.attribute_types:
        heads = tuple(attribute.domain or every)
        found.setdefault(attribute.name, Predicate(attribute.name, heads, (), _VALUES[attribute.kind]))
    return found


def _tail_kinds(types: Sequence[str]) -> tuple[Kind, ...]:
    kinds: dict[Kind, None] = {}
    for name in types:
        literal = literal_kind(name)
        kinds.update(dict.fromkeys(_NAMES if literal is None else _VALUES[literal]))
    return tuple(kinds)
