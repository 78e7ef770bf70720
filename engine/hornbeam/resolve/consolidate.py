"""From the extractions of single chunks to the tables of one graph.

Identity of an entity is (canonical name, type), or what an import gives as its identity. Every mention and
every piece of evidence is kept; an imported entity whose name stands nowhere in the text has no mention, and
is an entity all the same. Counts and confidences are aggregated:

    relation, attribute    1 − Π (1 − c) over the chunks that state it (independent evidence, noisy or)
    entity                 mean over its mentions of the confidence that the name has this type

The joins and group-bys run in DuckDB over staged Parquet files, in bounded memory, and spill to disk. Every
table is sorted by its id and written by one thread, so equal extractions give equal bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import regex

from hornbeam.extract.result import ChunkExtraction, FoundEntity
from hornbeam.records import TABLES, ChunkState, arrow_schema, content_id
from hornbeam.resolve.names import canonical_name
from hornbeam.store.table_files import ROWS_PER_BATCH, TableWriter, TableWriters

if TYPE_CHECKING:
    import duckdb

_DESCRIPTION_CHARACTERS = 240
#: A row of a table is a sentence of its own.
_SENTENCE_END = regex.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n{2,}|\n(?=[^\n\t]*\t)")


@dataclass(frozen=True, slots=True)
class ChunkInput:
    """A chunk and what extraction found in it; a chunk without a result has `extraction` None."""

    chunk_id: str
    document_id: str
    start: int
    end: int
    text: str
    tokens: int
    state: ChunkState
    reason: str
    extraction: ChunkExtraction | None
    rungs: str = ""


@dataclass(frozen=True, slots=True)
class DocumentInput:
    document_id: str
    sources: tuple[str, ...]
    title: str
    text: str
    language: str
    chunks: tuple[ChunkInput, ...]


def write_graph_tables(
    documents: Iterable[DocumentInput],
    tables: Path,
    scratch: Path,
    *,
    min_confidence: float,
    memory_limit_mib: int,
) -> dict[str, int]:
    """Write documents, chunks, entities, mentions, relations, attributes and their evidence.

    Args:
        documents: sorted by id; read once, lazily.
        tables: folder of the Parquet files.
        scratch: folder for staged files and DuckDB's spill.
        min_confidence: relations and attributes below are left out of the graph.
        memory_limit_mib: DuckDB's bound.

    Returns:
        rows by table.
    """
    import duckdb

    counts = _stage(documents, tables, scratch)
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory_limit_mib}MiB'")
        connection.execute("SET temp_directory = ?", [str(scratch / "spill")])
        for name in _STAGED:
            connection.execute(
                f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{_sql_path(scratch, name)}')"
            )
        # Less memory for tables whose order says nothing. Not for the queries below: with it, a result that
        # is read as a stream can lose the order of its ORDER BY from the second vector of 2,048 rows on.
        connection.execute("SET preserve_insertion_order = false")
        for name, sql in _FACTS.items():
            connection.execute(f"CREATE TEMP TABLE {name} AS {sql}", _arguments(sql, min_confidence))
        connection.execute("SET preserve_insertion_order = true")
        for table, sql in _QUERIES.items():
            counts[table] = write_query(connection, sql, table, tables)
    return counts


def write_query(connection: duckdb.DuckDBPyConnection, sql: str, table: str, tables: Path) -> int:
    """Write a query's rows as a version's table, columns and types as `records` says; returns how many."""
    schema = arrow_schema(TABLES[table])
    with TableWriter(tables / f"{table}.parquet", schema) as writer:
        result: Any = connection.sql(sql)
        for batch in result.to_arrow_reader(ROWS_PER_BATCH):
            writer.write_batch(batch)
    return writer.rows


def _arguments(sql: str, min_confidence: float) -> list[float]:
    return [min_confidence] * sql.count("?")


def _sql_path(folder: Path, name: str) -> str:
    return str(folder / f"{name}.parquet").replace("'", "''")


# Staging: one pass over the documents.

_STAGED = {
    "found_chunks": (
        ("chunk_id", "str"), ("document_id", "str"), ("start", "int"), ("end", "int"), ("text", "str"),
        ("tokens", "int"), ("state", "str"), ("reason", "str"), ("rungs", "str"),
    ),
    "found_entities": (
        ("entity_id", "str"), ("canonical", "str"), ("type", "str"), ("name", "str"), ("chunk_id", "str"),
        ("start", "int"), ("end", "int"), ("surface", "str"), ("confidence", "float"), ("sentence", "str"),
    ),
    "found_relations": (
        ("relation_id", "str"), ("head_id", "str"), ("type", "str"), ("tail_id", "str"),
        ("chunk_id", "str"), ("confidence", "float"), ("sentence", "str"),
    ),
    "found_attributes": (
        ("attribute_id", "str"), ("entity_id", "str"), ("type", "str"), ("value", "str"),
        ("chunk_id", "str"), ("start", "int"), ("end", "int"), ("confidence", "float"),
    ),
}  # fmt: skip


def _stage(documents: Iterable[DocumentInput], tables: Path, scratch: Path) -> dict[str, int]:
    """Documents, which come sorted, go straight to their table; chunks and facts to staged files."""
    import pyarrow as pa

    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    with TableWriters() as writers:
        for name, columns in _STAGED.items():
            writers.open(name, scratch, pa.schema([(column, kinds[kind]) for column, kind in columns]))
        writers.open("documents", tables, arrow_schema(TABLES["documents"]))
        for document in documents:
            writers.add("documents", {
                "document_id": document.document_id, "source": document.sources[0], "title": document.title,
                "text": document.text, "language": document.language, "sources": list(document.sources),
            })  # fmt: skip
            for chunk in document.chunks:
                writers.add("found_chunks", {
                    "chunk_id": chunk.chunk_id, "document_id": chunk.document_id, "start": chunk.start,
                    "end": chunk.end, "text": chunk.text, "tokens": chunk.tokens, "state": chunk.state.value,
                    "reason": chunk.reason, "rungs": chunk.rungs,
                })  # fmt: skip
                for name, row in _fact_rows(chunk):
                    writers.add(name, row)
        return {"documents": writers.rows("documents")}


def _fact_rows(chunk: ChunkInput) -> Iterator[tuple[str, dict[str, Any]]]:
    if chunk.extraction is None:
        return
    identities = [_entity_id(entity) for entity in chunk.extraction.entities]
    sentences = Sentences(chunk.text)
    for entity, entity_id in zip(chunk.extraction.entities, identities, strict=True):
        found = {
            "entity_id": entity_id, "canonical": entity.identity or canonical_name(entity.name),
            "type": entity.type, "name": entity.name, "chunk_id": chunk.chunk_id,
            "confidence": entity.confidence,
        }  # fmt: skip
        for start, end in entity.spans:
            yield "found_entities", found | {
                "start": start, "end": end, "surface": chunk.text[start:end],
                "sentence": sentences.around(start, end),
            }  # fmt: skip
        if not entity.spans:
            yield "found_entities", found | {"start": None, "end": None, "surface": None, "sentence": ""}
    for relation in chunk.extraction.relations:
        head, tail = identities[relation.head], identities[relation.tail]
        if head == tail and relation.head != relation.tail:
            continue  # two written forms of one entity
        yield "found_relations", {
            "relation_id": content_id("r", head, relation.type, tail), "head_id": head, "type": relation.type,
            "tail_id": tail, "chunk_id": chunk.chunk_id, "confidence": relation.confidence,
            "sentence": _sentence_of(chunk.extraction.entities[relation.head], sentences),
        }  # fmt: skip
    for attribute in chunk.extraction.attributes:
        owner = identities[attribute.entity]
        yield "found_attributes", {
            "attribute_id": content_id("a", owner, attribute.type, attribute.value.casefold()),
            "entity_id": owner, "type": attribute.type, "value": attribute.value,
            "chunk_id": chunk.chunk_id, "start": attribute.start, "end": attribute.end,
            "confidence": attribute.confidence,
        }  # fmt: skip


def _sentence_of(entity: FoundEntity, sentences: Sentences) -> str:
    return sentences.around(*entity.spans[0]) if entity.spans else ""


def _entity_id(entity: FoundEntity) -> str:
    return content_id("e", entity.identity or canonical_name(entity.name), entity.type)


class Sentences:
    """The sentences of a chunk, found once: there are several mentions in each."""

    def __init__(self, text: str) -> None:
        self._text = text
        gaps = [match.span() for match in _SENTENCE_END.finditer(text)]
        self._starts = [0, *(end for _, end in gaps)]  # of sentences
        self._ends = [*(start for start, _ in gaps), len(text)]

    def around(self, start: int, end: int) -> str:
        """The sentence (or sentences) that hold a span, white space as single blanks, cut to a bound."""
        left = self._starts[bisect_right(self._starts, start) - 1]
        right = self._ends[bisect_left(self._ends, end)]
        sentence = " ".join(self._text[left:right].split())
        if len(sentence) <= _DESCRIPTION_CHARACTERS:
            return sentence
        return sentence[:_DESCRIPTION_CHARACTERS].rstrip() + "…"


# The tables, in SQL.

_FACTS = {
    # One row per distinct fact and chunk, then per fact. Facts below the threshold end here.
    "relation_facts": """
        SELECT relation_id, any_value(head_id) AS head_id, any_value(type) AS type,
               any_value(tail_id) AS tail_id, count(*)::DOUBLE AS weight,
               1 - product(1 - confidence ORDER BY chunk_id) AS confidence,
               arg_max(sentence, (confidence, chunk_id)) AS description
        FROM (SELECT relation_id, chunk_id, any_value(head_id) AS head_id, any_value(type) AS type,
                     any_value(tail_id) AS tail_id, max(confidence) AS confidence, min(sentence) AS sentence
              FROM found_relations GROUP BY relation_id, chunk_id)
        GROUP BY relation_id HAVING 1 - product(1 - confidence ORDER BY chunk_id) >= ?""",
    "attribute_facts": """
        SELECT attribute_id, any_value(entity_id) AS entity_id, any_value(type) AS type,
               min(value) AS value, 1 - product(1 - confidence ORDER BY chunk_id) AS confidence
        FROM (SELECT attribute_id, chunk_id, any_value(entity_id) AS entity_id, any_value(type) AS type,
                     min(value) AS value, max(confidence) AS confidence
              FROM found_attributes GROUP BY attribute_id, chunk_id)
        GROUP BY attribute_id HAVING 1 - product(1 - confidence ORDER BY chunk_id) >= ?""",
    "mention_rows": """
        SELECT entity_id, chunk_id, start, "end", any_value(surface) AS surface,
               max(confidence) AS confidence, any_value(type) AS type, min(name) AS name,
               min(sentence) AS sentence
        FROM found_entities GROUP BY entity_id, chunk_id, start, "end\"""",
    "written_forms": """
        SELECT entity_id, name, count(*) AS times FROM mention_rows GROUP BY entity_id, name""",
    "degrees": """
        SELECT entity_id, count(*) AS degree
        FROM (SELECT head_id AS entity_id FROM relation_facts UNION ALL SELECT tail_id FROM relation_facts)
        GROUP BY entity_id""",
}

