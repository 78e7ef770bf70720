"""Triples: every name grounded in its line, bad lines named, types given or derived."""

from __future__ import annotations

from pathlib import Path

import pytest

from hornbeam.errors import UsageError
from hornbeam.exchange.imported import ImportedDocument, Reading, RejectedInput
from hornbeam.exchange.triples import read_triples, read_types


def read(
    tmp_path: Path, lines: str | bytes, types: dict[str, str] | None = None
) -> tuple[list[ImportedDocument], list[RejectedInput], Reading]:
    path = tmp_path / "graph.tsv"
    path.write_bytes(lines if isinstance(lines, bytes) else lines.encode())
    reading = Reading()
    items = list(read_triples(path, types or {}, reading))
    documents = [item for item in items if isinstance(item, ImportedDocument)]
    return documents, [item for item in items if isinstance(item, RejectedInput)], reading


def test_every_name_is_grounded_in_its_line(tmp_path: Path) -> None:
    many = "".join(f"node {i}\tnext  to\tnode {i + 1}\n" for i in range(100))

    documents, rejected, reading = read(tmp_path, many)

    assert not rejected
    assert reading.counts["facts"] == 100
    for document in documents:
        covered = 0
        for chunk in document.chunks:
            text = document.text[chunk.start : chunk.end]
            covered += text.count("\n") + 1
            for entity in chunk.extraction.entities:
                assert {text[start:end] for start, end in entity.spans} == {entity.name}
            for relation in chunk.extraction.relations:
                head, tail = (chunk.extraction.entities[end].name for end in (relation.head, relation.tail))
                assert f"{head}\t{relation.type}\t{tail}" in text.split("\n")
        assert covered == document.text.count("\n") + 1


def test_names_are_kept_apart_as_the_file_has_them(tmp_path: Path) -> None:
    documents, _, _ = read(tmp_path, "The Wire\tr\twire\nWIRE\tr\twire\n")

    identities = {entity.identity for entity in documents[0].chunks[0].extraction.entities}

    assert identities == {"The Wire", "wire", "WIRE"}


def test_bad_lines_are_named_and_the_others_kept(tmp_path: Path) -> None:
    documents, rejected, reading = read(tmp_path, b"a\tr\tb\nonly two\tcolumns\n\n\xff\xfe\tr\tx\na\t\tb\n")

    assert [item.place.rpartition(":")[2] for item in rejected] == ["2", "4", "5"]
    assert "2 columns" in rejected[0].reason
    assert "UTF-8" in rejected[1].reason
    assert "empty" in rejected[2].reason
    assert reading.counts == {"facts": 1, "rejected": 3, "self_loops": 0}
    assert documents[0].text == "a\tr\tb"


def test_a_header_and_a_byte_order_mark_are_no_fact(tmp_path: Path) -> None:
    documents, rejected, _ = read(tmp_path, "\ufeffHead\tRelation\tTail\na\tr\tb\n")

    assert not rejected
    assert documents[0].text == "a\tr\tb"


def test_types_come_from_columns_or_from_a_file(tmp_path: Path) -> None:
    by_column, _, _ = read(tmp_path, "Curie\tborn_in\tWarsaw\tperson\tcity\n")
    by_file, _, _ = read(tmp_path, "Curie\tborn_in\tWarsaw\n", {"Curie": "person", "Warsaw": "city"})

    assert by_column[0].vocabulary == by_file[0].vocabulary
    assert by_column[0].vocabulary.relations == (("person", "born_in", "city"),)
    assert by_column[0].text == by_file[0].text


def test_relation_names_that_a_schema_cannot_tell_apart_get_one_spelling(tmp_path: Path) -> None:
    documents, _, _ = read(tmp_path, 'a\tIsA\tb\nb\tisa\tc\nc\tsays "so"\td\n')

    assert {r.type for r in documents[0].chunks[0].extraction.relations} == {"IsA", "says so"}


def test_a_large_file_is_read_in_documents_of_its_lines(tmp_path: Path) -> None:
    lines = "".join(f"n{i}\tr\tn{i + 1}\n" for i in range(10_000))

    documents, _, _ = read(tmp_path, lines)

    assert [document.source.rpartition("#")[2] for document in documents] == ["1", "2", "3"]
    assert "\n".join(document.text for document in documents) + "\n" == lines


@pytest.mark.parametrize(
    "text", ["Curie\tperson\nWarsaw\tcity\n", '{"Curie": ["person", "x"], "Warsaw": "city"}']
)
def test_a_types_file_is_lines_or_an_object(tmp_path: Path, text: str) -> None:
    path = tmp_path / "types"
    path.write_text(text, "utf-8")

    assert read_types(path) == {"Curie": "person", "Warsaw": "city"}


@pytest.mark.parametrize("text", ["no tab here", '{"a": 1}', '{"a": '])
def test_a_wrong_types_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "types"
    path.write_text(text, "utf-8")

    with pytest.raises(UsageError, match=r"types file .*types"):
        read_types(path)
