import random
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hornbeam.extract.result import ChunkExtraction, FoundAttribute, FoundEntity, FoundRelation, Reason
from hornbeam.records import TABLES, ChunkState, arrow_schema
from hornbeam.resolve.consolidate import write_graph_tables
from hornbeam.resolve.staging import ChunkInput, DocumentInput, Sentences
from hornbeam.settings import ResolveSettings
from hornbeam.store import table_files
from support.version_by_hand import HashedWords

GRAPH_TABLES = [name for name in TABLES if not name.startswith("communit")]


def chunk(
    text: str,
    entities: Sequence[tuple[str, str] | tuple[str, str, float]] = (),
    relations: Sequence[tuple[str, str, str, float]] = (),
    attributes: Sequence[tuple[str, str, str, float]] = (),
    state: ChunkState = ChunkState.DONE,
) -> tuple[str, ChunkExtraction]:
    """A chunk's text and extraction; names are found in the text wherever they stand."""
    found = []
    for name, kind, *confidence in entities:
        spans = []
        start = text.find(name)
        while start >= 0:
            spans.append((start, start + len(name)))
            start = text.find(name, start + 1)
        assert spans, name
        found.append(FoundEntity(name=name, type=kind, confidence=[*confidence, 0.8][0], spans=tuple(spans)))
    place = {entity.name: number for number, entity in enumerate(found)}
    return text, ChunkExtraction(
        entities=tuple(found),
        relations=tuple(
            FoundRelation(head=place[head], type=kind, tail=place[tail], confidence=confidence)
            for head, kind, tail, confidence in relations
        ),
        attributes=tuple(
            FoundAttribute(
                entity=place[owner],
                type=kind,
                value=value,
                start=text.index(value),
                end=text.index(value) + len(value),
                confidence=confidence,
            )
            for owner, kind, value, confidence in attributes
        ),
        state=state,
    )


def document(number: int, *chunks: tuple[str, ChunkExtraction | None]) -> DocumentInput:
    text = "\n\n".join(text for text, _ in chunks)
    inputs, start = [], 0
    for place, (body, extraction) in enumerate(chunks):
        state = extraction.state if extraction else ChunkState.FAILED
        inputs.append(
            ChunkInput(
                f"c{number}{place}", f"d{number}", start, start + len(body), body, 9, state,
                "" if extraction else "model_error", extraction,
            )
        )  # fmt: skip
        start += len(body) + 2
    return DocumentInput(f"d{number}", (f"{number}.txt",), "title", text, "en", tuple(inputs))


def write(
    folder: Path, documents: Sequence[DocumentInput], *, min_confidence: float = 0.0
) -> dict[str, list[dict[str, Any]]]:
    tables, scratch = folder / "tables", folder / "scratch"
    for path in (tables, scratch):
        path.mkdir(parents=True)
    counts = write_graph_tables(
        documents,
        tables,
        scratch,
        settings=ResolveSettings(),
        schema=None,
        embedder=HashedWords(),
        min_confidence=min_confidence,
        memory_limit_mib=512,
    ).rows
    rows = {name: pq.read_table(tables / f"{name}.parquet").to_pylist() for name in GRAPH_TABLES}
    assert counts == {name: len(rows[name]) for name in GRAPH_TABLES}
    return rows


def one(rows: list[dict[str, Any]], **values: Any) -> dict[str, Any]:
    (row,) = [row for row in rows if all(row[name] == value for name, value in values.items())]
    return row


CURIE = "Marie Curie was born in Warsaw. Curie met MARIE  CURIE."


# Entities


def test_written_forms_of_a_name_are_one_entity_with_aliases(tmp_path: Path) -> None:
    """The form written most often is the name; the others, sorted, are aliases."""
    rows = write(
        tmp_path,
        [
            document(
                1,
                chunk("The Radium Institute", [("The Radium Institute", "org")]),
                chunk("RADIUM INSTITUTE and radium-institute", [("RADIUM INSTITUTE", "org")]),
                chunk(
                    "the Radium Institute? Radium Institute, Radium Institute", [("Radium Institute", "org")]
                ),
            )
        ],
    )

    entity = one(rows["entities"])
    assert entity["name"] == "Radium Institute"
    assert entity["aliases"] == ["RADIUM INSTITUTE", "The Radium Institute"]
    assert entity["mentions"] == len(rows["mentions"]) == 5


