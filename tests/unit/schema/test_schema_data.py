"""Schema files as they are found in the world: the evaluation data."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from hornbeam.schema import GraphSchema, load_schema, read_schema

pytestmark = pytest.mark.data

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def data() -> Path:
    named = os.environ.get("HORNBEAM_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no evaluation data: {folder} is not there and HORNBEAM_DATA names no other folder")
    return folder


def load_all(files: list[Path]) -> dict[str, GraphSchema]:
    schemas = {file.stem: load_schema(str(file)) for file in files}
    for schema in schemas.values():
        assert read_schema(schema.to_json(), "unused") == schema
    return schemas


def test_every_text2kgbench_ontology_loads_with_all_its_relations(data: Path) -> None:
    files = sorted((data / "text2kgbench").glob("*/ontologies/*.json"))
    schemas = load_all(files)
    assert len(schemas) == 29
    for file in files:
        schema, content = schemas[file.stem], json.loads(file.read_text("utf-8"))
        assert {r["label"].strip() for r in content["relations"]} == {r.name for r in schema.relation_types}
        assert {c["label"].strip() for c in content["concepts"]} <= {e.name for e in schema.entity_types}
        # No model can find an entity of type Q7432.
        assert not [e.name for e in schema.entity_types if re.fullmatch(r"Q\d+", e.name)]


def test_text2kgbench_literals_are_entity_types_of_their_own(data: Path) -> None:
    (file,) = (data / "text2kgbench" / "dbpedia_webnlg" / "ontologies").glob("1_university*.json")
    schema = load_schema(str(file))
    assert schema.tail_types("latinName") == ("string",)
    assert schema.entity_type("string").description


def test_every_oskgc_ontology_loads_and_allows_the_gold(data: Path) -> None:
    """The gold names the most specific types, the ontologies general ones: the hierarchy must be used."""
    folder = data / "oskgc"
    schemas = load_all(sorted((folder / "ontology").glob("*.json")))
    assert len(schemas) == 57
    allowed = gold = 0
    for file in sorted((folder / "data" / "test").glob("*.xml")):
        for triple in ElementTree.parse(file).iter("schema"):
            head, relation, tail = ((triple.findtext(tag) or "").strip() for tag in ("sub", "rel", "obj"))
            gold += 1
            allowed += schemas[file.stem].allows(relation, head, tail)
    assert gold > 700
    assert allowed / gold > 0.99


def test_the_nerel_seed_says_what_the_annotation_conf_says(data: Path) -> None:
    conf = load_schema(str(data / "nerel" / "annotation.conf"))
    seed = load_schema("nerel")
    assert [e.name.lower() for e in conf.entity_types] == [e.name for e in seed.entity_types]
    assert {
        (r.name.lower(), *(tuple(t.lower() for t in side) for side in (r.domain, r.range)))
        for r in conf.relation_types
    } == {(r.name, r.domain, r.range) for r in seed.relation_types}
