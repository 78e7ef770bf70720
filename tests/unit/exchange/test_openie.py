"""Recorded open information extraction: names grounded where they stand, kept where they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hornbeam.errors import UsageError
from hornbeam.exchange.imported import ImportedDocument, Reading, RejectedInput
from hornbeam.exchange.openie import read_openie

CURIE = {
    "title": "Radium pioneers",
    "text": "Marie  Curie was born in Warsaw.",
    "triples": [
        ["marie curie", "Born In", "Warsaw"],
        ["Marie Curie", "discovered", "the radium"],
        ["a", "b"],
    ],
}


def read(tmp_path: Path, content: Any) -> tuple[list[ImportedDocument], list[RejectedInput], Reading]:
    path = tmp_path / "openie.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    reading = Reading()
    items = list(read_openie(path, reading))
    documents = [item for item in items if isinstance(item, ImportedDocument)]
    return documents, [item for item in items if isinstance(item, RejectedInput)], reading


def test_names_are_grounded_in_any_case_and_spacing(tmp_path: Path) -> None:
    (document,), rejected, reading = read(tmp_path, [CURIE])
    extraction = document.chunks[0].extraction

    surfaces = {e.name: [document.text[start:end] for start, end in e.spans] for e in extraction.entities}
    assert surfaces == {"Marie Curie": ["Marie  Curie"], "Warsaw": ["Warsaw"], "the radium": []}
    assert [(r.head, r.type, r.tail) for r in extraction.relations] == [
        (0, "born in", 1),
        (0, "discovered", 2),
    ]
    assert document.text.startswith("Radium pioneers\n\n")
    assert reading.counts == {"facts": 2, "ungrounded": 1, "rejected": 1}
    assert rejected[0].place.endswith("#1.3")


def test_a_name_is_no_part_of_another_word(tmp_path: Path) -> None:
    record = {"text": "Partial art of artists.", "triples": [["art", "of", "artists"]]}

    (document,), _, _ = read(tmp_path, [record])

    entities = document.chunks[0].extraction.entities
    assert [document.text[slice(*span)] for e in entities for span in e.spans] == ["art", "artists"]
    assert len(entities[0].spans) == 1


def test_a_fact_of_a_thing_about_itself_is_counted_not_kept(tmp_path: Path) -> None:
    (document,), _, reading = read(tmp_path, [{"text": "A dog.", "triples": [["dog", "is", "The Dog"]]}])

    assert not document.chunks[0].extraction.relations
    assert [entity.name for entity in document.chunks[0].extraction.entities] == ["dog"]
    assert reading.counts["self_loops"] == 1


@pytest.mark.parametrize(
    "content",
    [[CURIE], {"docs": [CURIE]}, CURIE, json.dumps(CURIE) + "\n\n" + json.dumps(CURIE)],
    ids=["list", "docs", "one record", "lines"],
)
def test_the_forms_of_a_file(tmp_path: Path, content: Any) -> None:
    documents, _, _ = read(tmp_path, content)

    assert documents[0].chunks[0].extraction.relations


def test_hipporags_names_of_the_fields(tmp_path: Path) -> None:
    record = {
        "text": "Bees fly.",
        "extracted_triples": [["Bees", "can", "fly"]],
        "extracted_entities": ["Bees", "x"],
    }

    (document,), _, _ = read(tmp_path, {"docs": [record]})

    assert [entity.name for entity in document.chunks[0].extraction.entities] == ["Bees", "fly"]


def test_a_record_without_text_is_rejected_and_a_broken_file_refused(tmp_path: Path) -> None:
    documents, rejected, _ = read(tmp_path, [{"title": "x"}, 3])

    assert not documents
    assert len(rejected) == 2
    with pytest.raises(UsageError, match="line 2 is not valid JSON"):
        read(tmp_path, '{"text": "a"}\n{"text": ')
