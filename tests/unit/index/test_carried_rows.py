"""An index that takes over what is the same in an earlier one is, byte for byte, the one from scratch."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam.index.build import build_indexes
from hornbeam.index.carried_rows import CarriedRows
from hornbeam.records import Attribute, Chunk, Community, Document, Entity, Relation
from hornbeam.settings import EmbedderSettings
from support.version_by_hand import HashedWords, ListeningWords, small_rows, write_tables

Rows = dict[str, list[Any]]


def change(table: str, place: int, **values: Any) -> Callable[[Rows], None]:
    def edit(rows: Rows) -> None:
        rows[table][place] = replace(rows[table][place], **values)

    return edit


def add(table: str, *records: Any) -> Callable[[Rows], None]:
    def edit(rows: Rows) -> None:
        rows[table] = [*records, *rows[table]]

    return edit


def drop(table: str, place: int) -> Callable[[Rows], None]:
    def edit(rows: Rows) -> None:
        del rows[table][place]

    return edit


EDITS: dict[str, Callable[[Rows], None]] = {
    "another name": change("entities", 0, name="Maria Skłodowska"),
    "another type": change("entities", 1, type="capital"),
    "a description": change("entities", 2, description="A country."),
    "an alias more": change("entities", 0, aliases=["Curie", "M. Curie"]),
    "aliases that join to the same": change("entities", 3, aliases=["a b", "c"]),
    "no aliases": change("entities", 0, aliases=[]),
    "an entity more": add("entities", Entity("e0", "Vistula", "river", "", [], 0, 0, 0.5)),
    "another value": change("attributes", 0, value="Sorbonne"),
    "another confidence": change("attributes", 0, confidence=0.2),
    "another owner": change("attributes", 0, entity_id="e2"),
    "an attribute more": add("attributes", Attribute("a0", "e1", "birth_year", "1867", 0.9)),
    "no attribute": lambda rows: rows.update(attributes=[], attribute_evidence=[]),
    "a relation more": add("relations", Relation("r0", "e3", "holds", "e2", 1.0, 0.5, "")),
    "a relation that tells nothing": change("relations", 1, type="related_to", description="Warsaw, Poland."),
    "another sentence": change("relations", 1, type="related_to", description="Poland has Warsaw."),
    "another description": change("relations", 2, description="She found it."),
    "no relation": lambda rows: rows.update(relations=[], relation_evidence=[]),
    "nothing": lambda rows: rows.update({name: [] for name in rows}),
    "another text": change("chunks", 0, text="Radium is an element."),
    "another title": change("documents", 0, title="Radium"),
    "another place": change("documents", 1, source="Warsaw"),
    "another home": change("chunks", 0, document_id="d2"),
    "a chunk more": lambda rows: (
        add("documents", Document("d0", "o.txt", "Ovid", "Ars.", "la", ["o.txt"]))(rows),
        add("chunks", Chunk("d0c0", "d0", 0, 4, "Ars.", 2, "done"))(rows),
    )[0],
    "another summary": change("communities", 0, summary="It says more."),
    "other keywords": change("communities", 1, keywords=["Poland", "Warsaw"]),
    "one keyword from two": change("communities", 3, keywords=["Curie, Warsaw"]),
    "a community more": add("communities", Community("k0", 0, None, "Rivers", "", 1, "e2", ["river"])),
    "a community less": lambda rows: (
        drop("community_members", 4)(rows),
        drop("communities", 2)(rows),
    )[0],
}


def index_of(directory: Path, rows: Rows, carried: CarriedRows | None = None) -> dict[str, bytes]:
    build_indexes(directory, HashedWords(), EmbedderSettings(), carried=carried)
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def compare(folder: Path, before: Rows, now: Rows) -> CarriedRows:
    earlier = write_tables(folder / "earlier", before)
    build_indexes(earlier, HashedWords(), EmbedderSettings())
    carried = CarriedRows(earlier, write_tables(folder / "now", now), HashedWords.dimension)
    with_it = index_of(folder / "now", now, carried)
    assert with_it == index_of(write_tables(folder / "scratch", now), now)
    return carried


@given(names=st.lists(st.sampled_from(sorted(EDITS)), unique=True, max_size=4), backwards=st.booleans())
@settings(max_examples=10, deadline=None)
def test_what_is_taken_over_makes_no_difference(names: list[str], backwards: bool) -> None:
    before, now = small_rows(), small_rows()
    # Those that go by place come before those that move rows.
    order = sorted(names, key=lambda one: (one == "nothing", one.endswith((" more", " less")), one))
    for name in order:
        EDITS[name](now)
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), *((now, before) if backwards else (before, now)))


@pytest.mark.parametrize(
    ("edit", "kind", "rows"),
    [
        ("another name", "entities", [0]),
        ("another name", "triples", [0, 2]),
        ("a relation that tells nothing", "triples", [1]),
        ("another description", "triples", []),
        ("another value", "entities", [0]),
        ("another value", "written", []),
        ("an alias more", "written", [0]),
        ("an alias more", "entities", []),
        ("another title", "chunks", [0]),
        ("other keywords", "communities", [1]),
    ],
)
def test_only_what_the_text_depends_on_is_made_anew(
    tmp_path: Path, edit: str, kind: str, rows: list[int]
) -> None:
    now = small_rows()
    EDITS[edit](now)
    carried = compare(tmp_path, small_rows(), now)
    assert np.flatnonzero(carried.before(kind) < 0).tolist() == rows


def test_only_new_texts_are_encoded(tmp_path: Path) -> None:
    earlier = write_tables(tmp_path / "earlier", small_rows())
    build_indexes(earlier, HashedWords(), EmbedderSettings())
    now = small_rows()
    EDITS["another text"](now)
    EDITS["another summary"](now)
    directory = write_tables(tmp_path / "now", now)
    embedder = ListeningWords()
    build_indexes(
        directory,
        embedder,
        EmbedderSettings(),
        carried=CarriedRows(earlier, directory, HashedWords.dimension),
    )
    assert embedder.asked == [
        "Radium pioneers\nRadium is an element.",
        "Discovery. polonium. It says more",
    ]


def test_another_sentence_of_a_relation_that_tells_nothing_is_another_text(tmp_path: Path) -> None:
    before, now = small_rows(), small_rows()
    EDITS["a relation that tells nothing"](before)
    EDITS["another sentence"](now)

    assert np.flatnonzero(compare(tmp_path, before, now).triples < 0).tolist() == [1]


def test_rows_are_compared_a_few_at_a_time_wherever_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hornbeam.index.carried_rows._ROWS_AT_ONCE", 2)
    monkeypatch.setattr("hornbeam.index.carried_rows._RANGE_AT_ONCE", 1)
    monkeypatch.setattr("hornbeam.index.rows._TEXT_BATCH", 2)
    now = small_rows()
    for edit in ("a description", "other keywords", "another text", "an entity more"):
        EDITS[edit](now)
    carried = compare(tmp_path, small_rows(), now)
    assert carried.entities.tolist() == [-1, 0, 1, -1, 3, 4]
    assert carried.chunks.tolist() == [-1, 1, 2, 3]
    assert carried.communities.tolist() == [0, -1, 2, 3]


@pytest.mark.parametrize("edit", ["no relation", "no attribute", "nothing"])
def test_tables_may_be_empty_before_or_now(tmp_path: Path, edit: str) -> None:
    few = small_rows()
    EDITS[edit](few)
    compare(tmp_path / "fewer", small_rows(), few)
    compare(tmp_path / "more", few, small_rows())
