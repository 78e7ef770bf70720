"""The invariants of a graph, recomputed from its Parquet tables in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hornbeam.audit.findings import Finding
from hornbeam.schema.model import GraphSchema
from hornbeam.store.gates import OFFENCES, SHARES
from hornbeam.store.schema_tables import create_schema_tables
from hornbeam.store.table_files import open_tables

_EXAMPLES = 5
_IDS = {
    "documents": "document_id",
    "chunks": "chunk_id",
    "entities": "entity_id",
    "relations": "relation_id",
    "attributes": "attribute_id",
    "merges": "merge_id",
    "communities": "community_id",
}

#: The members of every community of every level, handed up from the leaves.
_MEMBERS = """
    CREATE TEMP TABLE members AS
    WITH RECURSIVE up AS (
        SELECT m.community_id, c.level, c.parent_id, m.entity_id
        FROM community_members m JOIN communities c USING (community_id)
        UNION ALL
        SELECT p.community_id, p.level, p.parent_id, u.entity_id
        FROM up u JOIN communities p ON p.community_id = u.parent_id)
    SELECT * FROM up"""

#: check → (table, what is wrong, query of the offenders)
_CHECKS: dict[str, tuple[str, str, str]] = {
    "chunk_texts": (
        "chunks",
        "is not what stands in its document",
        "SELECT c.chunk_id FROM chunks c LEFT JOIN documents d USING (document_id) "
        'WHERE d.text[c.start + 1 : c."end"] IS DISTINCT FROM c.text',
    ),
    "chunk_states": (
        "chunks",
        "has a state that does not go with its reason",
        "SELECT chunk_id FROM chunks WHERE state NOT IN ('done', 'degraded', 'failed') "
        "OR (state = 'done') <> (reason = '')",
    ),
    "documents_have_chunks": (
        "documents",
        "has text and no chunk",
        "SELECT document_id FROM documents ANTI JOIN chunks USING (document_id) WHERE trim(text) <> ''",
    ),
    "entity_counts": (
        "entities",
        "says another number of mentions or relations than there are",
        "SELECT e.entity_id FROM entities e "
        "LEFT JOIN (SELECT entity_id, count(*) AS n FROM mentions GROUP BY ALL) m USING (entity_id) "
        "LEFT JOIN (SELECT entity_id, count(*) AS n FROM (SELECT head_id AS entity_id FROM relations "
        "UNION ALL SELECT tail_id FROM relations) GROUP BY ALL) d USING (entity_id) "
        "WHERE e.mentions <> coalesce(m.n, 0) OR e.degree <> coalesce(d.n, 0)",
    ),
    "relation_weights": (
        "relations",
        "has another weight than chunks that state it",
        "SELECT r.relation_id FROM relations r "
        "LEFT JOIN (SELECT relation_id, count(*) AS n FROM relation_evidence GROUP BY ALL) x "
        "USING (relation_id) WHERE r.weight IS DISTINCT FROM x.n",
    ),
    "evidence": (
        "attributes and entities",
        "nothing states it",
        "SELECT attribute_id FROM attributes ANTI JOIN attribute_evidence USING (attribute_id) UNION ALL "
        "SELECT entity_id FROM entities ANTI JOIN mentions USING (entity_id) WHERE degree = 0",
    ),
    "attribute_spans": (
        "attribute_evidence",
        "its span is not in its chunk",
        "SELECT attribute_id FROM attribute_evidence x JOIN chunks c USING (chunk_id) "
        'WHERE x.start < 0 OR x."end" <= x.start OR x."end" > length(c.text)',
    ),
    "description_spans": (
        "mentions",
        "the span of its description is not in its chunk",
        "SELECT entity_id FROM mentions m JOIN chunks c USING (chunk_id) "
        "WHERE (m.description_start IS NULL) <> (m.description_end IS NULL) OR m.description_start < 0 "
        "OR m.description_end <= m.description_start OR m.description_end > length(c.text)",
    ),
    "merge_evidence": (
        "merges",
        "its evidence is not in its chunk, or its chunk not in its document",
        "SELECT merge_id FROM merges m JOIN chunks c USING (chunk_id) "
        'WHERE m.start < 0 OR m."end" <= m.start OR m."end" > length(c.text) '
        "OR m.document_id <> c.document_id",
    ),
    "confidences": (
        "entities, relations, attributes",
        "has a confidence outside 0 to 1",
        "SELECT entity_id FROM entities WHERE NOT confidence BETWEEN 0 AND 1 "
        "UNION ALL SELECT relation_id FROM relations WHERE NOT confidence BETWEEN 0 AND 1 "
        "UNION ALL SELECT attribute_id FROM attributes WHERE NOT confidence BETWEEN 0 AND 1",
    ),
    "leaves": (
        "community_members",
        "has members and is no leaf",
        "SELECT DISTINCT m.community_id FROM community_members m "
        "LEFT JOIN communities c USING (community_id) WHERE c.level IS DISTINCT FROM 0",
    ),
    "levels_partition": (
        "communities",
        "an entity is not in exactly one community of every level",
        "SELECT e.entity_id || ' on level ' || l.level FROM entities e "
        "CROSS JOIN (SELECT DISTINCT level FROM communities) l "
        "LEFT JOIN (SELECT entity_id, level, count(*) AS n FROM members GROUP BY ALL) m "
        "ON m.entity_id = e.entity_id AND m.level = l.level WHERE m.n IS DISTINCT FROM 1",
    ),
    "community_parents": (
        "communities",
        "has no parent on the next level",
        "SELECT c.community_id FROM communities c LEFT JOIN communities p ON p.community_id = c.parent_id "
        "WHERE c.level < (SELECT max(level) FROM communities) AND p.level IS DISTINCT FROM c.level + 1",
    ),
    "community_sizes": (
        "communities",
        "has another size than members",
        "SELECT c.community_id FROM communities c "
        "LEFT JOIN (SELECT community_id, count(*) AS n FROM members GROUP BY ALL) m USING (community_id) "
        "WHERE c.size IS DISTINCT FROM m.n",
    ),
    "community_centres": (
        "communities",
        "its centre is not in it",
        "SELECT c.community_id FROM communities c ANTI JOIN members m "
        "ON m.community_id = c.community_id AND m.entity_id = c.centre_id",
    ),
}
_PROBLEMS = {
    "schema_violations": ("entities, relations, attributes", "is not what the schema allows"),
    "dangling_edges": ("tables", "refers to what is not there"),
    "grounding": ("mentions", "does not stand at its place in its chunk"),
    "coverage": ("entities", "is not in exactly one leaf community"),
}


def check_tables(directory: Path, schema: GraphSchema) -> dict[str, list[Finding]]:
    """By check, what it found.

    Raises:
        duckdb.Error: a table cannot be read.
    """
    found: dict[str, list[Finding]] = {}
    with open_tables(directory) as connection:
        create_schema_tables(connection, schema)
        connection.execute(_MEMBERS)
        for table, column in _IDS.items():
            sql = f"SELECT {column} FROM {table} GROUP BY {column} HAVING count(*) > 1"
            found[f"unique_{column}"] = _offenders(connection, f"unique_{column}", table, "stands twice", sql)
        for name, sql in OFFENCES.items():
            found[name] = _offenders(connection, name, *_PROBLEMS[name], sql)
        for name, (_, _, sql) in SHARES.items():
            found[name] = _offenders(connection, name, *_PROBLEMS[name], sql)
        older = set() if _has_column(connection, "mentions", "description_start") else {"description_spans"}
        for name, (table, problem, sql) in _CHECKS.items():
            found[name] = [] if name in older else _offenders(connection, name, table, problem, sql)
    return found


def _has_column(connection: Any, table: str, column: str) -> bool:
    """Columns were added: versions of an older Hornbeam lack them."""
    return column in {row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()}


def _offenders(connection: Any, check: str, table: str, problem: str, sql: str) -> list[Finding]:
    count = int(connection.execute(f"SELECT count(*) FROM ({sql})").fetchone()[0])
    if not count:
        return []
    rows = connection.execute(f"SELECT * FROM ({sql}) ORDER BY 1 LIMIT {_EXAMPLES}").fetchall()
    told = f"{count} of them: {problem}"
    return [Finding(check, f"table {table}", told, tuple(str(row[0]) for row in rows))]
