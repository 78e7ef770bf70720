"""The two lists as JSON schemas, for servers that know no grammars.

A schema says less than the grammar: a name may be any string, and every type may go with every other. What
stands nowhere in the text, or is not of the schema, is dropped and counted where answers are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hornbeam.grammar import entities as entity_stage
from hornbeam.grammar import relations as relation_stage
from hornbeam.grammar.relations import NamedEntity
from hornbeam.llm.protocol import JsonAnswer
from hornbeam.schema.model import GraphSchema

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}


def entity_answer(types: GraphSchema, max_entities: int, *, described: bool = False) -> JsonAnswer:
    """
    Args:
        described: a third field may follow.
    """
    names = [entity_type.name for entity_type in types.entity_types]
    fields = [_TEXT, {"enum": names}, *([_TEXT] if described else [])]
    lists = {"entities": _rows(fields, max_entities, least=2)}
    return JsonAnswer(entity_stage.OPENING, _document(lists))


def relation_answer(
    entities: Sequence[NamedEntity], types: GraphSchema, max_relations: int, max_attributes: int
) -> JsonAnswer:
    name = {"enum": list(dict.fromkeys(entity.name for entity in entities))}
    relations = [relation.name for relation in types.relation_types]
    attributes = [attribute.name for attribute in types.attribute_types]
    lists = {
        "relations": _rows([name, {"enum": relations}, name], max_relations if relations else 0),
        "attributes": _rows([name, {"enum": attributes}, _TEXT], max_attributes if attributes else 0),
    }
    return JsonAnswer(relation_stage.OPENING, _document(lists))


def _document(lists: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": lists,
        "required": list(lists),
        "additionalProperties": False,
    }


def _rows(fields: list[dict[str, Any]], most: int, least: int | None = None) -> dict[str, Any]:
    """At most so many arrays of these fields, of which the first `least` must be there; None: all."""
    if most < 1:
        return {"type": "array", "maxItems": 0}
    row = {"type": "array", "prefixItems": fields, "minItems": least or len(fields), "maxItems": len(fields)}
    return {"type": "array", "items": row, "maxItems": most}
