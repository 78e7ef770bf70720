"""Imports end as versions like any other, survive a rebuild, and are replaced when their file changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hornbeam.errors import Interrupted, UsageError
from hornbeam.exchange.openie import read_openie
from hornbeam.importing import Import
from hornbeam.opening import open_knowledge_base
from hornbeam.progress import Progress
from hornbeam.retrieve.search import search
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import open_current
from support.building import build, table, walking_settings
from support.importing import HASHED, import_triples
from support.invariants import check_invariants

TRIPLES = "Marie Curie\tborn_in\tWarsaw\nWarsaw\tcapital_of\tPoland\nMarie Curie\tdiscovered\tpolonium\n"


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    path = tmp_path / "graph.tsv"
    path.write_text(TRIPLES, "utf-8")
    return path


def facts(index: Path, version: str) -> set[tuple[str, str, str]]:
    names = {row["entity_id"]: row["name"] for row in table(index, version, "entities")}
    relations = table(index, version, "relations")
    return {(names[row["head_id"]], row["type"], names[row["tail_id"]]) for row in relations}


def test_an_imported_graph_keeps_the_invariants_and_can_be_searched(tmp_path: Path, tsv: Path) -> None:
    report = import_triples(tmp_path / "index", tsv)

    assert (report["exit_code"], report["entities"], report["relations"]) == (0, 4, 3)
    assert report["promoted"]
    assert report["seconds"]["organise"] > 0
    assert facts(tmp_path / "index", report["version"]) == {
        tuple(line.split("\t")) for line in TRIPLES.splitlines()
    }
    check_invariants(tmp_path / "index" / "versions" / report["version"])
    kb, version = open_knowledge_base(tmp_path / "index", Settings())
    assert version.manifest["model"]["name"] == "none"
    best = search(kb, "Where was Marie Curie born?", Settings().retrieve).items[0]
    assert "Marie Curie" in best.text
    assert best.provenance is not None
    assert best.provenance.source == f"{tsv}#1"


def test_the_same_import_again_changes_nothing(tmp_path: Path, tsv: Path) -> None:
    first = import_triples(tmp_path / "index", tsv)
    again = import_triples(tmp_path / "index", tsv)

    assert again["unchanged"]
    assert again["version"] == first["version"]


def test_a_changed_file_replaces_its_old_facts(tmp_path: Path, tsv: Path) -> None:
    import_triples(tmp_path / "index", tsv)
    tsv.write_text("Warsaw\tcapital_of\tPoland\n", "utf-8")
    report = import_triples(tmp_path / "index", tsv)
    fresh = import_triples(tmp_path / "fresh", tsv)

    assert report["version"] == fresh["version"]
    assert facts(tmp_path / "index", report["version"]) == {("Warsaw", "capital_of", "Poland")}


def test_two_files_in_either_order_are_one_graph(tmp_path: Path, tsv: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("polonium\tis_a\telement\n", "utf-8")
    import_triples(tmp_path / "one", tsv)
    one = import_triples(tmp_path / "one", other)
    two = import_triples(tmp_path / "two", other, tsv)

    assert one["version"] == two["version"]
    assert one["relations"] == 4


def test_a_build_keeps_what_was_imported_and_an_import_what_was_read(tmp_path: Path, tsv: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("The river Vistula flows through Warsaw.", "utf-8")
    index = tmp_path / "index"
    import_triples(index, tsv)
    built = build(index, [text])
    other = tmp_path / "other.tsv"
    other.write_text("polonium\tis_a\telement\n", "utf-8")
    report = import_triples(index, other, settings=walking_settings(embedder={"kind": "hashed"}))

    assert built.version is not None
    assert built.chunks["total"] == 2
    assert built.promoted
    imported = {tuple(line.split("\t")) for line in TRIPLES.splitlines()}
    assert imported <= facts(index, built.version)
    assert imported | {("polonium", "is_a", "element")} <= facts(index, report["version"])
    assert {row["source"] for row in table(index, report["version"], "documents")} == {
        str(text), f"{tsv}#1", f"{other}#1"
    }  # fmt: skip
    check_invariants(open_current(index).directory)


def test_a_fact_of_a_thing_about_itself_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "loops.tsv"
    path.write_text("a\tknows\ta\na\tknows\tb\n", "utf-8")

    report = import_triples(tmp_path / "index", path)

    assert report["relations"] == 2
    assert report["import"]["self_loops"] == 1
    assert facts(tmp_path / "index", report["version"]) == {("a", "knows", "a"), ("a", "knows", "b")}


def test_names_that_stand_nowhere_are_entities_without_a_mention(tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    record = {
        "text": "Curie was born in Warsaw.",
        "triples": [["Curie", "born in", "Warsaw"], ["Curie", "is", "famous"]],
    }
    path.write_text(json.dumps([record]), "utf-8")

    report = Import(tmp_path / "index", HASHED, Progress(quiet=True)).run([path], read_openie)

    rows = {row["name"]: row for row in table(tmp_path / "index", report["version"], "entities")}
    assert {name: row["mentions"] for name, row in rows.items()} == {"Curie": 1, "Warsaw": 1, "famous": 0}
    assert report["promoted"]
    kb, _ = open_knowledge_base(tmp_path / "index", Settings())
    assert any("famous" in item.text for item in search(kb, "famous", Settings().retrieve).items)


def test_a_file_without_a_fact_is_refused_and_leaves_the_index_as_it_was(tmp_path: Path, tsv: Path) -> None:
    before = import_triples(tmp_path / "index", tsv)
    empty = tmp_path / "empty.tsv"
    empty.write_text("no,commas,please\n", "utf-8")

    with pytest.raises(UsageError, match=r"there is no fact in it .*empty\.tsv:1"):
        import_triples(tmp_path / "index", empty)

    assert open_current(tmp_path / "index").version_id == before["version"]
    assert import_triples(tmp_path / "index", tsv)["version"] == before["version"]


def test_a_stopped_import_keeps_what_was_read_and_the_next_ends_as_if_undisturbed(
    tmp_path: Path, tsv: Path
) -> None:
    whole = import_triples(tmp_path / "whole", tsv)
    with pytest.raises(Interrupted, match=r"documents are read.*run the same command again") as caught:
        import_triples(tmp_path / "index", tsv, stop=StopRequest(requested=True))
    assert caught.value.exit_code == 1
    with Ledger(tmp_path / "index", create=False) as ledger:
        assert ledger.counts()["documents"] > 0
    assert import_triples(tmp_path / "index", tsv)["version"] == whole["version"]