def test_one_name_with_two_types_is_two_entities(tmp_path: Path) -> None:
    rows = write(
        tmp_path,
        [
            document(1, chunk("Paris is a city.", [("Paris", "city")])),
            document(2, chunk("Paris took Helen.", [("Paris", "person")])),
        ],
    )

    assert sorted((row["name"], row["type"]) for row in rows["entities"]) == [
        ("Paris", "city"),
        ("Paris", "person"),
    ]
    assert len({row["entity_id"] for row in rows["entities"]}) == 2


def test_every_place_of_a_name_is_a_mention_with_its_surface(tmp_path: Path) -> None:
    text = "Marie\nCurie, then Marie\nCurie"
    extraction = ChunkExtraction(
        entities=(FoundEntity(name="Marie Curie", type="p", confidence=0.5, spans=((0, 11), (18, 29))),)
    )
    rows = write(tmp_path, [document(1, (text, extraction))])

    assert [(row["start"], row["end"], row["surface"]) for row in rows["mentions"]] == [
        (0, 11, "Marie\nCurie"),
        (18, 29, "Marie\nCurie"),
    ]
    assert one(rows["entities"])["name"] == "Marie Curie"


def test_an_entitys_confidence_is_the_mean_over_its_mentions(tmp_path: Path) -> None:
    rows = write(
        tmp_path,
        [
            document(1, chunk("Ada and Ada", [("Ada", "person", 0.9)])),
            document(2, chunk("Ada", [("Ada", "person", 0.3)])),
        ],
    )

    assert one(rows["entities"])["confidence"] == pytest.approx((0.9 + 0.9 + 0.3) / 3)


def test_a_description_is_found_again_where_it_stands(tmp_path: Path) -> None:
    text = "Corvane, a maker of  engines, hired Ada. Corvane grew."
    said = (text.index("a maker"), text.index(", hired"))
    body, found = chunk(text, [("Corvane", "organization"), ("Ada", "person")])
    corvane, ada = found.entities
    described = found.model_copy(update={"entities": (corvane.model_copy(update={"description": said}), ada)})
    rows = write(
        tmp_path,
        [document(1, (body, described)), document(2, chunk("Corvane.", [("Corvane", "organization")]))],
    )
    entity = one(rows["entities"], name="Corvane")
    assert entity["description"] == "a maker of engines"
    mentions = [row for row in rows["mentions"] if row["entity_id"] == entity["entity_id"]]
    places = {(row["chunk_id"], row["description_start"], row["description_end"]) for row in mentions}
    assert places == {("c10", *said), ("c20", None, None)}
    of_ada = one(rows["mentions"], surface="Ada")
    assert (of_ada["description_start"], of_ada["description_end"]) == (None, None)


def test_the_description_is_the_sentence_of_the_surest_mention(tmp_path: Path) -> None:
    rows = write(
        tmp_path,
        [
            document(
                1, chunk("Nothing here. Ada Byron wrote\nprograms. More.", [("Ada Byron", "person", 0.9)])
            ),
            document(2, chunk("Ada Byron slept.", [("Ada Byron", "person", 0.3)])),
        ],
    )

    assert one(rows["entities"])["description"] == "Ada Byron wrote programs."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("one", "Here is one."),
        ("two", "Is two there?"),
        ("三", "这是三。"),
        ("四", "这是四"),
        ("split. Is", "split. Is two there?"),  # a name that runs over the end of a sentence has both
    ],
)
def test_the_sentence_around_a_span(name: str, expected: str) -> None:
    text = "Here is one. … split. Is two there? 这是三。这是四\n\nEnd"
    start = text.index(name)
    assert Sentences(text).around(start, start + len(name)) == expected


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        ("Ada", "Bob", "Then Ada met Bob."),  # not her first sentence
        ("Bob", "Ada", "Then Ada met Bob."),
        ("Ada", "Cleo", "Ada slept."),  # never together: where the head stands first
        ("Dora", "Ada", ""),  # an import may name what stands nowhere
        ("Ada", "Dora", "Ada slept."),
    ],
)
def test_a_fact_is_described_by_a_sentence_with_both_its_ends(head: str, tail: str, expected: str) -> None:
    text = "Ada slept. Cleo sang. Then Ada met Bob. Ada and Bob left."
    places = {
        name: [match.span() for match in re.finditer(name, text)] for name in ("Ada", "Bob", "Cleo", "Dora")
    }

    assert Sentences(text).with_both(places[head], places[tail]) == expected


def test_a_long_sentence_is_cut() -> None:
    around = Sentences("word " * 200).around(0, 4)

    assert around.endswith("word…")
    assert len(around) < 260


# Relations and attributes


