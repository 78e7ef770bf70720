"""Schema files: which form a text has, and the forms that are plain JSON.

A form is detected by content, never by the file's name.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from hornbeam.errors import SchemaError, reason
from hornbeam.schema.brat import is_brat, parse_brat
from hornbeam.schema.draft import SchemaDraft
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType
from hornbeam.schema.ontology import is_ontology, parse_ontology

_KNOWN_FORMS = (
    "a schema is JSON with 'entity_types', JSON with the lists 'Nodes', 'Relations' and 'Attributes', "
    "ontology JSON with 'concepts' and 'relations', or a BRAT annotation.conf with [entities] and [relations]"
)
_FLAT_KEYS = ("Nodes", "Relations", "Attributes")
_LISTS_OF: dict[str, type[BaseModel]] = {
    "entity_types": EntityType,
    "relation_types": RelationType,
    "attribute_types": AttributeType,
}


def read_schema(text: str, name: str) -> GraphSchema:
    """Read a schema in any of the known forms.

    Args:
        text: the file's content.
        name: of the schema, for forms that carry none.

    Raises:
        SchemaError: the form is not known, or its content is not a usable schema.
    """
    if is_brat(text):
        return parse_brat(text, name)
    if not text.lstrip().startswith("{"):
        raise SchemaError(f"the form of this file is not known; {_KNOWN_FORMS}")
    data = _json_object(text)
    if "entity_types" in data:
        return _parse_own(data)
    if is_ontology(data):
        return parse_ontology(data, name)
    if any(key in data for key in _FLAT_KEYS):
        return _parse_flat(data, name)
    keys = ", ".join(f"'{key}'" for key in list(data)[:6]) or "no keys"
    raise SchemaError(f"this JSON object has {keys}; {_KNOWN_FORMS}")


def _json_object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of more than 4,300 digits
        raise SchemaError(f"not a schema: {reason(error)}") from error
    assert isinstance(data, dict)  # it starts with a brace
    return data


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON lets the last of equal keys win, which would drop a list of types without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise SchemaError(f"the key '{twice}' stands twice in one JSON object")
    return found


def _parse_own(data: dict[str, Any]) -> GraphSchema:
    try:
        return GraphSchema.model_validate(data)
    except ValidationError as error:
        raise SchemaError("; ".join(_problem(data, dict(item)) for item in error.errors())) from error


def _problem(data: Mapping[str, Any], problem: Mapping[str, Any]) -> str:
    """One validation error as `where: what`; an unknown key with the nearest known one."""
    location: tuple[int | str, ...] = problem["loc"]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    if problem["type"] != "extra_forbidden":
        return f"{where}: {problem['msg']}"
    model = _LISTS_OF[str(location[0])] if len(location) > 1 else GraphSchema
    near = difflib.get_close_matches(str(location[-1]), list(model.model_fields), n=1, cutoff=0.0)
    return f"unknown key '{where}'; did you mean '{near[0]}'?"


def _parse_flat(data: Mapping[str, Any], name: str) -> GraphSchema:
    """Three lists of names: relations over any types, text attributes of any type."""
    if unknown := [key for key in data if key not in _FLAT_KEYS]:
        raise SchemaError(f"unknown key '{unknown[0]}' beside {', '.join(_FLAT_KEYS)}")
    draft = SchemaDraft()
    for node in _names(data, "Nodes"):
        draft.add_entity(node)
    for relation in _names(data, "Relations"):
        draft.add_relation(relation, domain=(), range=())
    for attribute in _names(data, "Attributes"):
        draft.add_attribute(attribute)
    return draft.build(name)


def _names(data: Mapping[str, Any], key: str) -> list[str]:
    names = data.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"'{key}' must be a list of names")
    return names
