"""What a schema allows, as tables for SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hornbeam.schema.model import GraphSchema

if TYPE_CHECKING:
    import duckdb


def create_schema_tables(connection: duckdb.DuckDBPyConnection, schema: GraphSchema) -> None:
    """`entity_types` (name), `allowed_relations` (type, head, tail), `allowed_attributes` (type, owner)."""
    types = [entity_type.name for entity_type in schema.entity_types]
    relations = [
        (relation.name, head, tail)
        for relation in schema.relation_types
        for head in schema.head_types(relation.name)
        for tail in schema.tail_types(relation.name)
    ]
    owned = [(attribute.name, owner) for owner in types for attribute in schema.attributes_of(owner)]
    connection.execute("CREATE TEMP TABLE entity_types AS SELECT unnest(?::VARCHAR[]) AS name", [types])
    connection.execute("CREATE TEMP TABLE allowed_relations (type VARCHAR, head VARCHAR, tail VARCHAR)")
    connection.execute("CREATE TEMP TABLE allowed_attributes (type VARCHAR, owner VARCHAR)")
    if relations:
        connection.executemany("INSERT INTO allowed_relations VALUES (?, ?, ?)", relations)
    if owned:
        connection.executemany("INSERT INTO allowed_attributes VALUES (?, ?)", owned)
