"""`hornbeam evaluate qa`: measures of answers, questions without their evidence, report and judge."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hornbeam.answer.writing import without_marks
from hornbeam.errors import UsageError
from hornbeam.evaluate.answer_metrics import (
    abstention,
    auroc,
    exact_match,
    f1,
    normalised,
)
from hornbeam.evaluate.answer_report import add_judge, render, run
from hornbeam.evaluate.asking import Variant, variant
from hornbeam.evaluate.judging import ToJudge, judged
from hornbeam.evaluate.question_files import read_questions
from hornbeam.index.build import build_indexes
from hornbeam.llm.protocol import Completion, Request
from hornbeam.llm.shared import SharedModel
from hornbeam.retrieve.hiding import hide
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.settings import AnswerSettings, EmbedderSettings, RetrieveSettings, load_settings
from support.scripted_model import ScriptedModel
from support.version_by_hand import TEXTS, HashedWords, small_rows, write_tables
from support.walker import GrammarWalker

CURIE = {"title": "Radium pioneers", "text": TEXTS["d1"][2]}
WARSAW = {"title": "Warsaw", "text": TEXTS["d2"][2]}
ROWS: list[dict[str, Any]] = [
    {"id": "q1", "question": "What did Curie discover?", "answer": "Polonium", "supporting": [CURIE]},
    {
        "id": "q2",
        "question": "Where was Marie Curie born, the capital of which country?",
        "answer": "Poland",
        "aliases": ["Republic of Poland"],
        "supporting": [CURIE, WARSAW],
    },
    {"id": "q3", "question": "Who paints the moon?", "answer": "nobody", "answerable": False},
]


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    directory = write_tables(tmp_path / "version", small_rows())
    build_indexes(directory, HashedWords(), EmbedderSettings())
    return KnowledgeBase.open(directory, HashedWords())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    return path


def said(request: Request) -> str:
    """Answers what the evidence in sight says, and says yes where there is any."""
    asked = request.prompt.rpartition("Question: ")[2]
    seen = request.prompt.rpartition("Evidence:")[2]
    known = ("discover" in asked and "discovered polonium" in seen) or (
        "country" in asked and "capital of Poland" in seen
    )
    if '"yes"' in (request.grammar or ""):
        return "yes" if known else "no"
    return ("polonium [1]" if "discover" in asked else "In Poland. [1]") if known else "No idea [1]"


@pytest.fixture
def model() -> Iterator[SharedModel]:
    shared = SharedModel(ScriptedModel(said))
    yield shared
    shared.close()


def ask(
    file: Path, kb: KnowledgeBase, model: SharedModel, mode: str, **options: Any
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    settings = AnswerSettings.model_validate({"mode": mode})
    variants = options.pop("variants", [Variant("mix", "mix", RetrieveSettings(floor=0))])
    return run(file, kb, model, variants, settings, "short", **options)


@pytest.mark.parametrize(
    ("answer", "normal"),
    [
        ("The  Eiffel-Tower!", "eiffeltower"),
        ("A man, an ox and the the.", "man ox and"),
        ("theatre", "theatre"),
        ("“Ça”", "“ça”"),  # of marks only ASCII's go
        ("", ""),
    ],
)
def test_answers_are_normalised_as_hipporag_does(answer: str, normal: str) -> None:
    assert normalised(answer) == normal


def test_exact_match_and_f1_take_the_best_gold() -> None:
    golds = ["G. Stanley Hall", "Stanley Hall"]
    assert exact_match("the Stanley Hall.", golds) == 1.0
    assert exact_match("Hall", golds) == 0.0
    assert f1("Hall", golds) == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert f1("the year the war ended", ["war war"]) == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))
    assert f1("", golds) == f1("nothing alike", golds) == 0.0
    assert without_marks("Warsaw [2] and Łódź. [12]") == "Warsaw and Łódź."
    assert without_marks("It is Warsaw [2], not Łódź [1] [3].") == "It is Warsaw, not Łódź."
    assert without_marks("[1] 北京大学[2]。") == "北京大学。"


def test_auroc_by_hand() -> None:
    assert auroc([0.9, 0.4], [0.4, 0.1]) == pytest.approx(3.5 / 4)
    assert auroc([1.0], []) is None


def test_abstention_by_hand() -> None:
    assert abstention([True, False, True, False], [True, True, False, False]) == {
        "with_evidence": 2,
        "without_evidence": 2,
        "accuracy": 0.5,
        "false_answers": 0.5,
        "false_rejections": 0.5,
    }


def test_hidden_chunks_take_with_them_what_they_alone_say(kb: KnowledgeBase) -> None:
    settings = RetrieveSettings(floor=0)
    question = "What did Marie Curie discover? Was she born in Warsaw?"
    out_of_sight = replace(kb, hidden=hide(kb, {0}))  # d1c0: the discovery and the birth
    found = search(out_of_sight, question, settings, 100)
    ids = {name for item in found.items for name in item.ids}
    assert not ids & {"d1c0", "r1", "r3", "a1", "e4", "k1", "k4"}
    assert {"r2", "e2", "d2c1"} <= ids
    everything = {name for item in search(kb, question, settings, 100).items for name in item.ids}
    assert {"d1c0", "r1", "r3", "k1"} <= everything


def test_a_route_that_is_left_out_finds_nothing(kb: KnowledgeBase) -> None:
    settings = load_settings(None, {"retrieve.without": "community, path"}, environment={}).retrieve
    assert settings.without == ("community", "path")
    found = search(kb, "Marie Curie and the capital of Poland", settings, 100)
    routes = {route for item in found.items for route in item.routes}
    assert routes
    assert not routes & {"community", "path"}
    with pytest.raises(UsageError, match="no route 'paths'"):
        search(kb, "x", RetrieveSettings(without=("paths",)))


def test_answers_are_scored_against_known_ones(file: Path, kb: KnowledgeBase, model: SharedModel) -> None:
    report, replies = ask(file, kb, model, "open")
    row = report["engines"]["mix"]
    assert row["em"] == 0.5  # "In Poland." is not "Poland"
    assert row["f1"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)
    assert row["of"]["em"] == 2
    assert row["evidence_recall"] == 1.0
    assert row["tokens"]["calls"] == 1.0
    assert row["milliseconds"]["total"]["p50"] > 0
    assert "abstention" not in row
    assert (report["questions"], report["without_evidence"]) == (3, 1)
    assert [reply.answer for reply in replies["mix"]] == ["polonium", "In Poland.", "No idea"]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_in_reject_mode_questions_are_asked_without_their_evidence(
    file: Path, kb: KnowledgeBase, model: SharedModel, tmp_path: Path, concurrency: int
) -> None:
    predictions = tmp_path / "predictions.jsonl"
    report, _ = ask(file, kb, model, "reject", concurrency=concurrency, predictions=predictions)
    found = report["engines"]["mix"]["abstention"]
    assert (found["with_evidence"], found["without_evidence"]) == (2, 3)
    assert found["accuracy"] == found["auroc"] == 1.0
    assert found["false_answers"] == found["false_rejections"] == 0.0
    lines = [json.loads(line) for line in predictions.read_text("utf-8").splitlines()]
    # With several under way a line is written when its answer is there.
    lines.sort(key=lambda line: (line["id"], line["evidence_removed"]))
    assert [(line["id"], line["evidence_removed"]) for line in lines] == [
        ("q1", False),
        ("q1", True),
        ("q2", False),
        ("q2", True),
        ("q3", False),
    ]
    assert [line["rejected"] for line in lines] == [False, True, False, True, True]
    assert {"measures", "tokens", "milliseconds", "evidence", "answer"} <= set(lines[0])


def test_parts_are_left_out_by_name() -> None:
    settings = RetrieveSettings()
    assert variant("auto", ["agent"], settings) == Variant("auto, no agent", "mix", settings)
    community = variant("mix", ["community"], settings)
    assert (community.engine, community.retrieve.without) == ("mix", ("community",))
    assert variant("mix", ["schema"], settings).retrieve.asked_types is False
    with pytest.raises(UsageError, match="no part 'graph'"):
        variant("mix", ["graph"], settings)


def test_a_judge_says_how_many_it_could_decide_about(
    file: Path, kb: KnowledgeBase, model: SharedModel
) -> None:
    class Judge(GrammarWalker):
        def complete(self, request: Request) -> Completion:
            if "Reference: Polonium" in request.prompt:
                return replace(super().complete(request), text="yes", finish_reason="stop", tokens=())
            return replace(super().complete(request), text="", finish_reason="error", error="gone")

    report, replies = ask(file, kb, model, "open")
    add_judge(report, replies, Judge())
    judge = report["engines"]["mix"]["judge"]
    assert (judge["right"], judge["valid"], judge["of"]) == (1.0, 1, 2)
    console = Console(width=200, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    render(report, console)
    assert "(1 valid of 2)" in console.export_text()


def test_any_walk_of_a_judge_is_a_verdict() -> None:
    (verdict,) = judged(GrammarWalker(2), [ToJudge("Who?", ("Hall",), "Stanley Hall")])
    assert verdict is not None
    assert 0 <= verdict <= 1
    assert not math.isnan(verdict)


def test_questions_without_answers_are_refused(kb: KnowledgeBase, model: SharedModel, tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    path.write_text(json.dumps({"question": "Why?"}), "utf-8")
    with pytest.raises(UsageError, match="none has an 'answer'"):
        ask(path, kb, model, "open")


def test_answers_of_a_file_are_read_once_each(file: Path, tmp_path: Path) -> None:
    first, second, third = read_questions(file)
    assert first.answers == ("Polonium",)
    assert second.answers == ("Poland", "Republic of Poland")
    assert (third.answerable, first.answerable) == (False, True)
    odd = tmp_path / "odd.jsonl"
    odd.write_text(json.dumps({"question": "?", "answer": 1867, "answers": ["1867", "x"]}), "utf-8")
    assert read_questions(odd)[0].answers == ("1867", "x")
    odd.write_text(json.dumps({"question": "?", "answer": {"a": 1}}), "utf-8")
    with pytest.raises(UsageError, match="not a text"):
        read_questions(odd)
