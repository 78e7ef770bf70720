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

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.index.embedder import TextEmbedder
from hornbeam.records import TABLES, arrow_schema
from hornbeam.resolve.across import Judge, find_across
from hornbeam.resolve.answers import Answers
from hornbeam.resolve.descriptions import Pile, summarised
from hornbeam.resolve.evidence import EvidenceKind, kinds_that_count
from hornbeam.resolve.judging import Pair, probabilities
from hornbeam.resolve.resolution import Resolved, read_edges, read_names, resolve
from hornbeam.resolve.senses import candidates, find_senses
from hornbeam.resolve.separations import Separation, merge_id
from hornbeam.resolve.staged_parts import StagedParts
from hornbeam.resolve.staging import STAGED, DocumentInput, StagedDocuments, stage
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ResolveSettings
from hornbeam.store.schema_tables import create_schema_tables
from hornbeam.store.table_files import ROWS_PER_BATCH, TableWriter

if TYPE_CHECKING:
    import duckdb


#: Names nearest to a name that the model is asked about, where the settings name no number.
_ASKED_NEIGHBOURS = 5


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
    parts = [(written, list(staged.fingerprints))] if kept is None else _kept_parts(kept, written, staged)
    counts = {"documents": len(staged.fingerprints)}
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory_limit_mib}MiB'")
        connection.execute("SET temp_directory = ?", [str(scratch / "spill")])
        _open_parts(connection, parts)
        connection.execute(_CONTENT_ID)
        _load_schema(connection, schema)
        # Less memory for tables whose order says nothing. Not for the queries below: with it, a result that
        # is read as a stream can lose the order of its ORDER BY from the second vector of 2,048 rows on.
        connection.execute("SET preserve_insertion_order = false")
        _create(connection, _MENTIONS)
        _create(connection, _NAMES)
        result = Consolidated(counts)
        result.homonyms = _tell_homonyms(connection, settings, embedder)
        _link_across(connection, settings, embedder, separations, answers)
        _create(connection, _LINKS)
        _resolve(connection, separations, result)
        _create(connection, _FACTS, min_confidence)
        _describe(connection, settings, embedder, answers)
        connection.execute("SET preserve_insertion_order = true")
        for table, sql in _QUERIES.items():
            counts[table] = write_query(connection, sql, table, tables)
        result.asked = dict(sorted(answers.counts.items())) if answers is not None else {}
        result.dropped = {name: int(_one(connection, sql)) for name, sql in _DROPPED.items()}
    return result


def write_query(connection: duckdb.DuckDBPyConnection, sql: str, table: str, tables: Path) -> int:
    """Write a query's rows as a version's table, columns and types as `records` says; returns how many."""
    schema = arrow_schema(TABLES[table])
    with TableWriter(tables / f"{table}.parquet", schema) as writer:
        result: Any = connection.sql(sql)
        for batch in result.to_arrow_reader(ROWS_PER_BATCH):
            writer.write_batch(batch)
    return writer.rows


def _create(connection: duckdb.DuckDBPyConnection, queries: dict[str, str], *arguments: float) -> None:
    for name, sql in queries.items():
        connection.execute(f"CREATE TEMP TABLE {name} AS {sql}", list(arguments) * sql.count("?"))


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


#: A folder of staged files, and the documents whose rows in it count.
_Part = tuple[Path, list[str]]


def _kept_parts(kept: StagedParts, written: Path, staged: StagedDocuments) -> list[_Part]:
    """What was just staged becomes a part; all of them, with what counts in each."""
    parts: list[_Part] = []
    if staged.written:
        kept.add(written)
    else:
        parts.append((written, []))  # tables without rows: there may be no part at all
    kept.tidy(kept.places(staged.fingerprints))
    documents_of: dict[str, list[str]] = defaultdict(list)
    for part, document in kept.places(staged.fingerprints):
        documents_of[part].append(document)
    return [*parts, *((part.directory, documents_of[part.name]) for part in kept.parts)]


def _open_parts(connection: duckdb.DuckDBPyConnection, parts: Sequence[_Part]) -> None:
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


def _load_schema(connection: duckdb.DuckDBPyConnection, schema: GraphSchema | None) -> None:
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


