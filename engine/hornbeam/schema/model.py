"""The schema of a graph: entity types, relation types with domain and range, attribute types.

Every `GraphSchema` that exists is consistent; what is wrong is a `SchemaError` of one line at construction.
An empty domain or range means any entity type of the schema.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hornbeam.errors import SchemaError

MAX_NAME_LENGTH = 64
ValueKind = Literal["text", "number", "date"]

# Names stand in grammars and in JSON literals, where these would need escapes that a tokenizer splits badly.
_FORBIDDEN_CHARACTERS = frozenset("\"'\\")
# Control characters, lone surrogates, line and paragraph separators.
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


def fold(name: str) -> str:
    """The form in which two names of one kind may not be equal: Unicode NFKC, case folded."""
    return unicodedata.normalize("NFKC", name).casefold()


class _NamedType(BaseModel):
    """What the three kinds of type share: a checked name and a description of one line."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind_of_type: ClassVar[str] = "type"

    name: str
    description: str = ""

    @field_validator("name")
    @classmethod
    def _name_is_usable(cls, name: str) -> str:
        if not name.strip():
            raise SchemaError(f"{cls.kind_of_type}: the name is empty")
        if name != name.strip():
            raise SchemaError(f"{cls.kind_of_type} {name!r}: the name begins or ends with a space")
        if len(name) > MAX_NAME_LENGTH:
            raise SchemaError(
                f"{cls.kind_of_type} {name[:20]!r}…: the name has {len(name)} characters; "
                f"at most {MAX_NAME_LENGTH} are allowed"
            )
        for character in name:
            if character in _FORBIDDEN_CHARACTERS or unicodedata.category(character) in _FORBIDDEN_CATEGORIES:
                raise SchemaError(
                    f"{cls.kind_of_type} {name!r}: {character!r} is not allowed in a name "
                    "(no line breaks, quotes, backslashes or control characters)"
                )
        return name

    @field_validator("description")
    @classmethod
    def _description_is_one_line(cls, description: str) -> str:
        if any(unicodedata.category(character) in _FORBIDDEN_CATEGORIES for character in description):
            raise SchemaError(
                f"{cls.kind_of_type}: the description {description[:40]!r} has a line break "
                "or control character"
            )
        return description


class EntityType(_NamedType):
    kind_of_type: ClassVar[str] = "entity type"


class RelationType(_NamedType):
    kind_of_type: ClassVar[str] = "relation type"

    domain: tuple[str, ...] = ()  # entity types of the head; empty: any
    range: tuple[str, ...] = ()  # entity types of the tail; empty: any
    inverse: str | None = None  # the relation type that says the same from tail to head
    symmetric: bool = False  # holds from tail to head too


class AttributeType(_NamedType):
    kind_of_type: ClassVar[str] = "attribute type"

    domain: tuple[str, ...] = ()  # entity types that have it; empty: any
    kind: ValueKind = "text"


_AnyType = TypeVar("_AnyType", EntityType, RelationType, AttributeType)


