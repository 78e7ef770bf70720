"""Builds without a model, and the same index deepened by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hornbeam.build import BuildReport
from hornbeam.errors import ModelError, SchemaError
from hornbeam.llm.protocol import Request
from hornbeam.llm.unused import UnusedModel
from hornbeam.opening import open_build_model, open_schema
from hornbeam.schema import load_schema
from hornbeam.settings import load_settings
from support.building import build, table, table_bytes, walker, walking_settings
from support.invariants import check_invariants

TEXTS = {
    "a.txt": "In Warsaw he met Marie Curie. Marie Curie left Warsaw for Paris in 1891.\n\n"
    "In Paris she met Pierre Curie, and Marie Curie worked with Pierre Curie in Paris.",
    "b.txt": "宋江上梁山，吴用见宋江，宋江道好。众人都拜宋江为首，吴用在梁山不去。",
    "c.txt": "",
    "d.txt": "nothing here has a name",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def build_fast(index: Path, corpus: Path) -> BuildReport:
    return build(
        index,
        [corpus],
        settings=walking_settings(extract={"tier": "fast"}),
        schema=load_schema("cooccurrence"),
        model=UnusedModel(walker()),
    )


def test_a_build_without_a_model_keeps_the_invariants(tmp_path: Path, corpus: Path) -> None:
    index = tmp_path / "index"
    report = build_fast(index, corpus)
    assert report.promoted
    assert report.tokens == {}
    assert report.chunks["done"] == report.chunks["total"] > 2
    tables = check_invariants(index / "versions" / str(report.version))
    names = {row["name"] for row in tables["entities"]}
    assert {"Marie Curie", "Pierre Curie", "Paris", "宋江"} <= names
    pair = {"Marie Curie", "Pierre Curie"}
    by_id = {row["entity_id"]: row["name"] for row in tables["entities"]}
    facts = {
        frozenset((by_id[r["head_id"]], by_id[r["tail_id"]])): r["confidence"] for r in tables["relations"]
    }
    assert frozenset(pair) in facts
    for community in tables["communities"]:
        assert community["name"].split(", ")[0] in names
        assert community["summary"]


def test_the_same_documents_give_the_same_version(tmp_path: Path, corpus: Path) -> None:
    first = build_fast(tmp_path / "one", corpus)
    again = build_fast(tmp_path / "one", corpus)
    assert again.unchanged
    assert build_fast(tmp_path / "two", corpus).version == first.version == again.version


def test_a_model_deepens_the_index_over_the_same_chunks(tmp_path: Path, corpus: Path) -> None:
    index = tmp_path / "index"
    fast = build_fast(index, corpus)
    deep = build(index, [corpus])
    assert deep.promoted
    assert deep.tokens["entities"]["calls"] >= 1
    assert deep.chunks["reused"] < deep.chunks["total"]
    assert deep.documents["unchanged"] == len(TEXTS) - 1
    chunks = [{row["chunk_id"] for row in table(index, run.version, "chunks")} for run in (fast, deep)]
    assert chunks[0] == chunks[1]
    assert "term" not in {row["type"] for row in table(index, deep.version, "entities")}
    # As if the fast tier had never been: and back again costs nothing.
    alone = build(tmp_path / "other", [corpus])
    assert table_bytes(index, deep.version) == table_bytes(tmp_path / "other", alone.version)
    back = build_fast(index, corpus)
    assert back.version == fast.version
    assert back.chunks["reused"] == back.chunks["total"]


def test_the_unused_model_answers_nothing() -> None:
    model = UnusedModel(walker())
    request = Request("x", "y", 1)
    for ask in (lambda: model.submit(request), lambda: model.stream(request), lambda: model.neutralise("")):
        with pytest.raises(ModelError, match=r"extract\.tier = fast"):
            ask()
    assert model.poll() == []
    assert model.identity.fingerprint == walker().identity.fingerprint
    assert model.tokenizer.count("two words") > 0


def test_settings_choose_schema_and_model(tmp_path: Path) -> None:
    fast = load_settings(overrides={"extract.tier": "fast", "schema_file": "medical"}, environment={})
    own, note = open_schema(tmp_path, fast)
    assert (own.name, "'medical' is for the model tier" in note) == ("cooccurrence", True)
    plain = load_settings(overrides={"extract.tier": "fast"}, environment={})
    assert open_schema(tmp_path, plain)[1] == ""
    (tmp_path / "broken.json").write_text("{")
    for mistaken in ("nowhere.json", str(tmp_path / "broken.json")):
        with pytest.raises(SchemaError, match=r"nowhere|broken"):
            open_schema(
                tmp_path,
                load_settings(overrides={"extract.tier": "fast", "schema_file": mistaken}, environment={}),
            )
    assert isinstance(open_build_model(fast), UnusedModel)
    deep = load_settings(overrides={"schema_file": "medical"}, environment={})
    assert open_schema(tmp_path, deep)[0].name == "medical"
    assert not isinstance(open_build_model(deep), UnusedModel)