def _tell_homonyms(
    connection: duckdb.DuckDBPyConnection, settings: ResolveSettings, embedder: TextEmbedder
) -> int:
    """Give the senses of homonyms names of their own, in `name_mentions` and `names`; how many."""
    import pyarrow as pa

    names = read_names(connection)
    some = candidates(names.canonical, names.types, names.documents, settings)
    found = find_senses(connection, some, embedder)
    if not found:
        return 0
    connection.register("given", pa.Table.from_pylist([asdict(sense) for sense in found]))
    connection.execute(_GIVE_SENSES)
    connection.unregister("given")
    connection.execute("DROP TABLE names")
    _create(connection, _NAMES)
    return len({(sense.name_id, sense.sense) for sense in found})


def _link_across(
    connection: duckdb.DuckDBPyConnection,
    settings: ResolveSettings,
    embedder: TextEmbedder,
    separations: Collection[Separation],
    answers: Answers | None,
) -> None:
    """`across_links`: what is told of names whatever document they stand in."""
    import pyarrow as pa

    names = read_names(connection)
    apart = {separation.merge_id for separation in separations}
    kinds = kinds_that_count(settings)
    asks = answers is not None and EvidenceKind.MODEL in kinds
    judge = _judge(answers, settings.ask_threshold) if answers is not None and asks else None
    neighbours = settings.neighbours or (_ASKED_NEIGHBOURS if asks else 0)
    found = [
        link
        for link in find_across(connection, names, embedder, neighbours, kinds, judge)
        if merge_id(None, *((names.canonical[n], names.types[n]) for n in (link.alias, link.target)))
        not in apart
    ]
    columns = {"alias": pa.int64(), "target": pa.int64(), "kind": pa.string(), "score": pa.float64()}
    given = pa.Table.from_pylist([asdict(link) for link in found], schema=pa.schema(columns))
    connection.register("given", given)
    connection.execute("CREATE TEMP TABLE across_links AS SELECT * FROM given")
    connection.unregister("given")


def _judge(answers: Answers, threshold: float) -> Judge:
    def judge(pairs: Sequence[Pair]) -> list[float | None]:
        found = probabilities(pairs, answers)
        return [one if one is not None and one >= threshold else None for one in found]

    return judge


def _describe(
    connection: duckdb.DuckDBPyConnection,
    settings: ResolveSettings,
    embedder: TextEmbedder,
    answers: Answers | None,
) -> None:
    """`summaries`: descriptions of the entities of which there are many."""
    import pyarrow as pa

    told: dict[str, str] = {}
    if settings.summarise_from and answers is not None:
        rows = connection.execute(_PILES.format(least=settings.summarise_from)).fetchall()
        told = summarised([Pile(*row) for row in rows], embedder, answers)
    columns = {"entity_id": pa.array(list(told), pa.string()), "text": pa.array(told.values(), pa.string())}
    connection.register("given", pa.table(columns))
    connection.execute("CREATE TEMP TABLE summaries AS SELECT * FROM given")
    connection.unregister("given")


def _resolve(
    connection: duckdb.DuckDBPyConnection, separations: Collection[Separation], result: Consolidated
) -> None:
    """From the tables `names` and `links` to `name_entities`, `local_entities` and `decided`."""
    names = read_names(connection)
    document_ids = [row[0] for row in connection.execute(_DOCUMENT_IDS).fetchall()]
    resolved = resolve(names, read_edges(connection), document_ids, separations)
    result.names = len(names.canonical)
    _load(connection, resolved, document_ids)
    result.merges = dict(
        connection.execute(
            "SELECT kind, count(*) FROM decided JOIN links USING (link) GROUP BY kind ORDER BY kind"
        ).fetchall()
    )


def _load(connection: duckdb.DuckDBPyConnection, resolved: Resolved, document_ids: list[str]) -> None:
    import pyarrow as pa

    local = list(resolved.local.items())
    tables = {
        "name_entities": {
            "number": pa.array(range(len(resolved.entity_of)), pa.int64()),
            "entity_id": pa.array(resolved.entity_of, pa.string()),
            "type": pa.array(resolved.type_of, pa.string()),
            "is_first": pa.array(resolved.first_name_of, pa.bool_()),
        },
        "local_homes": {
            "document_id": pa.array([document_ids[document] for (document, _), _ in local], pa.string()),
            "number": pa.array([name for (_, name), _ in local], pa.int64()),
            "home": pa.array([home for _, home in local], pa.int64()),
        },
        "decided": {
            "link": pa.array([link for link, _, _ in resolved.merges], pa.int64()),
            "merge_id": pa.array([merge for _, merge, _ in resolved.merges], pa.string()),
            "in_document": pa.array([local for _, _, local in resolved.merges], pa.bool_()),
        },
    }
    for name, columns in tables.items():
        connection.register("given", pa.table(columns))
        connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")


