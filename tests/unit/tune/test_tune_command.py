"""`hornbeam tune` from annotated sets to an adapter that extraction is then served with."""

import json
from pathlib import Path

import pytest

pytest.importorskip("peft")
pytest.importorskip("xgrammar")

from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.errors import UsageError
from hornbeam.llm.adapter import read_adapter
from hornbeam.tune.card import TrainedOn
from support.tiny_model import write_tiny_model

PEOPLE = [
    f"{first} {last}" for first in ("Ada", "Karl", "Mary", "Hugo") for last in ("Byron", "Kesel", "Ball")
]
PLACES = [
    "London",
    "Oslo",
    "Paris",
    "Zurich",
    "Down",
    "Norfolk",
    "Kent",
    "Delft",
    "Bonn",
    "Lyon",
    "Graz",
    "Cork",
]


def line(person: str, place: str) -> str:
    triple = {"sub": person, "rel": "birth place", "obj": place}
    return json.dumps({"id": person, "sent": f"{person} was born in {place}.", "triples": [triple]})


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sets")
    ontology = {
        "title": "People",
        "id": "ont_1",
        "concepts": [{"qid": "P", "label": "person"}, {"qid": "L", "label": "place"}],
        "relations": [{"pid": "b", "label": "birth place", "domain": "P", "range": "L"}],
    }
    for folder in ("ontologies", "train", "ground_truth"):
        (root / folder).mkdir()
    lines = [line(person, place) for person, place in zip(PEOPLE, PLACES, strict=True)]
    for number in (1, 2):
        (root / "ontologies" / f"{number}_people_ontology.json").write_text(json.dumps(ontology))
        (root / "train" / f"ont_{number}_people_train.jsonl").write_text("\n".join(lines))
    (root / "ground_truth" / "ont_1_people_ground_truth.jsonl").write_text(line("Ada Byron", "London"))
    return root


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def run(sets: Path, base: Path, output: Path, *more: str) -> dict:
    arguments = [
        "tune",
        str(sets),
        "--output",
        str(output),
        "--model",
        str(base),
        "--device",
        "cpu",
        "--json",
    ]
    arguments += ["--max-steps", "3", "--step-tokens", "600", "--evaluate-every", "2"]
    arguments += ["--set", "model.backend=transformers", "--set", "extract.examples=1"]
    arguments += ["--set", "embedder.kind=hashed", "--licence", "CC-BY-SA-4.0", *more]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_an_adapter_is_made_with_its_card_and_extraction_asks_for_judgements(
    sets: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORNBEAM_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "mine"
    report = run(sets, base, output)
    trained, held_out = (TrainedOn(**source) for source in report["data"])
    # The sentence that the set is tested on was in its training file: it is in neither.
    assert (trained.texts, trained.left_out, trained.held_out) == (11, 1, False)
    assert (held_out.left_out, held_out.held_out) == (1, True)
    assert report["progress"]["step"] == 3
    assert report["scores"]["texts"] > 0
    adapter = read_adapter(output)
    assert adapter.card.judges
    assert (output / "README.md").read_text("utf-8").count("CC-BY-SA-4.0") == 2
    again = run(sets, base, output)
    assert again["progress"] == report["progress"]  # nothing is trained twice

    from hornbeam.evaluate.text2kg_report import run as evaluate
    from hornbeam.index.hashed_embedder import HashedEmbedder
    from hornbeam.llm.opening import open_model
    from hornbeam.settings import load_settings

    settings = load_settings(
        None,
        {
            "model.path": str(base),
            "model.adapter": str(output),
            "model.backend": "transformers",
            "device": "cpu",
            "extract.examples": 1,
        },
    )
    predictions = tmp_path / "predictions.jsonl"
    model = open_model(settings)
    try:
        evaluate(
            sets,
            model,
            HashedEmbedder(),
            settings.extract,
            ontologies=None,
            split="test",
            method="guided",
            limit=None,
            predictions=predictions,
        )
    finally:
        model.close()
    (asked,) = (json.loads(row) for row in predictions.read_text("utf-8").splitlines())
    assert asked["given"]
    assert all(0 <= fact["stated"] <= 1 for fact in asked["given"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--hold-out", "nobody"), "no such set"),
        (("--model", "http://localhost:1"), "behind a URL"),
    ],
)
def test_what_cannot_be_done_is_said(
    sets: Path, base: Path, tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run(sets, base, tmp_path / "x", *more)
