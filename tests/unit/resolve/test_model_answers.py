"""What the model decides in resolution: pairs of names, and descriptions that pile up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from test_resolution import document

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.llm.protocol import Completion, Request, TokenScore, Usage
from hornbeam.prompts import shipped_prompts
from hornbeam.resolve.answers import Answers
from hornbeam.resolve.consolidate import Consolidated, write_graph_tables
from hornbeam.resolve.descriptions import Pile, clustered, spread, summarised
from hornbeam.resolve.staging import DocumentInput
from hornbeam.settings import ResolveSettings
from hornbeam.store.ledger import Ledger
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

try:
    GrammarWalker()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

PAIR = [
    document("d1", "Annabella Weber wrote songs of rivers.", [("Annabella Weber", "person")]),
    document("d2", "Quarterly tonnage fell, says Anabella Weber!", [("Anabella Weber", "person")]),
]
NOTES = [
    "Corvane builds turbines in Osterby.",
    "In Osterby Corvane builds large turbines.",
    "The fair of May was opened by Corvane.",
    "The fair in May was opened again by Corvane.",
]


class Saying(GrammarWalker):
    """Answers with a text of probability .95, or fails."""

    def __init__(self, text: str | None) -> None:
        super().__init__()
        self._text = text

    def complete(self, request: Request) -> Completion:
        if self._text is None:
            return Completion(request.request_id, "", "error", Usage(), error="gone")
        tokens = (TokenScore(self._text, math.log(0.95)),)
        return Completion(request.request_id, self._text, "stop", Usage(9, 0, 1), tokens)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "index", create=True) as opened:
        yield opened


Ask = Callable[[GrammarWalker | None], Answers]


@pytest.fixture
def answers(ledger: Ledger) -> Ask:
    run = ledger.runs.start()
    return lambda model: Answers(ledger, "model 1", shipped_prompts(), model, run)


def write(
    folder: Path, documents: list[DocumentInput], answers: Answers, **settings: Any
) -> tuple[dict[str, list[dict[str, Any]]], Consolidated]:
    for path in (folder / "tables", folder / "scratch"):
        path.mkdir(parents=True)
    done = write_graph_tables(
        documents,
        folder / "tables",
        folder / "scratch",
        settings=ResolveSettings.model_validate(settings),
        schema=None,
        embedder=HashedWords(),
        min_confidence=0.0,
        memory_limit_mib=512,
        answers=answers,
    )
    names = ("entities", "merges", "mentions")
    return {name: pq.read_table(folder / "tables" / f"{name}.parquet").to_pylist() for name in names}, done


def test_a_yes_merges_two_names_with_its_probability_as_evidence(tmp_path: Path, answers: Ask) -> None:
    model = Saying("yes")
    rows, done = write(tmp_path / "yes", PAIR, answers(model), ask=True)
    (entity,) = rows["entities"]
    assert entity["mentions"] == 2
    (merge,) = rows["merges"]
    assert (merge["kind"], merge["score"], merge["document_id"]) == ("model", 0.95, None)
    assert done.asked["same_thing asked"] == 1
    assert "songs of rivers" in model.requests[0].prompt
    again, done = write(tmp_path / "again", PAIR, answers(None), ask=True)
    assert again == rows  # what was answered is kept
    assert (done.asked["same_thing reused"], done.asked["same_thing failed"]) == (1, 0)


@pytest.mark.parametrize(
    ("said", "settings", "failed"),
    [
        ("no", {"ask": True}, 0),
        (None, {"ask": True}, 1),
        ("yes", {"ask": True, "ask_threshold": 0.96}, 0),
        ("yes", {"ask": True, "without": "model"}, 0),
        ("yes", {}, 0),
    ],
)
def test_without_a_sure_yes_they_stay_two_and_nothing_is_lost(
    said: str | None, settings: dict[str, Any], failed: int, tmp_path: Path, answers: Ask
) -> None:
    rows, done = write(tmp_path / "tables of", PAIR, answers(Saying(said)), **settings)
    assert len(rows["entities"]) == 2
    assert len(rows["mentions"]) == 2
    assert rows["merges"] == []
    assert done.asked.get("same_thing failed", 0) == failed


def piles(tmp_path: Path, answers: Answers, least: int) -> list[dict[str, Any]]:
    documents = [document(f"d{n}", note, [("Corvane", "organization")]) for n, note in enumerate(NOTES)]
    documents.append(document("e", "Osterby lies by the sea.", [("Osterby", "place")]))
    rows, _ = write(tmp_path / str(least), documents, answers, summarise_from=least)
    return sorted(rows["entities"], key=lambda row: str(row["name"]))


def test_many_descriptions_become_a_sentence_of_each_cluster(tmp_path: Path, answers: Ask) -> None:
    corvane, osterby = piles(tmp_path, answers(Saying("What it is.")), 3)
    assert corvane["description"] == "What it is."
    assert osterby["description"] == "Osterby lies by the sea."  # one is not many
    assert corvane["mentions"] == 4


def test_few_descriptions_and_a_model_that_fails_leave_one_of_them(tmp_path: Path, answers: Ask) -> None:
    few, _ = piles(tmp_path, answers(Saying("What it is.")), 5)
    assert few["description"] in NOTES
    failing = answers(Saying(None))
    failed, _ = piles(tmp_path, failing, 4)
    assert any(note in failed["description"] for note in NOTES)
    assert failing.counts["summarising failed"] >= 1


def test_a_summary_has_the_words_of_its_cluster_and_connecting_ones_alone(answers: Ask) -> None:
    from hornbeam.grammar.worded import CONNECTING, words_of

    pile = Pile("e1", "Corvane", NOTES)
    for seed in range(4):
        model = GrammarWalker(seed)
        told = summarised([pile], HashedWords(), answers(model))["e1"]
        assert set(words_of([told])) <= {*words_of(NOTES), "Corvane", *CONNECTING["en"]}
        assert "Sorvik" not in told  # the prompt's example


def test_clusters_are_of_what_is_alike_in_any_order() -> None:
    found = clustered(NOTES, HashedWords())
    assert {frozenset(group) for group in found} <= {
        frozenset(NOTES[:2]),
        frozenset(NOTES[2:]),
        frozenset(NOTES),
    }
    other = clustered(NOTES[::-1], HashedWords())
    assert {frozenset(group) for group in found} == {frozenset(group) for group in other}
    assert clustered(["alone"], HashedWords()) == [["alone"]]
    assert len(spread([str(number) for number in range(1000)])) == 256
