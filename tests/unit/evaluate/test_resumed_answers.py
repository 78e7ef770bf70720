"""A run of `evaluate qa` that was killed goes on; plans and citations are checked and counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hornbeam.answer.events import Event, EvidenceFound, Final, Planned, Stepped
from hornbeam.answer.plans import SubQuestion
from hornbeam.errors import UsageError
from hornbeam.evaluate.answer_checks import counted, resolves, valid_plan
from hornbeam.evaluate.answer_report import run
from hornbeam.evaluate.asking import Variant
from hornbeam.index.build import build_indexes
from hornbeam.llm.protocol import Request
from hornbeam.llm.shared import SharedModel
from hornbeam.retrieve.evidence import pack_evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.settings import AnswerSettings, EmbedderSettings, RetrieveSettings
from support.scripted_model import ScriptedModel
from support.version_by_hand import TEXTS, HashedWords, small_rows, write_tables

CURIE = {"title": "Radium pioneers", "text": TEXTS["d1"][2]}
ROWS: list[dict[str, Any]] = [
    {"id": f"q{number}", "question": text, "answer": "Polonium", "supporting": [CURIE]}
    for number, text in enumerate(
        ("What did Curie discover?", "What did Marie Curie find?", "Which metal did Curie discover?")
    )
]
MIX = Variant("mix", "mix", RetrieveSettings(floor=0))


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    directory = write_tables(tmp_path / "version", small_rows())
    build_indexes(directory, HashedWords(), EmbedderSettings())
    return KnowledgeBase.open(directory, HashedWords())


class Counting:
    """Answers, and remembers what it was asked."""

    def __init__(self) -> None:
        self.prompts: set[str] = set()

    @property
    def asked(self) -> int:
        return len(self.prompts)

    def __call__(self, request: Request) -> str:
        self.prompts.add(request.prompt)
        return "yes" if '"yes"' in (request.grammar or "") else "polonium [1]"


@pytest.fixture
def said() -> Counting:
    return Counting()


@pytest.fixture
def model(said: Counting) -> Iterator[SharedModel]:
    shared = SharedModel(ScriptedModel(said))
    yield shared
    shared.close()


def ask(
    rows: list[dict[str, Any]], kb: KnowledgeBase, model: SharedModel, folder: Path, **options: Any
) -> dict[str, Any]:
    file = folder / "questions.json"
    file.write_text(json.dumps(rows), "utf-8")
    settings = AnswerSettings.model_validate({"mode": options.pop("mode", "reject")})
    report, _ = run(
        file, kb, model, [MIX], settings, "short", predictions=folder / "answers.jsonl", **options
    )
    return report


def steady(report: dict[str, Any]) -> dict[str, Any]:
    """A row without its milliseconds, which no two runs share."""
    return {name: value for name, value in report["engines"]["mix"].items() if name != "milliseconds"}


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_a_run_goes_on_where_it_was_killed(
    kb: KnowledgeBase, model: SharedModel, said: Counting, tmp_path: Path, cut: int
) -> None:
    whole = ask(ROWS, kb, model, tmp_path)
    calls, lines = said.asked, (tmp_path / "answers.jsonl").read_bytes()
    kept = b"".join(lines.splitlines(keepends=True)[:3])
    begun = lines.splitlines(keepends=True)[3][:cut]  # a line that a kill cut short
    (tmp_path / "answers.jsonl").write_bytes(kept + begun)
    said.prompts.clear()
    resumed = ask(ROWS, kb, model, tmp_path, resume=True)
    assert 0 < said.asked < calls
    assert steady(resumed) == steady(whole)
    written = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_bytes().splitlines()]
    assert [(one["id"], one["evidence_removed"]) for one in written] == [
        (f"q{number}", removed) for number in range(3) for removed in (False, True)
    ]
    said.prompts.clear()
    again = ask(ROWS, kb, model, tmp_path, resume=True)
    assert said.asked == 0
    assert again["engines"] == resumed["engines"]  # milliseconds, too: they are those of the file


def test_more_questions_go_on_from_fewer(
    kb: KnowledgeBase, model: SharedModel, said: Counting, tmp_path: Path
) -> None:
    ask(ROWS, kb, model, tmp_path, limit=2, mode="open")
    said.prompts.clear()
    report = ask(ROWS, kb, model, tmp_path, limit=3, mode="open", resume=True)
    assert said.asked == 1
    assert report["engines"]["mix"]["of"]["em"] == 3


def test_without_resume_the_file_is_written_anew(
    kb: KnowledgeBase, model: SharedModel, tmp_path: Path
) -> None:
    for _ in range(2):
        ask(ROWS, kb, model, tmp_path, mode="open")
    assert len((tmp_path / "answers.jsonl").read_bytes().splitlines()) == 3


def test_answers_of_another_run_are_not_mixed_in(
    kb: KnowledgeBase, model: SharedModel, tmp_path: Path
) -> None:
    ask(ROWS, kb, model, tmp_path, made_by="version 1")
    with pytest.raises(UsageError, match="another version, model or settings"):
        ask(ROWS, kb, model, tmp_path, made_by="version 2", resume=True)
    (tmp_path / "answers.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(UsageError, match="line 1"):
        ask(ROWS, kb, model, tmp_path, resume=True)


def test_plans_and_citations_are_counted(kb: KnowledgeBase, model: SharedModel, tmp_path: Path) -> None:
    checks = ask(ROWS, kb, model, tmp_path, mode="open")["engines"]["mix"]["checks"]
    assert checks["answers"] == checks["answers_citing"] == checks["citations_resolving"] == 3
    assert checks["plans"] == 0


def test_a_plan_is_valid_only_with_known_types_and_earlier_questions() -> None:
    first = SubQuestion(1, "Who found it?", "node", ("person",), ())
    second = SubQuestion(2, "Where was #1 born?", "triple", (), (1,))
    assert valid_plan([first, second], ["person"], 4)
    assert not valid_plan([], ["person"], 4)
    assert not valid_plan([first, second], ["person"], 1)
    assert not valid_plan([first, second], ["city"], 4)
    assert not valid_plan([first, replace(second, depends_on=(2,))], ["person"], 4)
    assert not valid_plan([replace(first, text=" ")], ["person"], 4)
    assert not valid_plan([replace(first, number=2)], ["person"], 4)


def test_a_citation_resolves_to_a_piece_that_was_shown_and_to_its_words(kb: KnowledgeBase) -> None:
    found = search(kb, "What did Marie Curie discover?", RetrieveSettings(floor=0))
    pieces = pack_evidence(kb, found, token_budget=400, count_tokens=lambda text: len(text.split()))
    shown = {piece.label: piece for piece in pieces}
    piece = next(one for one in pieces if one.kind == "chunk")
    assert piece.start is not None
    assert piece.quote is not None
    assert all(resolves(kb, one, shown) for one in pieces)
    shorter = replace(piece, end=piece.start + 5, quote=piece.quote[:5])
    assert resolves(kb, shorter, shown)
    assert not resolves(kb, replace(piece, start=piece.start + 1), shown)
    assert not resolves(kb, replace(piece, label=99), shown)
    assert not resolves(kb, replace(piece, document_id="d9"), shown)
    plan = (SubQuestion(1, "Who?", "node", (), ()),)
    events: list[Event] = [
        EvidenceFound(tuple(pieces), {}),
        Planned(plan),
        Final("x [1]", False, None, (piece,)),
    ]
    assert counted(kb, events, 4) == {
        "plans": 1,
        "plans_valid": 1,
        "planned_questions": 1,
        "answers": 1,
        "answers_citing": 1,
        "citations": 1,
        "citations_resolving": 1,
    }
    failed: list[Event] = [Stepped(0, "stop", "", 0, "no plan: gone"), Planned(())]
    assert counted(kb, failed, 4)["plans_valid"] == 0


def test_the_evidence_may_decide_without_a_call(
    kb: KnowledgeBase, model: SharedModel, said: Counting, tmp_path: Path
) -> None:
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(ROWS), "utf-8")
    answers = tmp_path / "answers.jsonl"
    for way, calls_each in (("model", 2), ("evidence", 1)):
        settings = AnswerSettings.model_validate(
            {"mode": "reject", "answerable_by": way, "answerable_threshold": 0}
        )
        report, _ = run(file, kb, model, [MIX], settings, "short", predictions=answers)
        lines = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
        assert {line["tokens"]["calls"] for line in lines if line["signals"]} == {calls_each}
        assert all(("says_yes" in line["signals"]) == (way == "model") for line in lines if line["signals"])
        assert report["engines"]["mix"]["abstention"]["auroc"] is not None
