"""Microsoft GraphRAG's tables: in, out, and there and back again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hornbeam.errors import UsageError
from hornbeam.exchange.graphrag import read_graphrag
from hornbeam.exchange.imported import Reading
from hornbeam.exchange.writing import export_version
from hornbeam.importing import Import
from hornbeam.progress import Progress
from support.building import table
from support.importing import HASHED, import_triples

DATA = Path(os.environ.get("HORNBEAM_DATA") or Path(__file__).parents[3] / "../shared/data")
DULCE = DATA / "recorded_llm" / "ms_operation_dulce"
TEXT = "Agent Alex Mercer met Taylor Cruz.\n\nTaylor  Cruz left the base."


def write_graphrag_index(folder: Path) -> Path:
    """One document of two text units, three entities, one of them not in the text."""
    folder.mkdir()
    first, second = TEXT.split("\n\n")
    rows: dict[str, list[dict[str, Any]]] = {
        "documents": [{"id": "d", "title": "mission.txt", "text": TEXT, "text_unit_ids": ["u1", "u2"]}],
        "text_units": [
            {
                "id": "u1",
                "text": first,
                "document_id": "d",
                "entity_ids": ["a", "t"],
                "relationship_ids": ["r"],
            },
            {
                "id": "u2",
                "text": second,
                "document_id": "d",
                "entity_ids": ["t", "b"],
                "relationship_ids": [],
            },
        ],
        "entities": [
            {"id": "a", "title": "ALEX MERCER", "type": "PERSON", "description": "An agent\nwith doubts."},
            {"id": "t", "title": "TAYLOR CRUZ", "type": "PERSON", "description": "Strict."},
            {"id": "b", "title": "DULCE BASE", "type": "GEO", "description": "Under ground."},
        ],
        "relationships": [
            {
                "id": "r",
                "source": "ALEX MERCER",
                "target": "TAYLOR CRUZ",
                "description": "They work together.",
            },
            {"id": "x", "source": "ALEX MERCER", "target": "NOBODY", "description": ""},
        ],
    }
    for name, some in rows.items():
        pq.write_table(pa.Table.from_pylist(some), folder / f"{name}.parquet")
    return folder


def bring_in(index: Path, folder: Path) -> dict[str, Any]:
    return Import(index, HASHED, Progress(quiet=True)).run([folder], read_graphrag)


def test_an_index_of_graphrag_becomes_one_of_ours(tmp_path: Path) -> None:
    report = bring_in(tmp_path / "index", write_graphrag_index(tmp_path / "graphrag"))

    assert report["promoted"]
    assert (report["entities"], report["relations"]) == (3, 1)
    assert [item["reason"] for item in report["documents"]["rejected"]] == [
        "'NOBODY' is not among the entities"
    ]
    rows = {row["name"].upper(): row for row in table(tmp_path / "index", report["version"], "entities")}
    assert {row["name"] for row in rows.values()} == {"Alex Mercer", "Taylor Cruz", "DULCE BASE"}
    assert "An agent with doubts." in rows["ALEX MERCER"]["description"]
    assert rows["DULCE BASE"]["type"] == "GEO"
    (relation,) = table(tmp_path / "index", report["version"], "relations")
    assert "They work together." in relation["description"]
    mentions = table(tmp_path / "index", report["version"], "mentions")
    assert "Taylor  Cruz" in {mention["surface"] for mention in mentions}


def test_there_and_back_again(tmp_path: Path) -> None:
    graph = tmp_path / "graph.tsv"
    graph.write_text("Curie\tborn_in\tWarsaw\tperson\tcity\nWarsaw\tcapital_of\tPoland\tcity\tcountry\n")
    first = import_triples(tmp_path / "one", graph)
    export_version(tmp_path / "one" / "versions" / first["version"], "graphrag", tmp_path / "out")

    second = bring_in(tmp_path / "two", tmp_path / "out")

    def facts(index: Path, version: str) -> set[tuple[str, ...]]:
        names = {
            row["entity_id"]: f"{row['name']}|{row['type']}" for row in table(index, version, "entities")
        }
        rows = table(index, version, "relations")
        return {(names[row["head_id"]], row["type"], names[row["tail_id"]]) for row in rows}

    assert facts(tmp_path / "two", second["version"]) == facts(tmp_path / "one", first["version"])


def test_the_tables_are_graphrags(tmp_path: Path) -> None:
    graph = tmp_path / "graph.tsv"
    graph.write_text("".join(f"n{i}\tr\tn{i + 1}\n" for i in range(120)))
    report = import_triples(tmp_path / "index", graph)
    out = tmp_path / "out"
    export_version(tmp_path / "index" / "versions" / report["version"], "graphrag", out)

    communities = {row["community"]: row for row in pq.read_table(out / "communities.parquet").to_pylist()}
    top = [row for row in communities.values() if row["parent"] == -1]
    assert {row["level"] for row in top} == {0}
    assert sum(row["size"] for row in top) == report["entities"]
    for row in communities.values():
        assert row["size"] == len(row["entity_ids"])
        for child in row["children"]:
            assert communities[child]["parent"] == row["community"]
            assert communities[child]["level"] == row["level"] + 1
    entities = pq.read_table(out / "entities.parquet").to_pylist()
    units = {row["id"]: row for row in pq.read_table(out / "text_units.parquet").to_pylist()}
    for entity in entities:
        assert entity["frequency"] == len(entity["text_unit_ids"]) > 0
        assert all(entity["id"] in units[unit]["entity_ids"] for unit in entity["text_unit_ids"])


@pytest.mark.data
def test_the_tables_have_the_columns_of_a_real_index(tmp_path: Path) -> None:
    if not DULCE.is_dir():
        pytest.skip(f"no evaluation data at {DATA}")
    report = bring_in(tmp_path / "index", DULCE)
    assert report["promoted"]
    # Two of its 107 relationships lead to entities that it does not have.
    assert (report["entities"], report["relations"]) == (39, 105)
    assert len(report["documents"]["rejected"]) == 2
    out = tmp_path / "out"
    export_version(tmp_path / "index" / "versions" / report["version"], "graphrag", out)
    for path in out.glob("*.parquet"):
        real = set(pq.read_schema(DULCE / path.name).names)
        written = set(pq.read_schema(path).names)
        assert real - written <= {"children", "full_content_json"}, path.name


def test_what_is_no_graphrag_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"entities\.parquet: cannot be read"):
        list(read_graphrag(tmp_path / "empty", Reading()))
    folder = write_graphrag_index(tmp_path / "graphrag")
    pq.write_table(pa.table({"id": ["a"]}), folder / "entities.parquet")
    with pytest.raises(UsageError, match="no column description, title, type"):
        list(read_graphrag(folder, Reading()))
