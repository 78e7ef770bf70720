"""A first schema from documents alone."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import GateRefused, ModelError, UsageError
from hornbeam.evolve.bootstrap import Bootstrap, bootstrap_schema
from hornbeam.progress import Progress
from hornbeam.schema import load_schema
from hornbeam.schema.load import write_schema
from hornbeam.settings import Settings
from support.type_scripts import TypeScript
from support.version_by_hand import HashedWords

TEXTS = {
    "one.txt": "The schooner Petrel left the harbour Marrow Bay. The Petrel weighs 40 tonnes.",
    "two.txt": "The schooner Lark left the harbour Osterby. The Lark weighs 90 tonnes.",
    "three.txt": "Nobody knows when the rain began.",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def kinds(text: str) -> list[list[str]]:
    named = [("Petrel", "schooner"), ("Lark", "schooner"), ("Marrow Bay", "harbour"), ("Osterby", "harbour")]
    return [[name, kind] for name, kind in named if name in text]


def facts(text: str) -> Any:
    ship, harbour, weight = ("Petrel", "Marrow Bay", "40") if "Petrel" in text else ("Lark", "Osterby", "90")
    return [[ship, "left", harbour]], [[ship, "weighs", weight]]


def bootstrap(corpus: Path, model: TypeScript, sample: int = 10, **evolve: Any) -> Bootstrap:
    settings = Settings.model_validate({"evolve": evolve})
    return bootstrap_schema([corpus], "ships", sample, settings, model, HashedWords(), Progress(quiet=True))


def test_types_that_pass_the_gates_become_a_schema_that_loads(corpus: Path, tmp_path: Path) -> None:
    result = bootstrap(corpus, TypeScript(kinds, facts))

    schema = result.schema
    assert (schema.name, schema.version, schema.parent, schema.changes) == ("ships", 1, None, ())
    assert {item.name for item in schema.entity_types} == {"schooner", "harbour"}
    assert schema.entity_type("schooner").description in (
        "such as Petrel, Lark",
        "such as Lark, Petrel",
    )
    assert schema.allows("left", "schooner", "harbour")
    assert not schema.allows("left", "harbour", "schooner")
    assert (schema.attribute_type("weighs").kind, schema.attribute_type("weighs").domain) == (
        "number",
        ("schooner",),
    )
    assert (result.chunks, result.failed) == (3, 0)
    assert result.to_json()["tokens"]["output"] > 0
    write_schema(schema, tmp_path / "ships.json")
    assert load_schema(str(tmp_path / "ships.json")) == schema


def test_a_sample_is_all_that_is_asked_about(corpus: Path) -> None:
    model = TypeScript(kinds, facts)

    result = bootstrap(corpus, model, 2, min_support=1, min_confidence=0.0)

    assert result.chunks == 2
    assert model.calls <= 4


def test_where_nothing_passes_there_is_no_schema_but_a_reason(corpus: Path) -> None:
    with pytest.raises(GateRefused, match="none of 2 proposed entity types passes the gates"):
        bootstrap(corpus, TypeScript(kinds, facts), min_support=5)
    with pytest.raises(GateRefused, match="none of 0 proposed"):
        bootstrap(corpus, TypeScript(lambda text: [], facts))


def test_a_model_that_is_gone_and_a_folder_without_text_are_errors(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="answered none of 3 questions, the last with: down"):
        bootstrap(corpus, TypeScript(fail_when=lambda request: "down"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no text in"):
        bootstrap(tmp_path / "empty", TypeScript())


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("mine")

    with pytest.raises(UsageError, match="exists already"):
        write_schema(load_schema("general"), tmp_path / "mine.json")
    with pytest.raises(UsageError, match="no folder"):
        write_schema(load_schema("general"), tmp_path / "nowhere" / "mine.json")
    assert (tmp_path / "mine.json").read_text() == "mine"