class GraphSchema(BaseModel):
    """S = ⟨S_e, S_r, S_attr⟩ of DESIGN §5; immutable, a change is a new version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: int = Field(1, ge=1)
    entity_types: tuple[EntityType, ...]
    relation_types: tuple[RelationType, ...] = ()
    attribute_types: tuple[AttributeType, ...] = ()
    parent: str | None = None  # hash of the version that this one was made from
    changes: tuple[str, ...] = ()  # what was done to it since, a line each

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if not self.name.strip() or any(unicodedata.category(c) in _FORBIDDEN_CATEGORIES for c in self.name):
            raise SchemaError(f"the schema's name must be one line of text, not {self.name!r}")
        if not self.entity_types:
            raise SchemaError(f"schema '{self.name}' declares no entity type; at least one is needed")
        for types in (self.entity_types, self.relation_types, self.attribute_types):
            _refuse_duplicates(types)
        for relation in self.relation_types:
            self._check_types(relation, "domain", relation.domain)
            self._check_types(relation, "range", relation.range)
            self._check_direction(relation)
        for attribute in self.attribute_types:
            self._check_types(attribute, "domain", attribute.domain)
        return self

    def _check_types(self, owner: _NamedType, side: str, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._entities:
                raise SchemaError(
                    f"{owner.kind_of_type} '{owner.name}': its {side} names '{name}', "
                    f"which is no entity type of the schema{_nearest(name, self._entities)}"
                )
        if len(set(names)) < len(names):
            raise SchemaError(f"{owner.kind_of_type} '{owner.name}': its {side} names a type twice")

    def _check_direction(self, relation: RelationType) -> None:
        """Read backwards, a symmetric relation and an inverse must stay within domain and range."""
        where = f"relation type '{relation.name}'"
        if relation.symmetric and set(relation.domain) != set(relation.range):
            raise SchemaError(f"{where}: it is symmetric, so its domain and range must be the same types")
        if relation.inverse is None:
            return
        if relation.inverse not in self._relations:
            hint = _nearest(relation.inverse, self._relations)
            raise SchemaError(
                f"{where}: its inverse '{relation.inverse}' is no relation type of the schema{hint}"
            )
        other = self._relations[relation.inverse]
        if other.inverse not in (None, relation.name):
            raise SchemaError(f"{where}: its inverse '{other.name}' names another inverse, '{other.inverse}'")
        if set(other.domain) != set(relation.range) or set(other.range) != set(relation.domain):
            raise SchemaError(
                f"{where}: its inverse '{other.name}' must have its range as domain and vice versa"
            )

    # Lookups. The mappings are made once per schema: an audit asks `allows` for every relation of a graph.

    @cached_property
    def _entities(self) -> dict[str, EntityType]:
        return {entity.name: entity for entity in self.entity_types}

    @cached_property
    def _relations(self) -> dict[str, RelationType]:
        return {relation.name: relation for relation in self.relation_types}

    @cached_property
    def _attributes(self) -> dict[str, AttributeType]:
        return {attribute.name: attribute for attribute in self.attribute_types}

    @cached_property
    def _sides(self) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """relation name → head types, tail types, "any" written out."""
        every = frozenset(self._entities)
        return {
            relation.name: (frozenset(relation.domain) or every, frozenset(relation.range) or every)
            for relation in self.relation_types
        }

    def entity_type(self, name: str) -> EntityType:
        """Raises SchemaError, with the nearest known name, when there is none."""
        return _lookup(self._entities, name, EntityType)

    def relation_type(self, name: str) -> RelationType:
        """Raises SchemaError, with the nearest known name, when there is none."""
        return _lookup(self._relations, name, RelationType)

    def attribute_type(self, name: str) -> AttributeType:
        """Raises SchemaError, with the nearest known name, when there is none."""
        return _lookup(self._attributes, name, AttributeType)

    def head_types(self, relation: str) -> tuple[str, ...]:
        """The entity types that may be head of `relation`, in the schema's order, "any" written out."""
        self.relation_type(relation)
        return tuple(name for name in self._entities if name in self._sides[relation][0])

    def tail_types(self, relation: str) -> tuple[str, ...]:
        """The entity types that may be tail of `relation`, in the schema's order, "any" written out."""
        self.relation_type(relation)
        return tuple(name for name in self._entities if name in self._sides[relation][1])

    def allows(self, relation: str, head_type: str, tail_type: str) -> bool:
        """Whether the typed triple is in the schema; False for a name that the schema does not have."""
        sides = self._sides.get(relation)
        return sides is not None and head_type in sides[0] and tail_type in sides[1]

    def relations_between(self, head_type: str, tail_type: str) -> tuple[RelationType, ...]:
        """The relation types that may lead from `head_type` to `tail_type`, in the schema's order."""
        return tuple(r for r in self.relation_types if self.allows(r.name, head_type, tail_type))

    def attributes_of(self, entity_type: str) -> tuple[AttributeType, ...]:
        """The attribute types that an entity of this type may have, in the schema's order."""
        if entity_type not in self._entities:
            return ()
        return tuple(a for a in self.attribute_types if not a.domain or entity_type in a.domain)

    # The stored form.

    def to_dict(self) -> dict[str, Any]:
        """The `schema.json` form of DESIGN §8; what says nothing (`inverse`, `parent`, …) is left out."""
        history = {} if self.parent is None else {"parent": self.parent, "changes": list(self.changes)}
        return self._content() | history

    def _content(self) -> dict[str, Any]:
        """What a graph depends on: not where the schema came from."""
        return {
            "name": self.name,
            "version": self.version,
            "entity_types": [{"name": e.name, "description": e.description} for e in self.entity_types],
            "relation_types": [
                {
                    "name": r.name,
                    "domain": list(r.domain),
                    "range": list(r.range),
                    "description": r.description,
                }
                | ({"inverse": r.inverse} if r.inverse is not None else {})
                | ({"symmetric": True} if r.symmetric else {})
                for r in self.relation_types
            ],
            "attribute_types": [
                {"name": a.name, "domain": list(a.domain), "kind": a.kind}
                | ({"description": a.description} if a.description else {})
                for a in self.attribute_types
            ],
        }

    def to_json(self) -> str:
        """`to_dict` as the text of a `schema.json` file; `read_schema` gives the same schema back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"

    def hash(self) -> str:
        """SHA-256 (64 hex digits) of the canonical JSON.

        The order of keys in a file does not matter, nor does the schema's history. The order of types does:
        it is their order in prompts, so another order may give another graph.
        """
        canonical = json.dumps(self._content(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _refuse_duplicates(types: Iterable[_NamedType]) -> None:
    seen: dict[str, str] = {}
    for item in types:
        key = fold(item.name)
        if key in seen:
            same = seen[key]
            detail = "is declared twice" if same == item.name else f"differs only in case from '{same}'"
            raise SchemaError(f"{item.kind_of_type} '{item.name}' {detail}")
        seen[key] = item.name


def _lookup(known: dict[str, _AnyType], name: str, kind: type[_AnyType]) -> _AnyType:
    if name not in known:
        raise SchemaError(f"no {kind.kind_of_type} '{name}' in the schema{_nearest(name, known)}")
    return known[name]


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
