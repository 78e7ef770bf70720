"""From the extractions of single chunks to the tables of one graph.

A name (canonical name, type) and where it stands decide which entity it is (`resolution`); an import gives
its entities' identities itself. Every mention and every piece of evidence is kept; an imported entity whose
name stands nowhere in the text has no mention, and is an entity all the same. Aggregated are

    relation, attribute    1 − Π (1 − c) over the chunks that state it (independent evidence, noisy or)
    entity                 mean over its mentions of the confidence that the name has this type

The joins and group-bys run in DuckDB over staged Parquet files, in bounded memory, and spill to disk. Every
table is sorted by its id and written by one thread, so equal extractions give equal bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.index.embedder import TextEmbedder
from hornbeam.records import TABLES, arrow_schema
from hornbeam.resolve.answers import Answers
from hornbeam.resolve.deciding import describe, link_across, resolve_names, tell_homonyms
from hornbeam.resolve.evidence import kinds_that_count
from hornbeam.resolve.graph_queries import (
    CONTENT_ID,
    DROPPED,
    FACTS,
    LINKS,
    MENTIONS,
    NAMES,
    TABLES_OF_A_GRAPH,
    create_tables,
)
from hornbeam.resolve.separations import Separation
from hornbeam.resolve.staged_parts import StagedParts
from hornbeam.resolve.staged_views import kept_parts, load_schema, open_parts
from hornbeam.resolve.staging import DocumentInput, stage
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ResolveSettings
from hornbeam.store.table_files import ROWS_PER_BATCH, TableWriter

if TYPE_CHECKING:
    import duckdb


@dataclass(slots=True)
class Consolidated:
    rows: dict[str, int]  # by table
    names: int = 0  # distinct (canonical name, type)
    homonyms: int = 0  # names beyond those: of one canonical name and type, of different things
    merges: dict[str, int] = field(default_factory=dict)  # by kind of evidence
    #: statements of facts that a merge left without a place in the graph: their ends became one entity, or
    #: the entity's type is not in their domain or range
    dropped: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)  # questions to the model, by task and outcome


def write_graph_tables(
    documents: Iterable[DocumentInput],
    tables: Path,
    scratch: Path,
    *,
    settings: ResolveSettings,
    schema: GraphSchema | None,
    embedder: TextEmbedder,
    separations: Collection[Separation] = (),
    min_confidence: float,
    memory_limit_mib: int,
    kept: StagedParts | None = None,
    answers: Answers | None = None,
) -> Consolidated:
    """Write documents, chunks, entities, mentions, relations, attributes, their evidence, and merges.

    Args:
        documents: sorted by id; read once, lazily.
        tables: folder of the Parquet files.
        scratch: folder for staged files and DuckDB's spill.
        schema: facts of which a merge made something that it does not allow are dropped; None: it allows all.
        embedder: tells how alike texts are that speak of one name.
        separations: names that people told apart.
        min_confidence: relations and attributes below are left out of the graph.
        memory_limit_mib: DuckDB's bound.
        kept: staged rows of earlier builds; those of this one are added to it.
        answers: the model's, where the settings ask for them; None: what they would decide stays open.
    """
    import duckdb

    written = scratch / "staged"
    written.mkdir()
    staged = stage(documents, tables, written, kinds_that_count(settings), separations)
    parts = [(written, list(staged.fingerprints))] if kept is None else kept_parts(kept, written, staged)
    counts = {"documents": len(staged.fingerprints)}
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory_limit_mib}MiB'")
        connection.execute("SET temp_directory = ?", [str(scratch / "spill")])
        open_parts(connection, parts)
        connection.execute(CONTENT_ID)
        load_schema(connection, schema)
        # Less memory for tables whose order says nothing. Not for the queries below: with it, a result that
        # is read as a stream can lose the order of its ORDER BY from the second vector of 2,048 rows on.
        connection.execute("SET preserve_insertion_order = false")
        create_tables(connection, MENTIONS)
        create_tables(connection, NAMES)
        names, homonyms = tell_homonyms(connection, settings, embedder)
        link_across(connection, names, settings, embedder, separations, answers)
        create_tables(connection, LINKS)
        merges = resolve_names(connection, names, separations)
        result = Consolidated(counts, len(names.canonical), homonyms, merges)
        create_tables(connection, FACTS, min_confidence)
        describe(connection, settings, embedder, answers)
        connection.execute("SET preserve_insertion_order = true")
        for table, sql in TABLES_OF_A_GRAPH.items():
            counts[table] = write_query(connection, sql, table, tables)
        result.asked = dict(sorted(answers.counts.items())) if answers is not None else {}
        result.dropped = {name: int(_one(connection, sql)) for name, sql in DROPPED.items()}
    return result


def write_query(connection: duckdb.DuckDBPyConnection, sql: str, table: str, tables: Path) -> int:
    """Write a query's rows as a version's table, columns and types as `records` says; returns how many."""
    schema = arrow_schema(TABLES[table])
    with TableWriter(tables / f"{table}.parquet", schema) as writer:
        result: Any = connection.sql(sql)
        for batch in result.to_arrow_reader(ROWS_PER_BATCH):
            writer.write_batch(batch)
    return writer.rows


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]
