"""What a graph may contain: the schema, the file formats it is read from, and its text for prompts.

This package knows no document and no model; it imports pydantic and nothing heavier.
"""

from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.schema.difference import difference
from hornbeam.schema.formats import read_schema
from hornbeam.schema.load import load_schema, seed_schemas
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType, ValueKind

__all__ = [
    "AttributeType",
    "EntityType",
    "GraphSchema",
    "RelationType",
    "ValueKind",
    "attribute_lines",
    "difference",
    "entity_lines",
    "load_schema",
    "read_schema",
    "relation_lines",
    "seed_schemas",
]