_QUERIES = {
    "chunks": """
        SELECT chunk_id, document_id, start, "end", text, tokens, state, reason, rungs
        FROM found_chunks ORDER BY chunk_id""",
    "entities": """
        WITH forms AS (
            SELECT entity_id, list(name ORDER BY times DESC, name) AS names
            FROM written_forms GROUP BY entity_id)
        SELECT m.entity_id, any_value(f.names)[1] AS name, any_value(m.type) AS type,
               coalesce(arg_max(m.sentence, (m.confidence, m.chunk_id, m.start, m."end"))
                        FILTER (WHERE m.start IS NOT NULL), '') AS description,
               list_sort(any_value(f.names)[2:]) AS aliases, count(m.start) AS mentions,
               coalesce(any_value(d.degree), 0) AS degree,
               least(1.0, sum(m.confidence ORDER BY m.chunk_id, m.start, m."end") / count(*)) AS confidence
        FROM mention_rows m JOIN forms f USING (entity_id) LEFT JOIN degrees d USING (entity_id)
        GROUP BY m.entity_id ORDER BY m.entity_id""",
    "mentions": """
        SELECT entity_id, chunk_id, start, "end", surface, confidence
        FROM mention_rows WHERE start IS NOT NULL ORDER BY entity_id, chunk_id, start, "end\"""",
    "relations": """
        SELECT relation_id, head_id, type, tail_id, weight, confidence, description
        FROM relation_facts ORDER BY relation_id""",
    "relation_evidence": """
        SELECT relation_id, chunk_id, max(confidence) AS confidence, NULL::BOOLEAN AS verified
        FROM found_relations WHERE relation_id IN (SELECT relation_id FROM relation_facts)
        GROUP BY relation_id, chunk_id ORDER BY relation_id, chunk_id""",
    "attributes": """
        SELECT attribute_id, entity_id, type, value, confidence FROM attribute_facts ORDER BY attribute_id""",
    "attribute_evidence": """
        SELECT attribute_id, chunk_id, start, "end", max(confidence) AS confidence
        FROM found_attributes WHERE attribute_id IN (SELECT attribute_id FROM attribute_facts)
        GROUP BY attribute_id, chunk_id, start, "end" ORDER BY attribute_id, chunk_id, start, "end\"""",
}
