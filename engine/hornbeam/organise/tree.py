"""The communities of a version as tables.

L4 of the knowledge tree, over L3 keywords, L2 triples and L1 attributes.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from hornbeam.organise.communities import GraphArrays, Hierarchy
from hornbeam.organise.naming import Names
from hornbeam.records import TABLES, Community, CommunityMember, arrow_schema


def write_community_tables(tables: Path, graph: GraphArrays, hierarchy: Hierarchy, names: Names) -> None:
    """Write `communities` and `community_members` (leaves), sorted by id."""
    communities = []
    members = []
    for node in hierarchy.nodes:
        name, summary = names.texts[node.community_id]
        communities.append(
            Community(
                node.community_id,
                node.level,
                node.parent_id,
                name,
                summary,
                len(node.members),
                graph.entity_ids[node.centre],
                [graph.entity_names[row] for row in node.keywords],
            )
        )
        if node.level == 0:
            members += [CommunityMember(node.community_id, graph.entity_ids[row]) for row in node.members]
    _write(tables, "communities", sorted(communities, key=lambda row: row.community_id))
    _write(tables, "community_members", sorted(members, key=lambda row: (row.community_id, row.entity_id)))


def _write(tables: Path, name: str, rows: list[Community] | list[CommunityMember]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(TABLES[name])
    columns = list(zip(*(astuple(row) for row in rows), strict=True)) or [()] * len(schema)
    table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    pq.write_table(table, tables / f"{name}.parquet", compression="zstd")
