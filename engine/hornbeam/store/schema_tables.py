"""What a schema allows, as tables for SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hornbeam.schema.model import GraphSchema

if TYPE_CHECKING:
    import duckdb


def create_schema_tables(connection: duckdb.DuckDBPyConnection, schema: GraphSchema) -> None:
    """`entity_types` (name), `allowed_relations` (type, head, tail), `allowed_attributes` (type, owner)."""
    import pyarrow as pa

    types = [entity_type.name for entity_type in schema.entity_types]
    relations = [
        (relation.name, head, tail)
        for relation in schema.relation_types
        for head in schema.head_types(relation.name)
        for tail in schema.tail_types(relation.name)
    ]
    owned = [(attribute.name, owner) for owner in types for attribute in schema.attributes_of(owner)]
    for name, columns, rows in (
        ("entity_types", ("name",), [(kind,) for kind in types]),
        ("allowed_relations", ("type", "head", "tail"), relations),
        ("allowed_attributes", ("type", "owner"), owned),
    ):
        # By Arrow: an imported schema may have ten thousand types, and a statement for each takes its time.
        arrays = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(columns))]
        connection.register("given", pa.table(arrays, names=list(columns)))
        connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
