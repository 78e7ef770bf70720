"""What consolidation costs at size: mentions into entities, names resolved, tables written; bounded memory.

    hornbeam bench consolidation [--mentions 1000000] [--memory-mib 2048] [--json]

What was found in the documents is made by a query, as staged rows of an earlier build: names with a long
tail, five mentions to a relation. So what is measured is DuckDB's joins and the resolution of names, at the
size of a corpus of which nothing was read.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.resolve.consolidate import write_graph_tables
from hornbeam.resolve.staged_parts import StagedParts
from hornbeam.resolve.staging import DOCUMENTS, STAGED, DocumentInput, staged_schema
from hornbeam.settings import ResolveSettings

MENTIONS_PER_DOCUMENT = 100
MENTIONS_PER_CHUNK = 10
MENTIONS_PER_NAME = 5
TYPES = 8

#: Mention m stands in chunk m // 10 of document m // 100; the names that are mentioned most have low numbers.
_MENTIONS = f"""
    SELECT *, 'name ' || number AS canonical, 't' || (number % {TYPES}) AS type,
           'd' || printf('%012d', m // {MENTIONS_PER_DOCUMENT}) AS document_id,
           'c' || printf('%012d', m // {MENTIONS_PER_CHUNK}) AS chunk_id
    FROM (SELECT range AS m, (names * pow((hash(range) % 1000003) / 1000003.0, 2))::BIGINT AS number
          FROM range(getvariable('mentions')),
               (SELECT getvariable('mentions') // {MENTIONS_PER_NAME} AS names))"""
_ROWS = {
    "found_chunks": f"""
        SELECT 'c' || printf('%012d', range) AS chunk_id,
               'd' || printf('%012d', range * {MENTIONS_PER_CHUNK} // {MENTIONS_PER_DOCUMENT}) AS document_id,
               0 AS start, 100 AS "end", 'what chunk ' || range || ' says' AS text, 20 AS tokens,
               'done' AS state, '' AS reason, '' AS rungs
        FROM range(getvariable('mentions') // {MENTIONS_PER_CHUNK})""",
    "found_names": f"""
        SELECT content_id('e', canonical, type) AS name_id, canonical, type, 'Name ' || number AS name,
               document_id, chunk_id, 10 * (m % {MENTIONS_PER_CHUNK}) AS start,
               10 * (m % {MENTIONS_PER_CHUNK}) + 9 AS "end", 'Name ' || number AS surface,
               0.5 + 0.4 * ((m % 7) / 7.0) AS confidence, 'Sentence ' || (m % 1000) || ' on it.' AS sentence
        FROM mentions""",
    "found_relations": """
        SELECT content_id('e', a.canonical, a.type) AS head_name, 'knows' AS type,
               content_id('e', b.canonical, b.type) AS tail_name, a.document_id, a.chunk_id,
               0.8 AS confidence, 'Sentence ' || (a.m % 1000) || ' on it.' AS sentence, false AS loop,
               NULL::BOOLEAN AS verified
        FROM mentions a JOIN mentions b ON b.m = a.m + 1 AND a.m % 5 = 0""",
}
_SQL = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN"}
#: As `content_id` of the engine, of two parts; only that equal names have equal ids matters here.
_CONTENT_ID = "CREATE MACRO content_id(prefix, a, b) AS prefix || left(sha256(a || chr(0) || b), 20)"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench consolidation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mentions", type=int, default=1_000_000)
    parser.add_argument("--memory-mib", type=int, default=2048, help="DuckDB's bound")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        found = measure(options.mentions, options.memory_mib, Path(temporary))
    print(json.dumps(found, indent=2) if options.json else "\n".join(f"{k:16} {v}" for k, v in found.items()))


def measure(mentions: int, memory_mib: int, folder: Path) -> dict[str, Any]:
    tables, scratch, written = folder / "tables", folder / "scratch", folder / "written"
    for path in (tables, scratch, written):
        path.mkdir()
    _write_rows(mentions, memory_mib, written)
    kept = StagedParts(folder / "staged", "bench")
    kept.add(written)
    before, worked = time.perf_counter(), time.process_time()
    done = write_graph_tables(
        _documents(mentions),
        tables,
        scratch,
        settings=ResolveSettings(),
        schema=None,
        embedder=HashedEmbedder(),
        min_confidence=0.0,
        memory_limit_mib=memory_mib,
        kept=kept,
    )
    return {
        "mentions": done.rows["mentions"],
        "names": done.names,
        "entities": done.rows["entities"],
        "relations": done.rows["relations"],
        "seconds": round(time.perf_counter() - before, 1),
        "cpu_seconds": round(time.process_time() - worked, 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "duckdb_mib": memory_mib,
    }


def _write_rows(mentions: int, memory_mib: int, folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory_mib}MiB'")
        connection.execute("SET temp_directory = ?", [str(folder.parent / "spill")])
        connection.execute("SET VARIABLE mentions = ?::BIGINT", [mentions])
        connection.execute(_CONTENT_ID)
        connection.execute(f"CREATE TABLE mentions AS {_MENTIONS}")
        for name in STAGED:
            rows = _ROWS.get(name, "SELECT 1 LIMIT 0")
            made = {row[0] for row in connection.execute(f"DESCRIBE {rows}").fetchall()}
            columns = (
                f'"{column.name}"'
                if column.name in made
                else f'NULL::{_SQL[str(column.type)]} AS "{column.name}"'
                for column in staged_schema(name)
            )
            _copy(connection, f"SELECT {', '.join(columns)} FROM ({rows})", folder / f"{name}.parquet")
        documents = f"SELECT DISTINCT document_id, 'f' AS fingerprint FROM ({_ROWS['found_chunks']})"
        _copy(connection, documents, folder / f"{DOCUMENTS}.parquet")


def _copy(connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> None:
    connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def _documents(mentions: int) -> Iterator[DocumentInput]:
    for number in range(-(-mentions // MENTIONS_PER_DOCUMENT)):
        key = f"d{number:012d}"
        yield DocumentInput(key, (key,), key, f"What document {number} says.", "en", (), "f", is_staged=True)


if __name__ == "__main__":
    main()
