"""The table layout of Microsoft GraphRAG (2.x): its notebooks and viewers read it.

Relationships have no type there: it is a column more, for those who look. Levels are counted from the top
there, from the leaves here.
"""

from __future__ import annotations

from pathlib import Path

from hornbeam.store.table_files import open_tables

#: Rows are numbered as GraphRAG does, from 0 by id.
_NUMBERED = """
    CREATE TEMP TABLE numbered AS
    SELECT community_id, row_number() OVER (ORDER BY level DESC, community_id) - 1 AS number,
           (SELECT max(level) FROM communities) - level AS depth
    FROM communities"""
#: The entities of every community of every level.
_MEMBERS = """
    CREATE TEMP TABLE members AS
    WITH RECURSIVE up AS (
        SELECT m.community_id, c.parent_id, m.entity_id
        FROM community_members m JOIN communities c USING (community_id)
        UNION ALL
        SELECT p.community_id, p.parent_id, u.entity_id
        FROM up u JOIN communities p ON p.community_id = u.parent_id)
    SELECT community_id, entity_id FROM up"""

_TABLES = {
    "documents": """
        SELECT d.document_id AS id, row_number() OVER (ORDER BY d.document_id) - 1 AS human_readable_id,
               coalesce(nullif(d.title, ''), d.source) AS title, d.text, coalesce(c.ids, []) AS text_unit_ids,
               NULL::VARCHAR AS creation_date, NULL::VARCHAR AS metadata
        FROM documents d LEFT JOIN (SELECT document_id, list(chunk_id ORDER BY start) AS ids
                                    FROM chunks GROUP BY ALL) c USING (document_id) ORDER BY id""",
    "text_units": """
        SELECT c.chunk_id AS id, row_number() OVER (ORDER BY c.chunk_id) - 1 AS human_readable_id, c.text,
               c.tokens AS n_tokens, c.document_id, coalesce(e.ids, []) AS entity_ids,
               coalesce(r.ids, []) AS relationship_ids, []::VARCHAR[] AS covariate_ids
        FROM chunks c
        LEFT JOIN (SELECT chunk_id, list(DISTINCT entity_id ORDER BY entity_id) AS ids
                   FROM mentions GROUP BY ALL) e USING (chunk_id)
        LEFT JOIN (SELECT chunk_id, list(relation_id ORDER BY relation_id) AS ids
                   FROM relation_evidence GROUP BY ALL) r USING (chunk_id) ORDER BY id""",
    "entities": """
        SELECT e.entity_id AS id, row_number() OVER (ORDER BY e.entity_id) - 1 AS human_readable_id,
               e.name AS title, e.type, e.description, coalesce(m.ids, []) AS text_unit_ids,
               coalesce(len(m.ids), 0) AS frequency, e.degree
        FROM entities e LEFT JOIN (SELECT entity_id, list(DISTINCT chunk_id ORDER BY chunk_id) AS ids
                                   FROM mentions GROUP BY ALL) m USING (entity_id) ORDER BY id""",
    "relationships": """
        SELECT r.relation_id AS id, row_number() OVER (ORDER BY r.relation_id) - 1 AS human_readable_id,
               h.name AS source, t.name AS target,
               r.description, r.type, r.weight, h.degree + t.degree AS combined_degree,
               coalesce(x.ids, []) AS text_unit_ids
        FROM relations r JOIN entities h ON h.entity_id = r.head_id JOIN entities t ON t.entity_id = r.tail_id
        LEFT JOIN (SELECT relation_id, list(chunk_id ORDER BY chunk_id) AS ids
                   FROM relation_evidence GROUP BY ALL) x USING (relation_id) ORDER BY id""",
    "communities": """
        SELECT c.community_id AS id, n.number AS human_readable_id, n.number AS community, n.depth AS level,
               coalesce(p.number, -1) AS parent, coalesce(k.numbers, []) AS children, c.name AS title,
               coalesce(m.ids, []) AS entity_ids, coalesce(r.ids, []) AS relationship_ids,
               coalesce(x.ids, []) AS text_unit_ids, NULL::VARCHAR AS period, c.size
        FROM communities c JOIN numbered n USING (community_id)
        LEFT JOIN numbered p ON p.community_id = c.parent_id
        LEFT JOIN (SELECT parent_id AS community_id, list(n.number ORDER BY n.number) AS numbers
                   FROM communities JOIN numbered n USING (community_id) GROUP BY ALL) k USING (community_id)
        LEFT JOIN (SELECT community_id, list(entity_id ORDER BY entity_id) AS ids
                   FROM members GROUP BY ALL) m USING (community_id)
        LEFT JOIN (SELECT h.community_id, list(relation_id ORDER BY relation_id) AS ids
                   FROM relations JOIN members h ON h.entity_id = head_id
                   JOIN members t ON t.entity_id = tail_id AND t.community_id = h.community_id
                   GROUP BY ALL) r USING (community_id)
        LEFT JOIN (SELECT community_id, list(DISTINCT chunk_id ORDER BY chunk_id) AS ids
                   FROM members JOIN mentions USING (entity_id) GROUP BY ALL) x USING (community_id)
        ORDER BY n.number""",
    "community_reports": """
        SELECT c.community_id AS id, n.number AS human_readable_id, n.number AS community, n.depth AS level,
               coalesce(p.number, -1) AS parent, c.name AS title, c.summary,
               '# ' || c.name || chr(10) || chr(10) || c.summary AS full_content, 0.0::DOUBLE AS rank,
               '' AS rating_explanation, []::STRUCT(explanation VARCHAR, summary VARCHAR)[] AS findings,
               NULL::VARCHAR AS period, c.size
        FROM communities c JOIN numbered n USING (community_id)
        LEFT JOIN numbered p ON p.community_id = c.parent_id ORDER BY n.number""",
}


def write_graphrag(directory: Path, target: Path) -> list[Path]:
    """Documents, text units, entities, relationships, communities and their reports, in Parquet."""
    target.mkdir(exist_ok=True)
    written = []
    with open_tables(directory) as connection:
        connection.execute(_NUMBERED)
        connection.execute(_MEMBERS)
        for name, sql in _TABLES.items():
            path = target / f"{name}.parquet"
            quoted = str(path).replace("'", "''")
            connection.execute(f"COPY ({sql}) TO '{quoted}' (FORMAT parquet)")
            written.append(path)
    return written
