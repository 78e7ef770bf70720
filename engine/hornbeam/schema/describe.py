"""A schema as short lines of text for a prompt. Every word costs prompt tokens on every chunk."""

from __future__ import annotations

from collections.abc import Collection

from hornbeam.schema.model import GraphSchema

_ANY = "any"


def entity_lines(schema: GraphSchema) -> list[str]:
    """One line per entity type: `person: a human being`."""
    return [_described(entity.name, entity.description) for entity in schema.entity_types]


def relation_lines(schema: GraphSchema, present_types: Collection[str] | None = None) -> list[str]:
    """One line per relation type: `works_for(person, organization): is employed by`.

    Args:
        schema: the schema.
        present_types: entity types that occur; then only relations that these can have, and in each only
            the types that occur. None: all.
    """
    lines = []
    for relation in schema.relation_types:
        head = _alternatives(relation.domain, present_types)
        tail = _alternatives(relation.range, present_types)
        if head and tail:
            lines.append(_described(f"{relation.name}({head}, {tail})", relation.description))
    return lines


def attribute_lines(schema: GraphSchema, present_types: Collection[str] | None = None) -> list[str]:
    """One line per attribute type: `birth_date(person) date: when the person was born`.

    `present_types` as in `relation_lines`.
    """
    lines = []
    for attribute in schema.attribute_types:
        if owner := _alternatives(attribute.domain, present_types):
            lines.append(_described(f"{attribute.name}({owner}) {attribute.kind}", attribute.description))
    return lines


def _alternatives(types: Collection[str], present: Collection[str] | None) -> str:
    """`person|place`, "any" for no restriction, "" when none of the types occurs."""
    if present is not None:
        if not present:
            return ""
        types_shown = [name for name in types if name in present]
        return "|".join(types_shown) if types else _ANY
    return "|".join(types) or _ANY


def _described(head: str, description: str) -> str:
    return f"{head}: {description}" if description else head
