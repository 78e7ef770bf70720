"""What of a graph is decided in Python, between the queries: senses, links, entities, descriptions.

Each step reads tables of the connection and leaves others there (`graph_queries`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from hornbeam.index.embedder import TextEmbedder
from hornbeam.resolve.across import Judge, find_across
from hornbeam.resolve.answers import Answers
from hornbeam.resolve.descriptions import Pile, summarised
from hornbeam.resolve.evidence import EvidenceKind, kinds_that_count
from hornbeam.resolve.graph_queries import DOCUMENT_IDS, GIVE_SENSES, NAMES, PILES, create_tables
from hornbeam.resolve.judging import Pair, probabilities
from hornbeam.resolve.resolution import Names, Resolved, read_edges, read_names, resolve
from hornbeam.resolve.senses import candidates, find_senses
from hornbeam.resolve.separations import Separation, merge_id
from hornbeam.settings import ResolveSettings

if TYPE_CHECKING:
    import duckdb

#: Names nearest to a name that the model is asked about, where the settings name no number.
_ASKED_NEIGHBOURS = 5


def tell_homonyms(
    connection: duckdb.DuckDBPyConnection, settings: ResolveSettings, embedder: TextEmbedder
) -> tuple[Names, int]:
    """Give the senses of homonyms names of their own, in `name_mentions` and `names`; all names, and how many
    they became more."""
    import pyarrow as pa

    names = read_names(connection)
    some = candidates(names.canonical, names.types, names.documents, settings)
    found = find_senses(connection, some, embedder)
    if not found:
        return names, 0
    connection.register("given", pa.Table.from_pylist([asdict(sense) for sense in found]))
    connection.execute(GIVE_SENSES)
    connection.unregister("given")
    connection.execute("DROP TABLE names")
    create_tables(connection, NAMES)
    return read_names(connection), len({(sense.name_id, sense.sense) for sense in found})


def link_across(
    connection: duckdb.DuckDBPyConnection,
    names: Names,
    settings: ResolveSettings,
    embedder: TextEmbedder,
    separations: Collection[Separation],
    answers: Answers | None,
) -> None:
    """`across_links`: what is told of names whatever document they stand in."""
    import pyarrow as pa

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


def describe(
    connection: duckdb.DuckDBPyConnection,
    settings: ResolveSettings,
    embedder: TextEmbedder,
    answers: Answers | None,
) -> None:
    """`summaries`: descriptions of the entities of which there are many."""
    import pyarrow as pa

    told: dict[str, str] = {}
    if settings.summarise_from and answers is not None:
        rows = connection.execute(PILES.format(least=settings.summarise_from)).fetchall()
        told = summarised([Pile(*row) for row in rows], embedder, answers)
    columns = {"entity_id": pa.array(list(told), pa.string()), "text": pa.array(told.values(), pa.string())}
    connection.register("given", pa.table(columns))
    connection.execute("CREATE TEMP TABLE summaries AS SELECT * FROM given")
    connection.unregister("given")


def resolve_names(
    connection: duckdb.DuckDBPyConnection, names: Names, separations: Collection[Separation]
) -> dict[str, int]:
    """From the tables `names` and `links` to `name_entities`, `local_homes` and `decided`; how many links
    have joined something, by their kind."""
    document_ids = [row[0] for row in connection.execute(DOCUMENT_IDS).fetchall()]
    resolved = resolve(names, read_edges(connection), document_ids, separations)
    _load(connection, resolved, document_ids)
    return dict(
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
