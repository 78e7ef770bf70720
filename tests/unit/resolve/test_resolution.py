"""Which entities the tables hold, and what the log of merges says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hornbeam.extract.result import ChunkExtraction, FoundAttribute, FoundEntity, FoundRelation
from hornbeam.records import ChunkState, Merge
from hornbeam.resolve.consolidate import Consolidated, write_graph_tables
from hornbeam.resolve.separations import Separation, separation_of
from hornbeam.resolve.staging import ChunkInput, DocumentInput
from hornbeam.schema import GraphSchema
from hornbeam.settings import ResolveSettings
from support.version_by_hand import HashedWords

Rows = dict[str, list[dict[str, Any]]]


def document(
    key: str,
    text: str,
    names: Sequence[tuple[str, str] | tuple[str, str, float]],
    relations: Sequence[tuple[str, str, str]] = (),
    attributes: Sequence[tuple[str, str, str]] = (),
) -> DocumentInput:
    """One chunk; a name is found wherever it stands and is not within a longer one."""
    taken: list[tuple[int, int]] = []
    found = []
    for name, kind, *confidence in sorted(names, key=lambda name: -len(name[0])):
        spans = []
        start = text.find(name)
        while start >= 0:
            if not any(left <= start < right and right - left > len(name) for left, right in taken):
                spans.append((start, start + len(name)))
            start = text.find(name, start + 1)
        taken += spans
        score = [*confidence, 0.8][0]
        found.append(FoundEntity(name=name, type=kind, confidence=score, spans=tuple(spans)))
    place = {entity.name: number for number, entity in enumerate(found)}
    extraction = ChunkExtraction(
        entities=tuple(found),
        relations=tuple(
            FoundRelation(head=place[head], type=kind, tail=place[tail], confidence=0.5)
            for head, kind, tail in relations
        ),
        attributes=tuple(
            FoundAttribute(
                entity=place[owner], type=kind, value=value, start=text.index(value),
                end=text.index(value) + len(value), confidence=0.5,
            )
            for owner, kind, value in attributes
        ),
    )  # fmt: skip
    chunk = ChunkInput(f"c-{key}", key, 0, len(text), text, 9, ChunkState.DONE, "", extraction)
    return DocumentInput(key, (f"{key}.txt",), key, text, "en", (chunk,))


def write(
    folder: Path,
    documents: Sequence[DocumentInput],
    *,
    schema: GraphSchema | None = None,
    separations: Sequence[Separation] = (),
    **settings: Any,
) -> tuple[Rows, Consolidated]:
    tables, scratch = folder / "tables", folder / "scratch"
    for path in (tables, scratch):
        path.mkdir(parents=True)
    done = write_graph_tables(
        sorted(documents, key=lambda one: one.document_id),
        tables,
        scratch,
        settings=ResolveSettings.model_validate(settings),
        schema=schema,
        embedder=HashedWords(),
        separations=separations,
        min_confidence=0.0,
        memory_limit_mib=512,
    )
    return {path.stem: pq.read_table(path).to_pylist() for path in tables.glob("*.parquet")}, done


def names(rows: Rows) -> set[tuple[str, ...]]:
    return {(row["name"], *row["aliases"]) for row in rows["entities"]}


def surfaces(rows: Rows, name: str) -> list[tuple[str, str]]:
    (entity,) = (row["entity_id"] for row in rows["entities"] if row["name"] == name)
    return [(row["chunk_id"], row["surface"]) for row in rows["mentions"] if row["entity_id"] == entity]


IDRISS = document(
    "d1",
    "Ramey Idriss wrote songs. Idriss lived long.",
    [("Ramey Idriss", "person"), ("Idriss", "person")],
)
SULTAN = document("d2", "Idriss ruled.", [("Idriss", "person")])


def test_a_surname_is_the_introduced_person_in_that_document_and_somebody_else_in_others(
    tmp_path: Path,
) -> None:
    rows, done = write(tmp_path, [IDRISS, SULTAN])

    assert names(rows) == {("Ramey Idriss", "Idriss"), ("Idriss",)}
    assert surfaces(rows, "Ramey Idriss") == [("c-d1", "Ramey Idriss"), ("c-d1", "Idriss")]
    assert surfaces(rows, "Idriss") == [("c-d2", "Idriss")]
    (merge,) = rows["merges"]
    assert (merge["name"], merge["merged_name"]) == ("Ramey Idriss", "Idriss")
    assert (merge["kind"], merge["document_id"], merge["chunk_id"]) == ("partial", "d1", "c-d1")
    assert (merge["start"], merge["end"]) == (26, 32)
    assert done.merges == {"partial": 1}
    assert done.names == 2


def test_an_alias_of_one_thing_is_it_everywhere_and_of_two_only_where_it_is_said(tmp_path: Path) -> None:
    here = document(
        "d1",
        "The Greyfin Institute (GI) opened. Greyfin Institute!",
        [("Greyfin Institute", "organization"), ("GI", "organization")],
    )
    bare = document("d2", "GI closed.", [("GI", "organization")])
    other = document(
        "d3", "The Goose Inn (GI) burnt.", [("Goose Inn", "organization"), ("GI", "organization")]
    )

    rows, _ = write(tmp_path / "one", [here, bare])
    assert names(rows) == {("Greyfin Institute", "GI")}
    assert rows["merges"][0]["document_id"] is None

    rows, _ = write(tmp_path / "two", [here, bare, other])
    assert names(rows) == {("Greyfin Institute", "GI"), ("Goose Inn", "GI"), ("GI",)}
    assert surfaces(rows, "GI") == [("c-d2", "GI")]
    assert sorted(merge["document_id"] for merge in rows["merges"]) == ["d1", "d3"]


def test_facts_of_an_alias_are_facts_of_the_entity(tmp_path: Path) -> None:
    text = "Robert Zimmerman, better known as Bob Dylan, met Joan in 1961."
    people = [("Robert Zimmerman", "person"), ("Bob Dylan", "person"), ("Joan", "person")]
    relations = [
        ("Robert Zimmerman", "knows", "Joan"),
        ("Bob Dylan", "knows", "Joan"),
        ("Robert Zimmerman", "knows", "Bob Dylan"),
    ]
    rows, done = write(tmp_path, [document("d1", text, people, relations, [("Bob Dylan", "year", "1961")])])

    dylan = next(row for row in rows["entities"] if "Bob Dylan" in (row["name"], *row["aliases"]))
    (relation,) = rows["relations"]
    assert (relation["head_id"], relation["weight"]) == (dylan["entity_id"], 1.0)
    assert rows["attributes"][0]["entity_id"] == dylan["entity_id"]
    assert done.dropped["relations"] == 1  # of the entity with itself


def schema() -> GraphSchema:
    return GraphSchema.model_validate(
        {
            "name": "s",
            "version": "1",
            "entity_types": [{"name": "person"}, {"name": "place"}],
            "relation_types": [{"name": "rules", "domain": ["person"], "range": ["place"]}],
            "attribute_types": [{"name": "area", "domain": ["place"], "kind": "text"}],
        }
    )


JORDAN = document(
    "d1",
    "Jordan of Avon is large.",
    [("Jordan", "person", 0.3), ("Avon", "place")],
    [("Jordan", "rules", "Avon")],
)
JORDAN_AS_PLACE = document("d1", "Jordan of Avon is large.", [("Jordan", "place", 0.9)])


def test_a_name_of_two_types_in_one_document_is_one_entity_of_the_likelier(tmp_path: Path) -> None:
    both = DocumentInput(
        "d1", ("d1.txt",), "d1", JORDAN.text, "en",
        (JORDAN.chunks[0], ChunkInput(
            "c-2", "d1", 0, len(JORDAN.text), JORDAN.text, 9, ChunkState.DONE, "",
            JORDAN_AS_PLACE.chunks[0].extraction,
        )),
    )  # fmt: skip
    rows, done = write(tmp_path / "merged", [both], schema=schema())

    assert {(row["name"], row["type"]) for row in rows["entities"]} == {
        ("Jordan", "place"),
        ("Avon", "place"),
    }
    # A place rules nothing: the fact is dropped, and counted.
    assert rows["relations"] == []
    assert done.dropped["relations"] == 1

    rows, done = write(tmp_path / "kept", [both], schema=schema(), types="keep")
    assert len(rows["entities"]) == 3
    assert len(rows["relations"]) == 1
    assert done.dropped["relations"] == 0


def merges_of(rows: Rows) -> list[Merge]:
    return [Merge(**row) for row in rows["merges"]]


def test_what_was_told_apart_stays_apart_and_nothing_else_changes(tmp_path: Path) -> None:
    rows, _ = write(tmp_path / "before", [IDRISS, SULTAN])
    (merge,) = merges_of(rows)
    apart = separation_of(merge)
    assert apart.merge_id == merge.merge_id

    rows, done = write(tmp_path / "after", [IDRISS, SULTAN], separations=[apart])
    assert names(rows) == {("Ramey Idriss",), ("Idriss",)}
    assert rows["merges"] == []
    assert done.merges == {}
    plain, _ = write(tmp_path / "plain", [IDRISS, SULTAN], without="partial")
    assert {name: plain[name] for name in plain} == rows


def test_names_told_apart_are_not_brought_together_by_a_third(tmp_path: Path) -> None:
    text = "Anna Weber, also known as Ada Wolf. Ada Wolf, also known as Ann Wood."
    people = [("Anna Weber", "person"), ("Ada Wolf", "person"), ("Ann Wood", "person")]
    one = document("d1", text, people)
    rows, _ = write(tmp_path / "before", [one])
    assert len(rows["entities"]) == 1

    apart = Separation(None, "ann wood", "person", "anna weber", "person")
    rows, _ = write(tmp_path / "after", [one], separations=[apart])
    assert len(rows["entities"]) == 2
    assert not any({"Ann Wood", "Anna Weber"} <= set(entity) for entity in names(rows))


def test_an_imported_identity_is_never_resolved(tmp_path: Path) -> None:
    plain = document("d1", IDRISS.text, [("Ramey Idriss", "person"), ("Idriss", "person")])
    found = plain.chunks[0].extraction
    assert found is not None
    given = found.model_copy(
        update={
            "entities": tuple(
                entity.model_copy(update={"identity": entity.name.upper()}) for entity in found.entities
            )
        }
    )
    chunk = plain.chunks[0]
    imported = DocumentInput(
        "d1", ("d1.txt",), "d1", plain.text, "en",
        (ChunkInput(chunk.chunk_id, "d1", 0, chunk.end, chunk.text, 9, chunk.state, "", given),),
    )  # fmt: skip
    rows, _ = write(tmp_path, [imported])
    assert names(rows) == {("Ramey Idriss",), ("Idriss",)}
    assert rows["merges"] == []


SENTENCES = {
    "d1": "Jackson sang a song on stage with a band.",
    "d2": "Jackson sang a song with a band on stage again.",
    "d3": "Quarterly shipping tonnage fell, wrote Jackson.",
}


def told_of(name: str) -> list[DocumentInput]:
    return [
        document(key, text.replace("Jackson", name), [(name, "person")]) for key, text in SENTENCES.items()
    ]


def test_a_single_name_is_another_person_where_nothing_connects_its_documents(tmp_path: Path) -> None:
    rows, done = write(tmp_path / "single", told_of("Jackson"))
    first, second = sorted(rows["entities"], key=lambda row: -row["mentions"])
    assert (first["name"], first["mentions"], first["sense"]) == ("Jackson", 2, "")
    assert (second["name"], second["mentions"], second["sense"]) == ("Jackson", 1, "d3")
    assert done.homonyms == 1

    rows, done = write(tmp_path / "off", told_of("Jackson"), homonyms="off")
    assert len(rows["entities"]) == 1
    assert (rows["entities"][0]["entity_id"], done.homonyms) == (first["entity_id"], 0)


def test_a_full_name_is_one_person_by_default(tmp_path: Path) -> None:
    rows, _ = write(tmp_path, told_of("Mahalia Jackson"))
    assert len(rows["entities"]) == 1


def test_company_that_few_documents_have_connects_what_is_said_differently(tmp_path: Path) -> None:
    with_friend = [
        document(
            one.document_id,
            f"{one.text} Otto Lenz came.",
            [("Jackson", "person"), ("Otto Lenz", "person")],
        )
        for one in told_of("Jackson")
    ]
    rows, done = write(tmp_path, with_friend)
    assert len(rows["entities"]) == 2
    assert done.homonyms == 0


def test_facts_of_a_homonym_are_its_own(tmp_path: Path) -> None:
    documents = told_of("Jackson")[:2]
    documents.append(
        document(
            "d3",
            SENTENCES["d3"] + " Jackson knows Lenz.",
            [("Jackson", "person"), ("Lenz", "person")],
            [("Jackson", "knows", "Lenz")],
        )
    )
    rows, _ = write(tmp_path, documents)
    (head,) = (row["head_id"] for row in rows["relations"])
    assert next(row["sense"] for row in rows["entities"] if row["entity_id"] == head) == "d3"
