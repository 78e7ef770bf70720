"""Ontology JSON: concepts and relations with domain and range, as Text2KGBench and OSKGC publish them.

    {"title": …, "concepts": [{"qid", "label"}], "relations": [{"pid", "label", "domain", "range"}]}
    {"title": …, "entity type": [{"id", "label"}], "relation": [{"id", "label", "domain", "range"}],
     "hierarchy": [{"label": "IsA", "domain": subtype, "range": supertype}]}

Domain and range name concepts by id or by label; a list of names, or none, is read too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from hornbeam.errors import SchemaError
from hornbeam.schema.draft import SchemaDraft
from hornbeam.schema.model import GraphSchema, ValueKind

CONCEPT_KEYS = ("concepts", "entity type")
_RELATION_KEYS = ("relations", "relation")
_IDENTIFIER_KEYS = ("qid", "pid", "id")

# Descriptions of literal types, so that a model knows which spans are meant. Keys are case folded.
_LITERAL_TYPES = {
    "string": "any other value in words",
    "number": "a number, with its unit",
    "integer": "a whole number",
    "float": "a decimal number",
    "double": "a decimal number",
    "decimal": "a decimal number",
    "boolean": "yes or no",
    "date": "a calendar date",
    "datetime": "a date with a time",
    "time": "a time of day",
    "year": "a year",
}

_LITERAL_KINDS: dict[str, ValueKind] = {
    "string": "text", "number": "number", "integer": "number", "float": "number", "double": "number",
    "decimal": "number", "date": "date", "datetime": "date", "year": "date",
}  # fmt: skip

# Q7432, P57: the key of a concept that the file forgot to declare. It tells a model nothing.
_OPAQUE_IDENTIFIER = re.compile(r"[A-Z]\d+")

_log = logging.getLogger(__name__)


def literal_kind(name: str) -> ValueKind | None:
    """The kind of value that an undeclared range means ("Date", "number"); None: it names entities."""
    return _LITERAL_KINDS.get(name.casefold())


def is_ontology(data: Mapping[str, Any]) -> bool:
    return any(key in data for key in CONCEPT_KEYS)


def parse_ontology(data: Mapping[str, Any], name: str) -> GraphSchema:
    """The schema of an ontology.

    A domain or range that names something undeclared ("string", "Date") becomes an entity type of its own:
    the values of such relations are spans of the text like any other, and keep their type. An undeclared
    bare identifier ("Q7432") means any type, since no model can know what it names; a warning is logged.

    Args:
        data: the file's JSON object.
        name: of the schema, where the file has no title.

    Raises:
        SchemaError: an item without a label, or a name that no schema may have.
    """
    title = data.get("title")
    reader = _OntologyReader(title.strip() if isinstance(title, str) and title.strip() else name)
    reader.read_concepts(_items(data, CONCEPT_KEYS))
    reader.read_hierarchy(_items(data, ("hierarchy",)))
    reader.read_relations(_items(data, _RELATION_KEYS))
    return reader.draft.build(reader.name)


class _OntologyReader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.draft = SchemaDraft()
        self._label_of: dict[str, str] = {}  # identifier → entity type
        self._subtypes: dict[str, list[str]] = {}  # entity type → its direct subtypes

    def read_concepts(self, concepts: list[dict[str, Any]]) -> None:
        for position, concept in enumerate(concepts):
            label = _label(concept, f"concept {position + 1}")
            declared = self.draft.add_entity(label, _one_line(concept.get("description")))
            for key in _IDENTIFIER_KEYS:
                if isinstance(identifier := concept.get(key), str):
                    self._label_of[identifier.strip()] = declared

    def read_hierarchy(self, links: list[dict[str, Any]]) -> None:
        for link in links:
            for subtype in self._named(link.get("domain"), "hierarchy"):
                for supertype in self._named(link.get("range"), "hierarchy"):
                    self._subtypes.setdefault(supertype, []).append(subtype)

    def read_relations(self, relations: list[dict[str, Any]]) -> None:
        for position, relation in enumerate(relations):
            label = _label(relation, f"relation {position + 1}")
            self.draft.add_relation(
                label,
                domain=self._with_subtypes(self._named(relation.get("domain"), label)),
                range=self._with_subtypes(self._named(relation.get("range"), label)),
                description=_one_line(relation.get("description")),
            )

    def _named(self, value: Any, where: str) -> list[str]:
        """The entity types that a domain or range names; empty: any."""
        names = [value] if isinstance(value, str) else value or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise SchemaError(f"'{where}': a domain or range is a name or a list of names, not {value!r}")
        found = []
        for name in (_one_line(name) for name in names):
            known = self._label_of.get(name) or self.draft.find_entity(name)
            if known:
                found.append(known)
            elif _OPAQUE_IDENTIFIER.fullmatch(name):
                _log.warning(
                    "%s: '%s' names %s, which is not declared: read as any type", self.name, where, name
                )
            elif name:
                found.append(self.draft.add_entity(name, _LITERAL_TYPES.get(name.casefold(), "")))
        return found

    def _with_subtypes(self, types: list[str]) -> list[str]:
        """A relation over Person holds for a Politician; each type once, whatever cycles the file has."""
        closed = dict.fromkeys(types)
        pending = list(types)
        while pending:
            for subtype in self._subtypes.get(pending.pop(), ()):
                if subtype not in closed:
                    closed[subtype] = None
                    pending.append(subtype)
        return list(closed)


def _items(data: Mapping[str, Any], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    for key in keys:
        if key in data:
            items = data[key]
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise SchemaError(f"'{key}' must be a list of objects")
            return items
    return []


def _label(item: Mapping[str, Any], where: str) -> str:
    """The label, or where there is none the identifier."""
    for key in ("label", *_IDENTIFIER_KEYS):
        if isinstance(value := item.get(key), str) and value.strip():
            return _one_line(value)
    raise SchemaError(f"{where} has no label: {dict(item)!r}")


def _one_line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
