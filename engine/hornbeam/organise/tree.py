"""The communities of a version as tables.

L4 of the knowledge tree, over L3 keywords, L2 triples and L1 attributes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hornbeam.organise.communities import GraphArrays, Hierarchy
from hornbeam.organise.naming import Names
from hornbeam.records import TABLES, arrow_schema


def write_community_tables(tables: Path, graph: GraphArrays, hierarchy: Hierarchy, names: Names) -> None:
    """Write `communities` and `community_members` (leaves), sorted by id."""
    nodes = sorted(hierarchy.nodes, key=lambda node: node.community_id)
    told = [names.texts[node.community_id] for node in nodes]
    _write(
        tables,
        "communities",
        {
            "community_id": [node.community_id for node in nodes],
            "level": [node.level for node in nodes],
            "parent_id": [node.parent_id for node in nodes],
            "name": [name for name, _ in told],
            "summary": [summary for _, summary in told],
            "size": [len(node.members) for node in nodes],
            "centre_id": [graph.entity_ids[node.centre] for node in nodes],
            "keywords": [[graph.entity_names[row] for row in node.keywords] for node in nodes],
        },
    )
    leaves = [node for node in nodes if node.level == 0]
    _write(
        tables,
        "community_members",
        {
            "community_id": [leaf.community_id for leaf in leaves for _ in leaf.members],
            "entity_id": [
                entity for leaf in leaves for entity in sorted(graph.entity_ids[row] for row in leaf.members)
            ],
        },
    )


def _write(tables: Path, name: str, columns: dict[str, list[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(columns, schema=arrow_schema(TABLES[name]))
    pq.write_table(table, tables / f"{name}.parquet", compression="zstd")
