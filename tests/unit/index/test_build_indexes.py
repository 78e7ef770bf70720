from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hornbeam.errors import StoreError
from hornbeam.index.adjacency import Adjacency
from hornbeam.index.build import build_indexes
from hornbeam.index.rows import Links, MappedTable
from hornbeam.index.texts import entity_texts, triple_text
from hornbeam.index.vectors import VectorIndex
from hornbeam.settings import EmbedderSettings
from support.version_by_hand import ENTITIES, RELATIONS, HashedWords, ListeningWords, small_rows, write_tables


def test_row_numbers_replace_identifiers(version: Path) -> None:
    relations = MappedTable(version, "relations")
    entity_ids = list(ENTITIES)
    expected = [(entity_ids.index(head), entity_ids.index(tail)) for head, _, tail, _ in RELATIONS.values()]
    heads, tails = relations.array("head_row"), relations.array("tail_row")
    assert list(zip(heads.tolist(), tails.tolist(), strict=True)) == expected
    communities = MappedTable(version, "communities")
    assert communities.array("parent_row").tolist() == [3, 3, -1, -1]
    assert communities.array("centre_row").tolist() == [0, 1, 4, 0]


def test_every_vector_belongs_to_the_row_of_its_text(version: Path) -> None:
    embedder = HashedWords()
    triples = [
        triple_text(ENTITIES[head][0], kind, ENTITIES[tail][0]) for head, kind, tail, _ in RELATIONS.values()
    ]
    index = VectorIndex.open(version / "vectors" / "triples.faiss", 3, 64)
    for row, vector in enumerate(embedder.encode(triples)):
        assert index.search(vector, 1)[0].tolist() == [row]


def test_facts_of_one_sentence_are_encoded_once(tmp_path: Path) -> None:
    sentence = "Marie Curie, Warsaw and Poland."
    rows = small_rows()
    rows["relations"] = [
        replace(relation, type="occurs_with", description=sentence) for relation in rows["relations"]
    ]
    directory = write_tables(tmp_path / "version", rows)
    embedder = ListeningWords()
    done: list[int] = []

    build_indexes(directory, embedder, EmbedderSettings(), on_encoded=done.append)

    other = f"Marie Curie occurs with polonium. {sentence}"
    assert [text for text in embedder.asked if sentence in text] == [sentence, other]
    index = VectorIndex.open(directory / "vectors" / "triples.faiss", 3, HashedWords.dimension)
    assert np.array_equal(index.rows(np.arange(3)), HashedWords().encode([sentence, sentence, other]))
    assert sum(done) == sum(len(rows[table]) for table in ("entities", "relations", "chunks", "communities"))
    assert not list((directory / "vectors").glob("*.texts"))


def test_links_are_sorted_by_confidence_and_hold_the_spans(tmp_path: Path) -> None:
    rows = small_rows()
    first, *_ = [mention for mention in rows["mentions"] if mention.entity_id == "e2"]
    rows["mentions"] = [replace(first, chunk_id="d2c1", confidence=0.5, start=3, end=9), first]
    directory = write_tables(tmp_path / "version", rows)
    build_indexes(directory, HashedWords(), EmbedderSettings())
    mentions = Links.read(directory, "mentions")
    assert [mentions.count(entity) for entity in range(5)] == [0, 2, 0, 0, 0]
    assert mentions.of(1).tolist() == [0, 2]
    assert mentions.spans_of(1).tolist() == [[first.start, first.end], [3, 9]]


def test_adjacency_sees_a_relation_from_both_ends(version: Path) -> None:
    graph = Adjacency.read(version)
    assert [graph.edges_of(entity).tolist() for entity in range(5)] == [[0, 2], [0, 1], [1], [2], []]


def test_entity_vectors_of_an_earlier_stage_are_used_as_they_are(tmp_path: Path) -> None:
    rows = small_rows()
    directory = write_tables(tmp_path / "version", rows)
    texts = entity_texts(rows["entities"], {"e1": rows["attributes"]})
    given = HashedWords().encode(texts)
    build_indexes(directory, HashedWords(), EmbedderSettings(), entity_vectors=given)
    passed_on = (directory / "vectors" / "entities.faiss").read_bytes()
    build_indexes(directory, HashedWords(), EmbedderSettings())
    assert (directory / "vectors" / "entities.faiss").read_bytes() == passed_on


def test_entity_vectors_of_another_shape_are_refused(tmp_path: Path) -> None:
    directory = write_tables(tmp_path / "version", small_rows())
    with pytest.raises(StoreError, match=r"shape \(4, 64\) for 5 entities"):
        build_indexes(
            directory, HashedWords(), EmbedderSettings(), entity_vectors=np.zeros((4, 64), np.float32)
        )


def test_two_builds_of_the_same_tables_write_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        directory = write_tables(tmp_path / name, small_rows())
        build_indexes(directory, HashedWords(), EmbedderSettings())
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        contents.append({path.relative_to(directory): path.read_bytes() for path in files})
    assert contents[0] == contents[1]


def test_the_report_counts_rows_and_seconds(tmp_path: Path) -> None:
    directory = write_tables(tmp_path / "version", small_rows())
    report = build_indexes(directory, HashedWords(), EmbedderSettings())
    assert report.counts == {
        "documents": 3,
        "chunks": 4,
        "entities": 5,
        "relations": 3,
        "attributes": 1,
        "communities": 4,
    }
    assert {"rows", "adjacency", "lexical.chunks", "vectors.communities"} <= report.seconds.keys()


def test_a_dangling_identifier_is_refused_with_its_name(tmp_path: Path) -> None:
    rows = small_rows()
    rows["relations"][1] = replace(rows["relations"][1], tail_id="e9")
    directory = write_tables(tmp_path / "version", rows)
    with pytest.raises(StoreError, match=r"relations\.tail_id 'e9' is not in table entities"):
        build_indexes(directory, HashedWords(), EmbedderSettings())


def test_a_missing_table_is_one_clear_line(tmp_path: Path) -> None:
    directory = write_tables(tmp_path / "version", small_rows())
    (directory / "tables" / "communities.parquet").unlink()
    with pytest.raises(StoreError, match=r"communities\.parquet is missing"):
        build_indexes(directory, HashedWords(), EmbedderSettings())