# The tables, in SQL.

#: What is told of an entity: its descriptions, or, where it has none, the sentences of its mentions.
_PILES = """
    SELECT entity_id, any_value(name), list(DISTINCT told ORDER BY told) AS texts
    FROM (SELECT entity_id, min(name) OVER (PARTITION BY entity_id) AS name,
                 CASE WHEN count(described) OVER (PARTITION BY entity_id) > 0 THEN described ELSE sentence END
                     AS told
          FROM mention_rows WHERE start IS NOT NULL)
    WHERE told <> '' GROUP BY entity_id HAVING count(DISTINCT told) >= {least} ORDER BY entity_id"""

#: `records.content_id` of three parts. DuckDB's `strlen` counts bytes; no text of a table has 2³² of them.
_CONTENT_ID = """
    CREATE TEMP MACRO length_bytes(text) AS unhex(
        lpad(to_hex(strlen(text) & 255), 2, '0') || lpad(to_hex((strlen(text) >> 8) & 255), 2, '0') ||
        lpad(to_hex((strlen(text) >> 16) & 255), 2, '0') || lpad(to_hex(strlen(text) >> 24), 2, '0') ||
        '00000000');
    CREATE TEMP MACRO content_id(prefix, first, second, third) AS prefix || left(sha256(
        length_bytes(first) || encode(first) || length_bytes(second) || encode(second) ||
        length_bytes(third) || encode(third)), 20)"""

_DOCUMENT_IDS = "SELECT document_id FROM document_numbers ORDER BY document"

_MENTIONS = {
    "name_mentions": """
        SELECT name_id, chunk_id, start, "end", name_id AS found_id, '' AS sense,
               any_value(document_id) AS document_id,
               any_value(surface) AS surface, max(confidence) AS confidence,
               any_value(canonical) AS canonical, any_value(type) AS type, min(name) AS name,
               min(sentence) AS sentence, min(described) AS described
        FROM found_names GROUP BY name_id, chunk_id, start, "end\"""",
}
_GIVE_SENSES = """
    UPDATE name_mentions SET name_id = content_id('e', canonical, type, g.sense), sense = g.sense
    FROM given g WHERE g.name_id = name_mentions.found_id AND g.document_id = name_mentions.document_id"""
_NAMES = {
    "names": """
        SELECT row_number() OVER (ORDER BY name_id) - 1 AS number, *
        FROM (SELECT name_id, any_value(canonical) AS canonical, any_value(type) AS type,
                     any_value(sense) AS sense, sum(confidence ORDER BY chunk_id, start, "end") AS votes,
                     count(DISTINCT document_id) AS documents
              FROM name_mentions GROUP BY name_id)""",
}
_LINKS = {
    "all_links": """
        WITH of_document AS (SELECT DISTINCT document_id, found_id, name_id FROM name_mentions),
        first_place AS (
            SELECT number, document_id, chunk_id, start, "end"
            FROM name_mentions JOIN names USING (name_id)
            WHERE start IS NOT NULL AND number IN (SELECT alias FROM across_links)
            QUALIFY row_number() OVER (PARTITION BY number ORDER BY document_id, chunk_id, start, "end") = 1)
        SELECT a.number AS alias, t.number AS target, kind, score, l.document_id, chunk_id, start, "end"
        FROM found_links l
        JOIN of_document am ON am.document_id = l.document_id AND am.found_id = l.alias_id
        JOIN of_document tm ON tm.document_id = l.document_id AND tm.found_id = l.target_id
        JOIN names a ON a.name_id = am.name_id JOIN names t ON t.name_id = tm.name_id
        UNION ALL
        SELECT x.alias, x.target, x.kind, x.score, p.document_id, p.chunk_id, p.start, p."end"
        FROM across_links x JOIN first_place p ON p.number = x.alias""",
    "document_numbers": """
        SELECT row_number() OVER (ORDER BY document_id) - 1 AS document, document_id
        FROM (SELECT DISTINCT document_id FROM all_links)""",
    # Most certain first; what follows is only there to make the order total.
    "links": """
        SELECT row_number() OVER (ORDER BY score DESC, document_id, kind, alias, target, chunk_id, start,
                                  "end") - 1 AS link, document, l.*
        FROM all_links l JOIN document_numbers USING (document_id)""",
}

