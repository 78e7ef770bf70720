"""Whatever names documents hold: resolution does not depend on order, and undoing is exact."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hornbeam.extract.result import ChunkExtraction, FoundEntity, FoundRelation
from hornbeam.records import ChunkState, Merge
from hornbeam.resolve.consolidate import write_graph_tables
from hornbeam.resolve.separations import Separation, separation_of
from hornbeam.resolve.staging import ChunkInput, DocumentInput
from hornbeam.settings import ResolveSettings
from support.version_by_hand import HashedWords

Rows = dict[str, list[dict[str, Any]]]

NAMES = (
    "Ramey Idriss", "Idriss", "R. Idriss", "Anna Idriss", "Greyfin Institute", "GI", "Goose Inn", "Peña",
    "Pena", "Москва", "Москве", "宋江", "公明", "Tobolsk Bay", "Tobolesk Bay",
)  # fmt: skip
GLUE = (", also known as ", " (", ") ", " and ", ". ", "，表字", " met ")


@st.composite
def documents(draw: st.DrawFn) -> list[DocumentInput]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        text, found, spans = "", [], {}
        for name, glue in draw(
            st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(GLUE)), min_size=1, max_size=7)
        ):
            kind = draw(st.sampled_from(("person", "organization")))
            spans.setdefault((name, kind), []).append((len(text), len(text) + len(name)))
            text += name + glue
        for (name, kind), places in spans.items():
            found.append(FoundEntity(name=name, type=kind, confidence=0.75, spans=tuple(places)))
        relations = [
            FoundRelation(head=row, type="knows", tail=row + 1, confidence=0.5)
            for row in range(len(found) - 1)
        ]
        extraction = ChunkExtraction(entities=tuple(found), relations=tuple(relations))
        key = f"d{number}"
        chunk = ChunkInput(f"c{number}", key, 0, len(text), text, 9, ChunkState.DONE, "", extraction)
        made.append(DocumentInput(key, (key,), key, text, "en", (chunk,)))
    return made


def write(made: list[DocumentInput], separations: list[Separation]) -> Rows:
    with TemporaryDirectory() as folder:
        tables, scratch = Path(folder, "tables"), Path(folder, "scratch")
        tables.mkdir()
        scratch.mkdir()
        write_graph_tables(
            made,
            tables,
            scratch,
            settings=ResolveSettings(),
            schema=None,
            embedder=HashedWords(),
            separations=separations,
            min_confidence=0.0,
            memory_limit_mib=512,
        )
        return {path.stem: pq.read_table(path).to_pylist() for path in tables.glob("*.parquet")}


def undone_one_by_one(made: list[DocumentInput]) -> tuple[Rows, list[Separation]]:
    rows, apart = write(made, []), []
    while rows["merges"]:
        merge = Merge(**rows["merges"][0])
        apart.append(separation_of(merge))
        rows = write(made, apart)
        assert merge.merge_id not in {row["merge_id"] for row in rows["merges"]}
    return rows, apart


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_mentions_belong_to_entities_and_merges_say_so(made: list[DocumentInput]) -> None:
    rows = write(made, [])
    entities = {row["entity_id"]: {row["name"], *row["aliases"]} for row in rows["entities"]}
    places = {(row["chunk_id"], row["start"], row["end"]) for row in rows["mentions"]}
    found = {
        (chunk.chunk_id, *span)
        for one in made
        for chunk in one.chunks
        if chunk.extraction
        for entity in chunk.extraction.entities
        for span in entity.spans
    }
    assert places == found
    assert all(row["surface"] in entities[row["entity_id"]] for row in rows["mentions"])
    for merge in rows["merges"]:
        assert {merge["name"], merge["merged_name"]} & entities[merge["entity_id"]]
        assert merge["merged_name"] in entities[merge["entity_id"]]
    assert len({row["merge_id"] for row in rows["merges"]}) == len(rows["merges"])
    assert all(row["head_id"] in entities and row["tail_id"] in entities for row in rows["relations"])
    assert all(row["head_id"] != row["tail_id"] for row in rows["relations"])


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_resolving_again_changes_nothing(made: list[DocumentInput]) -> None:
    turned = [
        DocumentInput(
            one.document_id, one.sources, one.title, one.text, one.language,
            tuple(
                ChunkInput(
                    chunk.chunk_id, chunk.document_id, chunk.start, chunk.end, chunk.text, chunk.tokens,
                    chunk.state, chunk.reason, _turned(chunk.extraction),
                )
                for chunk in one.chunks
            ),
        )
        for one in made
    ]  # fmt: skip
    assert write(made, []) == write(turned, [])


def _turned(extraction: ChunkExtraction | None) -> ChunkExtraction | None:
    """The same facts, the entities in another order."""
    assert extraction is not None
    last = len(extraction.entities) - 1
    return extraction.model_copy(
        update={
            "entities": extraction.entities[::-1],
            "relations": tuple(
                FoundRelation(head=last - r.head, type=r.type, tail=last - r.tail, confidence=r.confidence)
                for r in extraction.relations
            ),
        }
    )


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_undoing_every_merge_leaves_every_name_to_itself_and_allowing_them_brings_all_back(
    made: list[DocumentInput],
) -> None:
    rows, apart = undone_one_by_one(made)
    assert rows["merges"] == []
    assert len(apart) == len({one.merge_id for one in apart})
    assert write(made, apart[::-1]) == rows  # in whatever order they were decided
    assert write(made, []) == write(made, [])
