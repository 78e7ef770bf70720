"""The whole run of `evaluate text2kg` on a set of three sentences, with a model that answers by chance."""

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from rich.console import Console

from hornbeam.errors import ModelError
from hornbeam.evaluate import text2kg_report
from hornbeam.evaluate.cleanliness import FAULTS
from hornbeam.evaluate.text2kg_methods import Found
from hornbeam.evaluate.text2kg_report import Method, render, run
from hornbeam.extract.result import ChunkExtraction
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.settings import ExtractSettings
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One ontology in Text2KGBench's form."""
    ontology = {
        "title": "people",
        "id": "ont_1_people",
        "concepts": [{"qid": "Person", "label": "Person"}, {"qid": "City", "label": "City"}],
        "relations": [
            {"pid": "birthPlace", "label": "birthPlace", "domain": "Person", "range": "City"},
            {"pid": "birthDate", "label": "birthDate", "domain": "Person", "range": ""},
        ],
    }
    known = [("Ada Byron was born in London.", [("Ada_Byron", "birthPlace", "London")])]
    asked = [
        ("Karl Kesel was born in Prague.", [("Karl_Kesel", "birthPlace", "Prague")]),
        ("Jan Novak was born on 1 May 1820.", [("Jan_Novak", "birthDate", "1820-05-01")]),
        ("Eve Adams lives in Rome.", [("Eve_Adams", "birthPlace", "Rome")]),
    ]
    for name, sentences in (
        ("train/ont_1_people_train", known),
        ("ground_truth/ont_1_people_ground_truth", asked),
    ):
        lines = [
            {
                "id": str(number),
                "sent": text,
                "triples": [{"sub": head, "rel": relation, "obj": tail} for head, relation, tail in facts],
            }
            for number, (text, facts) in enumerate(sentences)
        ]
        file = tmp_path / f"{name}.jsonl"
        file.parent.mkdir()
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "ontologies").mkdir()
    (tmp_path / "ontologies" / "1_people_ontology.json").write_text(json.dumps(ontology), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("method", ["guided", "staged", "staged-known"])
def test_every_answer_is_held_against_its_schema_and_text(folder: Path, method: Method) -> None:
    predictions = folder / "predictions.jsonl"
    facts = 0
    for seed in range(6):  # one walk may close every list at once
        model = GrammarWalker(seed, closing=0.02)
        report = run(
            folder,
            model,
            HashedWords(),
            ExtractSettings(max_output_tokens=96),
            ontologies=None,
            split="test",
            method=method,
            limit=None,
            predictions=predictions,
        )
        clean = report["cleanliness"]
        assert {fault: clean[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0), clean["examples"]
        assert clean["answers"] == report["tokens"]["calls"] == model.calls
        assert clean["items"] > 0
        rows = [json.loads(line) for line in predictions.read_text("utf-8").splitlines()]
        assert [row["text"].partition(" ")[0] for row in rows] == ["Karl", "Jan", "Eve"]
        assert sum(len(row["predicted"]) for row in rows) == report["facts"]
        assert all(len(given["figures"]) >= 3 for row in rows for given in row["given"])
        assert {tuple(fact) for row in rows for fact in row["predicted"]} <= {
            tuple(given["fact"]) for row in rows for given in row["given"]
        }
        facts += report["facts"]
    assert facts > 0
    shown = io.StringIO()
    render(report, Console(file=shown, width=120))
    assert "dangling 0" in shown.getvalue()


def test_a_run_that_is_cut_off_has_left_the_sentences_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CutOff(Exception):
        pass

    def two_and_then_nothing(one, model, encoder, settings, tell):  # type: ignore[no-untyped-def]
        for number in (1, 0, 2):
            if number == 2:
                raise CutOff
            tell(number, Found(ChunkExtraction(), ()))

    monkeypatch.setitem(text2kg_report._WAYS, "staged", two_and_then_nothing)
    predictions = folder / "predictions.jsonl"
    with pytest.raises(CutOff):
        run(
            folder,
            GrammarWalker(5),
            HashedWords(),
            ExtractSettings(),
            ontologies=None,
            split="test",
            method="staged",
            limit=None,
            predictions=predictions,
        )
    rows = [json.loads(line) for line in predictions.read_text("utf-8").splitlines()]
    assert [row["text"].partition(" ")[0] for row in rows] == ["Karl", "Jan"]
