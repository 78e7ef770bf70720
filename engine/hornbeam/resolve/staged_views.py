"""The staged rows that count, as tables of a DuckDB connection: views over the files of all parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.resolve.staged_parts import StagedParts
from hornbeam.resolve.staging import STAGED, StagedDocuments
from hornbeam.schema.model import GraphSchema
from hornbeam.store.schema_tables import create_schema_tables

if TYPE_CHECKING:
    import duckdb

#: A folder of staged files, and the documents whose rows in it count.
StagedPart = tuple[Path, list[str]]


def kept_parts(kept: StagedParts, written: Path, staged: StagedDocuments) -> list[StagedPart]:
    """What was just staged becomes a part; all of them, with what counts in each."""
    parts: list[StagedPart] = []
    if staged.written:
        kept.add(written)
    else:
        parts.append((written, []))  # tables without rows: there may be no part at all
    kept.tidy(kept.places(staged.fingerprints))
    documents_of: dict[str, list[str]] = defaultdict(list)
    for part, document in kept.places(staged.fingerprints):
        documents_of[part].append(document)
    return [*parts, *((part.directory, documents_of[part.name]) for part in kept.parts)]


def open_parts(connection: duckdb.DuckDBPyConnection, parts: Sequence[StagedPart]) -> None:
    """The staged tables as views over the parts."""
    import pyarrow as pa

    places = pa.table(
        {
            "part": pa.array([part for part, (_, ids) in enumerate(parts) for _ in ids], pa.int32()),
            "document_id": pa.array([document for _, ids in parts for document in ids], pa.string()),
        }
    )
    connection.register("given", places)
    connection.execute("CREATE TEMP TABLE counting AS SELECT * FROM given")
    connection.unregister("given")
    for name in STAGED:
        rows = " UNION ALL ".join(
            f"SELECT {part}::INTEGER AS part, * FROM read_parquet('{_sql_path(folder, name)}')"
            for part, (folder, _) in enumerate(parts)
        )
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * EXCLUDE (part) FROM ({rows}) "
            "SEMI JOIN counting USING (part, document_id)"
        )


def _sql_path(folder: Path, name: str) -> str:
    return str(folder / f"{name}.parquet").replace("'", "''")


def load_schema(connection: duckdb.DuckDBPyConnection, schema: GraphSchema | None) -> None:
    """`allowed_relations` (type, head, tail) and `allowed_attributes` (type, owner); without a schema, views
    that hold whatever is asked for."""
    if schema is not None:
        create_schema_tables(connection, schema)
    else:
        connection.execute(
            "CREATE VIEW allowed_relations AS SELECT DISTINCT r.type, h.type AS head, t.type AS tail "
            "FROM found_relations r, (SELECT DISTINCT type FROM found_names) h, "
            "(SELECT DISTINCT type FROM found_names) t"
        )
        connection.execute(
            "CREATE VIEW allowed_attributes AS SELECT DISTINCT a.type, o.type AS owner "
            "FROM found_attributes a, (SELECT DISTINCT type FROM found_names) o"
        )