def test_evidence_of_every_chunk_is_kept_and_confidence_is_noisy_or(tmp_path: Path) -> None:
    text = "Ada knows Bob"
    people = [("Ada", "person"), ("Bob", "person")]
    rows = write(
        tmp_path,
        [
            document(1, chunk(text, people, [("Ada", "knows", "Bob", 0.5)])),
            document(2, chunk(text + ".", people, [("Ada", "knows", "Bob", 0.2)])),
            document(3, chunk(text + "!", people, [("Bob", "knows", "Ada", 0.4)])),
        ],
    )

    ada, bob = (one(rows["entities"], name=name) for name in ("Ada", "Bob"))
    there = one(rows["relations"], head_id=ada["entity_id"])
    back = one(rows["relations"], head_id=bob["entity_id"])
    assert there["tail_id"] == bob["entity_id"]
    assert there["confidence"] == pytest.approx(1 - (1 - 0.5) * (1 - 0.2))
    assert (there["weight"], back["weight"]) == (2.0, 1.0)
    assert there["description"] == text  # of the surer chunk
    assert [
        (row["chunk_id"], row["confidence"], row["verified"])
        for row in rows["relation_evidence"]
        if row["relation_id"] == there["relation_id"]
    ] == [("c10", 0.5, None), ("c20", 0.2, None)]
    assert (ada["degree"], bob["degree"]) == (2, 2)


def test_two_forms_of_a_fact_in_one_chunk_count_once_with_the_surer(tmp_path: Path) -> None:
    text = "Ada, ADA and Bob"
    people = [("Ada", "person"), ("ADA", "person"), ("Bob", "person")]
    relations = [("Ada", "knows", "Bob", 0.3), ("ADA", "knows", "Bob", 0.6)]
    rows = write(tmp_path, [document(1, chunk(text, people, relations))])

    relation = one(rows["relations"])
    assert (relation["weight"], relation["confidence"]) == (1.0, pytest.approx(0.6))
    assert one(rows["relation_evidence"])["confidence"] == 0.6


def test_two_forms_of_one_entity_as_head_and_tail_make_no_relation(tmp_path: Path) -> None:
    text = "Ada is ADA"
    people = [("Ada", "person"), ("ADA", "person")]
    rows = write(tmp_path, [document(1, chunk(text, people, [("Ada", "knows", "ADA", 0.9)]))])

    assert rows["relations"] == rows["relation_evidence"] == []
    assert one(rows["entities"])["degree"] == 0


def test_facts_below_the_threshold_leave_with_their_evidence_and_degree(tmp_path: Path) -> None:
    text = "Ada knows Bob since 1840"
    people = [("Ada", "person"), ("Bob", "person")]
    documents = [
        document(
            number,
            chunk(
                text + "!" * number,
                people,
                [("Ada", "knows", "Bob", 0.3), ("Bob", "knows", "Ada", 0.2)],
                [("Ada", "since", "1840", 0.3), ("Bob", "since", "1840", 0.2)],
            ),
        )
        for number in (1, 2)
    ]

    # Together 0.51 and 0.36: neither is sure enough alone.
    rows = write(tmp_path / "some", documents, min_confidence=0.5)

    ada = one(rows["entities"], name="Ada")
    relation, attribute = one(rows["relations"]), one(rows["attributes"])
    assert relation["head_id"] == attribute["entity_id"] == ada["entity_id"]
    assert {row["relation_id"] for row in rows["relation_evidence"]} == {relation["relation_id"]}
    assert len(rows["relation_evidence"]) == len(rows["attribute_evidence"]) == 2
    assert {row["attribute_id"] for row in rows["attribute_evidence"]} == {attribute["attribute_id"]}
    assert [row["degree"] for row in rows["entities"]] == [1, 1]
    # Entities stay: the threshold is for facts.
    assert len(rows["entities"]) == 2


def test_a_value_written_in_two_cases_is_one_attribute_with_both_places(tmp_path: Path) -> None:
    rows = write(
        tmp_path,
        [
            document(
                1, chunk("Ada, Countess", [("Ada", "person")], attributes=[("Ada", "title", "Countess", 0.5)])
            ),
            document(
                2, chunk("Ada: COUNTESS", [("Ada", "person")], attributes=[("Ada", "title", "COUNTESS", 0.5)])
            ),
            document(
                3, chunk("Bob, Countess", [("Bob", "person")], attributes=[("Bob", "title", "Countess", 0.5)])
            ),
        ],
    )

    ada = one(rows["entities"], name="Ada")["entity_id"]
    attribute = one(rows["attributes"], entity_id=ada)
    assert attribute["confidence"] == pytest.approx(0.75)
    assert [
        (row["chunk_id"], row["start"], row["end"])
        for row in rows["attribute_evidence"]
        if row["attribute_id"] == attribute["attribute_id"]
    ] == [("c10", 5, 13), ("c20", 5, 13)]
    assert len(rows["attributes"]) == 2


