"""What two versions say differently, by the ids of their tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from hornbeam.errors import StoreError
from hornbeam.store.damage import naming_damage
from hornbeam.store.versions import Version

#: table → (id, how a row reads, columns whose change is a change of the thing)
_COMPARED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "documents": ("document_id", "source", ("source", "sources", "title", "language")),
    "entities": (
        "entity_id",
        "name || ' (' || type || ')'",
        ("name", "description", "aliases", "mentions", "degree", "confidence"),
    ),
    "relations": (
        "relation_id",
        "head || ' ' || type || ' ' || tail",
        ("weight", "confidence", "description"),
    ),
    "attributes": ("attribute_id", "owner || ' ' || type || ' ' || value", ("value", "confidence")),
    "merges": (
        "merge_id",
        "name || ' = ' || merged_name || coalesce(' in ' || document_id, '') || ' (' || kind || ')'",
        ("entity_id", "kind", "score", "chunk_id"),
    ),
    "communities": (
        "community_id",
        "'level ' || level || ': ' || name",
        ("parent_id", "name", "summary", "keywords", "centre_id"),
    ),
}
_TYPES = ("entity_types", "relation_types", "attribute_types")


def diff_versions(before: Version, after: Version, *, examples: int) -> dict[str, Any]:
    """Added, removed and changed things of each kind, counted, with some of them named; the types of the
    schemas; and the adjusted Rand index between the leaf communities, over the entities that both have.

    Raises:
        StoreError: a table cannot be read; a damaged one is named.
    """
    report: dict[str, Any] = {"before": before.version_id, "after": after.version_id}
    try:
        with naming_damage(before), naming_damage(after), duckdb.connect() as connection:
            for side, version in (("a", before), ("b", after)):
                _open(connection, side, version.directory)
            for table, (key, reads, columns) in _COMPARED.items():
                report[table] = _compare(connection, table, key, reads, columns, examples)
            report["types"] = _types(before.directory, after.directory)
            report["communities"]["ari"] = _rand_index(connection)
    except (duckdb.Error, OSError, ValueError) as error:
        raise StoreError(
            f"{before.version_id} and {after.version_id} cannot be compared: {_one_line(error)}"
        ) from error
    return report


def _open(connection: duckdb.DuckDBPyConnection, side: str, directory: Path) -> None:
    names = ("documents", "entities", "relations", "attributes", "merges", "communities", "community_members")
    for name in names:
        quoted = str(directory / "tables" / f"{name}.parquet").replace("'", "''")
        raw = f"{side}_{name}" if name not in ("relations", "attributes") else f"{side}_{name}_raw"
        connection.execute(f"CREATE VIEW {raw} AS SELECT * FROM read_parquet('{quoted}')")
    connection.execute(
        f"CREATE VIEW {side}_relations AS SELECT r.*, h.name AS head, t.name AS tail "
        f"FROM {side}_relations_raw r "
        f"JOIN {side}_entities h ON h.entity_id = r.head_id JOIN {side}_entities t ON t.entity_id = r.tail_id"
    )
    connection.execute(
        f"CREATE VIEW {side}_attributes AS SELECT x.*, e.name AS owner FROM {side}_attributes_raw x "
        f"JOIN {side}_entities e USING (entity_id)"
    )


def _compare(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    key: str,
    reads: str,
    columns: tuple[str, ...],
    examples: int,
) -> dict[str, Any]:
    differs = " OR ".join(f"a.{column} IS DISTINCT FROM b.{column}" for column in columns)
    wanted = {
        "added": f"SELECT {reads} AS it FROM b_{table} ANTI JOIN a_{table} USING ({key})",
        "removed": f"SELECT {reads} AS it FROM a_{table} ANTI JOIN b_{table} USING ({key})",
        "changed": f"SELECT {reads} AS it FROM b_{table} SEMI JOIN "
        f"(SELECT b.{key} FROM a_{table} a JOIN b_{table} b USING ({key}) WHERE {differs}) USING ({key})",
    }
    counts: dict[str, Any] = {}
    named: dict[str, list[str]] = {}
    for kind, sql in wanted.items():
        counts[kind] = _number(connection, f"SELECT count(*) FROM ({sql})")
        rows = connection.execute(f"{sql} ORDER BY it LIMIT {examples}").fetchall()
        named[kind] = [str(row[0]) for row in rows]
    same = f"SELECT count(*) FROM a_{table} SEMI JOIN b_{table} USING ({key})"
    counts["unchanged"] = _number(connection, same) - counts["changed"]
    return counts | {"examples": named}


def _types(before: Path, after: Path) -> dict[str, dict[str, list[str]]]:
    schemas = [json.loads((side / "schema.json").read_text("utf-8")) for side in (before, after)]
    found = {}
    for kind in _TYPES:
        old, new = ({entry["name"]: entry for entry in schema[kind]} for schema in schemas)
        found[kind] = {
            "added": sorted(new.keys() - old.keys()),
            "removed": sorted(old.keys() - new.keys()),
            "changed": sorted(name for name in new.keys() & old.keys() if new[name] != old[name]),
        }
    return found


def _rand_index(connection: duckdb.DuckDBPyConnection) -> float | None:
    """Adjusted Rand index (Hubert and Arabie, 1985); None without two common entities."""
    connection.execute(
        "CREATE TEMP TABLE both_leaves AS SELECT a.community_id AS a, b.community_id AS b "
        "FROM a_community_members a JOIN b_community_members b USING (entity_id)"
    )

    def pairs(columns: str) -> float:
        grouped = f"SELECT count(*)::DOUBLE AS n FROM both_leaves GROUP BY {columns}"
        return float(_number(connection, f"SELECT coalesce(sum(n * (n - 1) / 2), 0) FROM ({grouped})"))

    n = _number(connection, "SELECT count(*) FROM both_leaves")
    if n < 2:
        return None
    together, in_a, in_b, all_pairs = pairs("a, b"), pairs("a"), pairs("b"), n * (n - 1) / 2
    expected, largest = in_a * in_b / all_pairs, (in_a + in_b) / 2
    # Both all in one, or both all apart: the same partition.
    return 1.0 if largest == expected else round((together - expected) / (largest - expected), 6)


def _number(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


def _one_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
