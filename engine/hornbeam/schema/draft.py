"""A schema in the making, for file formats that repeat, rename or forget to declare things.

The first spelling of a name wins; a relation that is given several times is one relation type over the
union of the given domains and ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType, fold


@dataclass(slots=True)
class _DraftRelation:
    name: str
    description: str
    domain: list[str]  # empty: any
    range: list[str]
    symmetric: bool


class SchemaDraft:
    """Collects types in the order in which they come; `build` checks the whole."""

    def __init__(self) -> None:
        self._entities: dict[str, EntityType] = {}  # by folded name
        self._relations: dict[str, _DraftRelation] = {}
        self._attributes: list[AttributeType] = []

    def find_entity(self, name: str) -> str | None:
        """The declared spelling of `name`, None when it is not declared."""
        entity = self._entities.get(fold(name))
        return entity.name if entity else None

    def add_entity(self, name: str, description: str = "") -> str:
        """Declare an entity type unless it is there already; its spelling in the schema."""
        entity = self._entities.setdefault(fold(name), EntityType(name=name, description=description))
        return entity.name

    def add_relation(
        self,
        name: str,
        domain: Iterable[str],
        range: Iterable[str],
        description: str = "",
        symmetric: bool = False,
    ) -> None:
        """Declare a relation type, or widen the one of that name. Empty domain or range: any."""
        heads, tails = _unique(domain), _unique(range)
        known = self._relations.get(fold(name))
        if known is None:
            self._relations[fold(name)] = _DraftRelation(name, description, heads, tails, symmetric)
            return
        known.domain = _united(known.domain, heads)
        known.range = _united(known.range, tails)
        known.description = known.description or description
        known.symmetric = known.symmetric and symmetric

    def add_attribute(self, name: str) -> None:
        """Declare a text attribute of any entity type."""
        self._attributes.append(AttributeType(name=name))

    def build(self, name: str) -> GraphSchema:
        """The finished schema. Raises SchemaError as `GraphSchema` does."""
        return GraphSchema(
            name=name,
            entity_types=tuple(self._entities.values()),
            relation_types=tuple(
                RelationType(
                    name=r.name,
                    description=r.description,
                    domain=tuple(r.domain),
                    range=tuple(r.range),
                    symmetric=r.symmetric,
                )
                for r in self._relations.values()
            ),
            attribute_types=tuple(self._attributes),
        )


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _united(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """Any type (empty) united with some types is any type."""
    return _unique([*one, *other]) if one and other else []