# Documents, chunks, and the tables as files


def test_documents_and_chunks_are_kept_whatever_was_found_in_them(tmp_path: Path) -> None:
    degraded = ChunkExtraction(state=ChunkState.DEGRADED, reasons=(Reason.ENTITIES_CUT,))
    written = document(1, ("done", ChunkExtraction()), ("cut", degraded), ("failed", None))
    rows = write(tmp_path, [written])

    assert one(rows["documents"]) == {
        "document_id": "d1", "source": "1.txt", "title": "title", "text": "done\n\ncut\n\nfailed",
        "language": "en", "sources": ["1.txt"],
    }  # fmt: skip
    assert [(row["text"], row["state"], row["reason"]) for row in rows["chunks"]] == [
        ("done", "done", ""),
        ("cut", "degraded", ""),
        ("failed", "failed", "model_error"),
    ]


def test_an_empty_corpus_has_every_table_with_no_rows(tmp_path: Path) -> None:
    rows = write(tmp_path, [])

    assert all(rows[name] == [] for name in GRAPH_TABLES)


@pytest.mark.parametrize("empty", [True, False])
def test_tables_have_the_schema_of_their_record_and_are_sorted(tmp_path: Path, empty: bool) -> None:
    documents = [] if empty else random_documents(40)
    rows = write(tmp_path, documents)

    for name in GRAPH_TABLES:
        written = pq.read_schema(tmp_path / "tables" / f"{name}.parquet")
        assert written.equals(arrow_schema(TABLES[name])), name  # names, types, nullability, order
        first = [tuple(row[column] for column in written.names[:4]) for row in rows[name]]
        assert first == sorted(first), name


def random_documents(number: int) -> list[DocumentInput]:
    chance = random.Random(7)
    names = [f"Name{i}" for i in range(60)]
    documents = []
    for place in range(number):
        chunks = []
        for _ in range(chance.randrange(1, 4)):
            chosen = chance.sample(names, 6)
            text = " ".join(name.upper() if chance.random() < 0.2 else name for name in chosen)
            words = text.split()
            relations = [(a, "knows", b, chance.random()) for a, b in pairwise(words)]
            attributes = [(words[0], "friend", words[-1], chance.random())]
            entities = [(word, "person", chance.random()) for word in words]
            chunks.append(chunk(text, entities, relations, attributes))
        documents.append(document(1000 + place, *chunks))
    return documents


def test_equal_extractions_give_equal_bytes_in_whatever_order_chunks_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = random_documents(60)
    write(tmp_path / "first", documents)
    # Staged in other batches and in another order of chunks within the documents.
    monkeypatch.setattr(table_files, "_CHARACTERS_PER_BATCH", 500)
    turned = [
        DocumentInput(d.document_id, d.sources, d.title, d.text, d.language, d.chunks[::-1])
        for d in documents
    ]
    write(tmp_path / "second", turned)

    for name in set(GRAPH_TABLES) - {"documents"}:
        first, second = (
            (tmp_path / side / "tables" / f"{name}.parquet").read_bytes() for side in ("first", "second")
        )
        assert first == second, name


def test_tables_larger_than_one_batch_are_sorted_and_equal_in_every_run(tmp_path: Path) -> None:
    """DuckDB hands results over by 2,048 rows, from several threads."""
    wide = 5_000
    names = [f"n{number}" for number in range(wide)]
    text = "\n\n".join(names)
    starts = accumulate((len(name) + 2 for name in names), initial=0)
    extraction = ChunkExtraction(
        entities=tuple(
            FoundEntity(name=name, type="t", confidence=0.5, spans=((start, start + len(name)),))
            for name, start in zip(names, starts, strict=False)
        ),
        relations=tuple(
            FoundRelation(head=i, type="next", tail=i + 1, confidence=0.5) for i in range(wide - 1)
        ),
    )
    for side in ("first", "second"):
        rows = write(tmp_path / side, [document(1, (text, extraction))])
        for name, column in (
            ("entities", "entity_id"),
            ("relations", "relation_id"),
            ("mentions", "entity_id"),
        ):
            ids = [row[column] for row in rows[name]]
            assert len(ids) >= wide - 1
            assert ids == sorted(ids), name

    for name in GRAPH_TABLES:
        assert (tmp_path / "first/tables" / f"{name}.parquet").read_bytes() == (
            tmp_path / "second/tables" / f"{name}.parquet"
        ).read_bytes(), name