_FACTS = {
    "local_entities": """
        SELECT h.document_id, n.name_id, e.entity_id, e.type
        FROM local_homes h JOIN names n USING (number) JOIN name_entities e ON e.number = h.home""",
    # Where a name stands in a document, whose it is.
    "whose": """
        SELECT m.document_id, m.name_id, m.found_id, m.sense, coalesce(l.entity_id, e.entity_id) AS entity_id,
               coalesce(l.type, e.type) AS type, l.entity_id IS NULL AND e.is_first AS is_first
        FROM (SELECT DISTINCT document_id, name_id, found_id, sense FROM name_mentions) m
        JOIN names n USING (name_id) JOIN name_entities e USING (number)
        LEFT JOIN local_entities l ON l.document_id = m.document_id AND l.name_id = m.name_id""",
    "mention_rows": """
        SELECT w.entity_id, m.chunk_id, m.start, m."end", any_value(m.surface) AS surface,
               max(m.confidence) AS confidence, any_value(w.type) AS type, min(m.name) AS name,
               min(m.sentence) AS sentence, min(m.described) AS described, bool_or(w.is_first) AS is_first,
               max(CASE WHEN w.is_first THEN m.sense END) AS sense
        FROM name_mentions m JOIN whose w ON w.document_id = m.document_id AND w.name_id = m.name_id
        GROUP BY w.entity_id, m.chunk_id, m.start, m."end\"""",
    "stated_relations": """
        SELECT content_id('r', h.entity_id, r.type, t.entity_id) AS relation_id, h.entity_id AS head_id,
               r.type, t.entity_id AS tail_id, r.chunk_id, r.confidence, r.sentence, r.verified
        FROM found_relations r
        JOIN whose h ON h.document_id = r.document_id AND h.found_id = r.head_name
        JOIN whose t ON t.document_id = r.document_id AND t.found_id = r.tail_name
        SEMI JOIN allowed_relations a ON a.type = r.type AND a.head = h.type AND a.tail = t.type
        WHERE h.entity_id <> t.entity_id OR r.loop""",
    "stated_attributes": """
        SELECT content_id('a', o.entity_id, x.type, x.folded) AS attribute_id, o.entity_id, x.type, x.value,
               x.chunk_id, x.start, x."end", x.confidence, x.verified
        FROM found_attributes x
        JOIN whose o ON o.document_id = x.document_id AND o.found_id = x.owner_name
        SEMI JOIN allowed_attributes a ON a.type = x.type AND a.owner = o.type""",
    # One row per distinct fact and chunk, then per fact. Facts below the threshold end here, and those that
    # were refuted in every chunk; a chunk in which a fact was refuted adds nothing to its confidence.
    "relation_facts": """
        SELECT relation_id, any_value(head_id) AS head_id, any_value(type) AS type,
               any_value(tail_id) AS tail_id, count(*)::DOUBLE AS weight,
               1 - product(1 - confidence ORDER BY chunk_id) AS confidence,
               arg_max(sentence, (confidence, chunk_id)) AS description
        FROM (SELECT relation_id, chunk_id, any_value(head_id) AS head_id, any_value(type) AS type,
                     any_value(tail_id) AS tail_id, min(sentence) AS sentence,
                     coalesce(max(confidence) FILTER (verified IS DISTINCT FROM false), 0) AS confidence,
                     bool_or(verified IS DISTINCT FROM false) AS holds
              FROM stated_relations GROUP BY relation_id, chunk_id)
        GROUP BY relation_id HAVING bool_or(holds) AND 1 - product(1 - confidence ORDER BY chunk_id) >= ?""",
    "attribute_facts": """
        SELECT attribute_id, any_value(entity_id) AS entity_id, any_value(type) AS type,
               min(value) AS value, 1 - product(1 - confidence ORDER BY chunk_id) AS confidence
        FROM (SELECT attribute_id, chunk_id, any_value(entity_id) AS entity_id, any_value(type) AS type,
                     min(value) AS value,
                     coalesce(max(confidence) FILTER (verified IS DISTINCT FROM false), 0) AS confidence,
                     bool_or(verified IS DISTINCT FROM false) AS holds
              FROM stated_attributes GROUP BY attribute_id, chunk_id)
        GROUP BY attribute_id HAVING bool_or(holds) AND 1 - product(1 - confidence ORDER BY chunk_id) >= ?""",
    # A cluster of names is called by its first name, in the form that is written most.
    "written_forms": """
        SELECT entity_id, name, count(*) AS times, bool_or(is_first) AS is_first
        FROM mention_rows GROUP BY entity_id, name""",
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
            SELECT entity_id, list(name ORDER BY is_first DESC, times DESC, name) AS names
            FROM written_forms GROUP BY entity_id)
        SELECT m.entity_id, any_value(f.names)[1] AS name, any_value(m.type) AS type,
               coalesce(any_value(s.text),
                        arg_max(m.described, (m.confidence, m.chunk_id, m.start, m."end"))
                        FILTER (WHERE m.described IS NOT NULL),
                        arg_max(m.sentence, (m.confidence, m.chunk_id, m.start, m."end"))
                        FILTER (WHERE m.start IS NOT NULL), '') AS description,
               list_sort(any_value(f.names)[2:]) AS aliases, count(m.start) AS mentions,
               coalesce(any_value(d.degree), 0) AS degree,
               least(1.0, sum(m.confidence ORDER BY m.chunk_id, m.start, m."end") / count(*)) AS confidence,
               coalesce(max(m.sense), '') AS sense
        FROM mention_rows m JOIN forms f USING (entity_id) LEFT JOIN degrees d USING (entity_id)
             LEFT JOIN summaries s USING (entity_id)
        GROUP BY m.entity_id ORDER BY m.entity_id""",
    "mentions": """
        SELECT entity_id, chunk_id, start, "end", surface, confidence
        FROM mention_rows WHERE start IS NOT NULL ORDER BY entity_id, chunk_id, start, "end\"""",
    "relations": """
        SELECT relation_id, head_id, type, tail_id, weight, confidence, description
        FROM relation_facts ORDER BY relation_id""",
    "relation_evidence": """
        SELECT relation_id, chunk_id, max(confidence) AS confidence, bool_or(verified) AS verified
        FROM stated_relations WHERE relation_id IN (SELECT relation_id FROM relation_facts)
        GROUP BY relation_id, chunk_id ORDER BY relation_id, chunk_id""",
    "attributes": """
        SELECT attribute_id, entity_id, type, value, confidence FROM attribute_facts ORDER BY attribute_id""",
    "attribute_evidence": """
        SELECT attribute_id, chunk_id, start, "end", max(confidence) AS confidence,
               bool_or(verified) AS verified
        FROM stated_attributes WHERE attribute_id IN (SELECT attribute_id FROM attribute_facts)
        GROUP BY attribute_id, chunk_id, start, "end" ORDER BY attribute_id, chunk_id, start, "end\"""",
    "merges": """
        WITH forms AS (
            SELECT name_id, arg_max(name, (times, name)) AS name
            FROM (SELECT name_id, name, count(*) AS times FROM name_mentions GROUP BY name_id, name)
            GROUP BY name_id)
        SELECT d.merge_id, w.entity_id, tf.name, t.type, af.name AS merged_name, a.type AS merged_type,
               CASE WHEN d.in_document THEN l.document_id END AS document_id, l.kind, l.score, l.chunk_id,
               l.start, l."end"
        FROM decided d JOIN links l USING (link)
        JOIN names a ON a.number = l.alias JOIN names t ON t.number = l.target
        JOIN forms af ON af.name_id = a.name_id JOIN forms tf ON tf.name_id = t.name_id
        JOIN whose w ON w.document_id = l.document_id AND w.name_id = a.name_id
        ORDER BY d.merge_id""",
}

_DROPPED = {
    "relations": "SELECT (SELECT count(*) FROM found_relations) - (SELECT count(*) FROM stated_relations)",
    "attributes": "SELECT (SELECT count(*) FROM found_attributes) - (SELECT count(*) FROM stated_attributes)",
}
