"""The types that a graph uses, and the schema that follows from them: for graphs that come without one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from hornbeam.schema.model import (
    MAX_NAME_LENGTH,
    AttributeType,
    EntityType,
    GraphSchema,
    RelationType,
    fold,
)


class Vocabulary(BaseModel):
    """What some facts use, each list sorted and without repetitions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entity_types: tuple[str, ...] = ()
    relations: tuple[tuple[str, str, str], ...] = ()  # head type, relation type, tail type
    attributes: tuple[tuple[str, str], ...] = ()  # entity type, attribute type


class Spelling:
    """One spelling for type names that a schema could not tell apart: the first that was met.

    Args:
        known: names that are spelled already.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._first: dict[str, str] = {}
        self._of: dict[str, str] = {}
        for name in known:
            self.of(name)

    def of(self, name: str) -> str:
        """`name` as a schema can hold it; empty if nothing of it can stand there."""
        spelled = self._of.get(name)
        if spelled is None:
            usable = usable_name(name)
            spelled = self._of[name] = self._first.setdefault(fold(usable), usable)
        return spelled


def usable_name(name: str) -> str:
    """Without what the name of a type may not have: quotes, backslashes, control characters, great length."""
    plain = "".join(
        " " if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") else character
        for character in name
        if character not in "\"'\\"
    )
    return " ".join(plain.split())[:MAX_NAME_LENGTH].rstrip()


def schema_of(name: str, used: Iterable[Vocabulary], base: GraphSchema | None = None) -> GraphSchema:
    """`base`, widened by all that is used. The same for any order of the vocabularies.

    A relation type's domain is every type that is head of one of its uses, its range every tail's.

    Raises:
        SchemaError: two names differ only in case.
    """
    types: set[str] = set()
    relations: dict[str, tuple[set[str], set[str]]] = {}
    attributes: dict[str, set[str]] = {}
    for vocabulary in used:
        types.update(vocabulary.entity_types)
        for head, relation, tail in vocabulary.relations:
            heads, tails = relations.setdefault(relation, (set(), set()))
            heads.add(head)
            tails.add(tail)
        for owner, attribute in vocabulary.attributes:
            attributes.setdefault(attribute, set()).add(owner)
    if base is None:
        base = GraphSchema(
            name=name, entity_types=tuple(EntityType(name=t) for t in sorted(types) or ["entity"])
        )
    known = {entity.name for entity in base.entity_types}
    new_types = tuple(EntityType(name=t) for t in sorted(types - known))
    return GraphSchema(
        name=base.name,
        version=base.version,
        entity_types=base.entity_types + new_types,
        relation_types=_widened_relations(base, relations),
        attribute_types=_widened_attributes(base, attributes),
    )


def _widened_relations(
    base: GraphSchema, used: dict[str, tuple[set[str], set[str]]]
) -> tuple[RelationType, ...]:
    widened = []
    for relation in base.relation_types:
        heads, tails = used.get(relation.name, (set[str](), set[str]()))
        sides = {"domain": _united(relation.domain, heads), "range": _united(relation.range, tails)}
        widened.append(relation.model_copy(update=sides))
    known = {relation.name for relation in base.relation_types}
    new = (
        RelationType(name=name, domain=tuple(sorted(heads)), range=tuple(sorted(tails)))
        for name, (heads, tails) in sorted(used.items())
        if name not in known
    )
    return (*widened, *new)


def _widened_attributes(base: GraphSchema, used: dict[str, set[str]]) -> tuple[AttributeType, ...]:
    widened = [
        attribute.model_copy(update={"domain": _united(attribute.domain, used.get(attribute.name, set()))})
        for attribute in base.attribute_types
    ]
    known = {attribute.name for attribute in base.attribute_types}
    new = (
        AttributeType(name=name, domain=tuple(sorted(owners)))
        for name, owners in sorted(used.items())
        if name not in known
    )
    return (*widened, *new)


def _united(declared: tuple[str, ...], used: set[str]) -> tuple[str, ...]:
    """Any type (empty) stays any type."""
    return (*declared, *sorted(used - set(declared))) if declared else ()
