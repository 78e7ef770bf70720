"""CSV files for `neo4j-admin database import`, with the command that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hornbeam.store.table_files import open_tables

#: file → query; a header names each column as Neo4j's importer wants it.
_FILES = {
    "entities.csv": """
        SELECT entity_id AS "entity_id:ID(Entity)", name, description,
               array_to_string(aliases, ';') AS "aliases:string[]", mentions AS "mentions:long",
               degree AS "degree:long", confidence AS "confidence:double", 'Entity;' || {label} AS ":LABEL"
        FROM entities ORDER BY entity_id""",
    "communities.csv": """
        SELECT community_id AS "community_id:ID(Community)", level AS "level:int", name, summary,
               size AS "size:long", array_to_string(keywords, ';') AS "keywords:string[]",
               'Community' AS ":LABEL"
        FROM communities ORDER BY community_id""",
    "chunks.csv": """
        SELECT c.chunk_id AS "chunk_id:ID(Chunk)", d.source, d.title, c.start AS "start:long",
               c."end" AS "end:long", c.text, 'Chunk' AS ":LABEL"
        FROM chunks c JOIN documents d USING (document_id) ORDER BY c.chunk_id""",
    "relations.csv": """
        SELECT head_id AS ":START_ID(Entity)", tail_id AS ":END_ID(Entity)", relation_id,
               weight AS "weight:double", confidence AS "confidence:double", description, {label} AS ":TYPE"
        FROM relations ORDER BY relation_id""",
    "mentions.csv": """
        SELECT chunk_id AS ":START_ID(Chunk)", entity_id AS ":END_ID(Entity)", start AS "start:long",
               "end" AS "end:long", surface, 'MENTIONS' AS ":TYPE"
        FROM mentions ORDER BY chunk_id, entity_id, start""",
    "members.csv": """
        SELECT entity_id AS ":START_ID(Entity)", community_id AS ":END_ID(Community)", 'IN' AS ":TYPE"
        FROM community_members ORDER BY entity_id""",
    "parents.csv": """
        SELECT community_id AS ":START_ID(Community)", parent_id AS ":END_ID(Community)", 'PART_OF' AS ":TYPE"
        FROM communities WHERE parent_id IS NOT NULL ORDER BY community_id""",
}
_NODES = ("entities.csv", "communities.csv", "chunks.csv")
#: A semicolon parts labels and the items of a list.
_LABEL = "replace(type, ';', ',')"
_COMMAND = """#!/bin/sh
# Import this folder into a new Neo4j database: sh import.sh [DATABASE]
cd "$(dirname "$0")" || exit 1
exec neo4j-admin database import full "${{1:-neo4j}}" --overwrite-destination --multiline-fields=true \\
{arguments}
"""


def write_neo4j(directory: Path, target: Path) -> list[Path]:
    """Nodes: entities, communities, chunks. Relationships: relations under their own types, MENTIONS, IN,
    PART_OF. `import.sh` holds the command."""
    target.mkdir(exist_ok=True)
    written = []
    with open_tables(directory) as connection:
        for name, sql in _FILES.items():
            written.append(_write(connection, sql.format(label=_LABEL), target / name))
    arguments = [f"  --{'nodes' if name in _NODES else 'relationships'}={name}" for name in _FILES]
    script = target / "import.sh"
    script.write_text(_COMMAND.format(arguments=" \\\n".join(arguments)), "utf-8")
    script.chmod(0o755)
    return [*written, script]


def _write(connection: Any, sql: str, path: Path) -> Path:
    quoted = str(path).replace("'", "''")
    connection.execute(f"COPY ({sql}) TO '{quoted}' (FORMAT csv, HEADER true, FORCE_QUOTE *)")
    return path
