"""Exports read back: GraphML by networkx, CSV by its header, JSON lines and tables row by row."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hornbeam.errors import UsageError
from hornbeam.exchange.writing import WRITERS, export_version
from support.importing import import_triples

LINES = 'A "quoted" <name>, & more\tis;a\tB\nB\tpart of\tC\nB\tother\tC\n名\tis;a\tC\n'


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    (folder / "graph.tsv").write_text(LINES, "utf-8")
    report = import_triples(folder / "index", folder / "graph.tsv")
    return folder / "index" / "versions" / str(report["version"])


def test_networkx_reads_the_graphml(version: Path, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    export_version(version, "graphml", tmp_path / "graph.graphml")

    graph = networkx.read_graphml(tmp_path / "graph.graphml")

    assert graph.is_directed()
    names = dict(graph.nodes(data="name"))
    edges = {(names[head], kind, names[tail]) for head, tail, kind in graph.edges(data="type")}
    assert edges == {tuple(line.split("\t")) for line in LINES.splitlines()}
    assert graph.is_multigraph()
    assert all(data["community"] and data["degree"] >= 1 for _, data in graph.nodes(data=True))


def test_neo4j_finds_every_end_of_every_relationship(version: Path, tmp_path: Path) -> None:
    export_version(version, "neo4j-csv", tmp_path / "neo4j")

    ids: dict[str, set[str]] = {}
    script = (tmp_path / "neo4j" / "import.sh").read_text()
    files = {path.name: list(csv.DictReader(path.open())) for path in (tmp_path / "neo4j").glob("*.csv")}
    for name, rows in files.items():
        for column in rows[0] if rows else []:
            if ":ID(" in column:
                assert f"--nodes={name}" in script
                ids[column.partition(":ID")[2]] = {row[column] for row in rows}
    for name, rows in files.items():
        for column in rows[0] if rows else []:
            for end in (":START_ID", ":END_ID"):
                if column.startswith(end):
                    assert f"--relationships={name}" in script
                    assert {row[column] for row in rows} <= ids[column.removeprefix(end)]
    assert {row[":TYPE"] for row in files["relations.csv"]} == {"is,a", "part of", "other"}
    assert 'A "quoted" <name>, & more' in {row["name"] for row in files["entities.csv"]}


def test_json_lines_and_tables_have_every_row(version: Path, tmp_path: Path) -> None:
    export_version(version, "jsonl", tmp_path / "graph.jsonl")
    export_version(version, "parquet", tmp_path / "tables")

    lines = [json.loads(line) for line in (tmp_path / "graph.jsonl").read_text("utf-8").splitlines()]
    tables = {"entity": "entities", "relation": "relations", "merge": "merges", "community": "communities"}
    assert {line["kind"] for line in lines} >= {"document", "chunk", "mention", "entity", "relation"}
    for kind, name in tables.items():
        rows = pq.read_table(tmp_path / "tables" / f"{name}.parquet").to_pylist()
        assert [
            {k: v for k, v in line.items() if k != "kind"} for line in lines if line["kind"] == kind
        ] == rows
    assert json.loads((tmp_path / "tables" / "schema.json").read_text())["entity_types"]


@pytest.mark.parametrize("form", WRITERS)
def test_nothing_is_overwritten(version: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "there").write_text("mine")

    with pytest.raises(UsageError, match="exists"):
        export_version(version, form, tmp_path / "there")

    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize("form", WRITERS)
def test_nothing_is_left_of_an_export_that_was_stopped(
    version: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = WRITERS[form]

    def stopped(directory: Path, target: Path) -> list[Path]:
        write(directory, target)
        raise KeyboardInterrupt

    monkeypatch.setitem(WRITERS, form, stopped)
    with pytest.raises(KeyboardInterrupt):
        export_version(version, form, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["", "versions", "versions/../export", "elsewhere/../tables"])
def test_an_index_is_no_place_for_an_export(version: Path, where: str) -> None:
    index = version.parents[1]
    before = sorted(index.rglob("*"))
    with pytest.raises(UsageError, match="is inside the index"):
        export_version(version, "parquet", index / where / "out")
    assert sorted(index.rglob("*")) == before


@pytest.mark.parametrize("form", WRITERS)
def test_a_path_through_a_file_is_one_clear_line(version: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file" / "out", tmp_path / "file" / "deep" / "out"):
        with pytest.raises(UsageError, match=r"cannot be written: '.*/file' is no folder"):
            export_version(version, form, target)
