"""`hornbeam evaluate retrieval`: question files, gold passages, measures, report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hornbeam.errors import UsageError
from hornbeam.evaluate.gold_passages import find_gold
from hornbeam.evaluate.question_files import Question, Supporting, read_questions
from hornbeam.evaluate.retrieval_metrics import (
    claim_scores,
    confidence_interval,
    percentiles,
    ranking_scores,
)
from hornbeam.evaluate.retrieval_report import render, run
from hornbeam.index.build import build_indexes
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import EmbedderSettings, RetrieveSettings
from support.version_by_hand import TEXTS, HashedWords, small_rows, write_tables

WARSAW = {"title": "Warsaw", "text": TEXTS["d2"][2]}
CURIE = {"title": "Radium pioneers", "text": TEXTS["d1"][2]}


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    directory = write_tables(tmp_path / "version", small_rows())
    build_indexes(directory, HashedWords(), EmbedderSettings())
    return KnowledgeBase.open(directory, HashedWords())


@pytest.fixture
def questions(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: Any) -> Path:
        path = tmp_path / "questions.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", "utf-8")
        return path

    return write


ROWS = [
    {
        "id": "two",
        "question": "Marie Curie was born in the capital of which country?",
        "passages": [{"pid": 4, **CURIE}, {"pid": 5, **WARSAW}],
        "supporting": [{"pid": 5}, {"pid": 4}],
    },
    {
        "question": "What did Curie discover?",
        "supporting": [CURIE],
        "evidence": ["Curie discovered polonium."],
    },
]


def test_passages_are_named_in_four_ways(questions: Callable[..., Path]) -> None:
    path = questions(*ROWS, {"question": "?", "supporting": [{"document_id": "d1"}, {"chunk_id": "d2c0"}]})
    two, one, ids = read_questions(path)
    assert two.supporting == (Supporting(**WARSAW), Supporting(**CURIE))
    assert (one.question_id, one.claims) == ("2", ("Curie discovered polonium.",))
    assert ids.supporting == (Supporting(document_id="d1"), Supporting(chunk_id="d2c0"))
    assert [question.question_id for question in read_questions(path, limit=1)] == ["two"]


def test_a_json_list_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"id": 7, "question": "Why?", "evidence": ["Because."]}]))
    assert read_questions(path) == [Question("7", "Why?", (), ("Because.",))]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "x"}, "item 1: no 'question'"),
        ([1], "not JSON|no 'question'"),
        ({"question": "?", "supporting": [{"pid": 3}]}, "3 is not in its passages"),
        ({"question": "?", "supporting": ["x"]}, "not an object"),
        ({"question": "?", "supporting": [{}]}, "no pid, title"),
        ({"question": "?", "supporting": 4}, "not a list"),
    ],
)
def test_a_row_that_is_no_question_is_told(questions: Callable[..., Path], row: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_questions(questions(row))


def test_a_file_without_questions_is_told(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    with pytest.raises(UsageError, match="cannot be read"):
        read_questions(path)
    path.write_text("\n")
    with pytest.raises(UsageError, match="no question"):
        read_questions(path)
    path.write_text('{"question": "?"}\n{"question')
    with pytest.raises(UsageError, match="line 2"):
        read_questions(path)


def asked(*supporting: Supporting) -> list[Question]:
    return [Question("q", "?", supporting, ())]


def test_a_whole_document_is_found_with_or_without_its_title(kb: KnowledgeBase) -> None:
    text = TEXTS["d2"][2]
    for passage in (
        Supporting("Warsaw", text),
        Supporting("", text.upper().replace("\n\n", "  ")),
        Supporting(text=f"Warsaw\n{text}"),
        Supporting(title="warsaw"),
        Supporting(document_id="d2"),
    ):
        gold = find_gold(kb, asked(passage))
        assert (gold.unit, gold.units_of, gold.missing) == ("document", ((frozenset({1}),),), ())


def test_part_of_a_document_is_its_chunks(kb: KnowledgeBase) -> None:
    gold = find_gold(kb, asked(Supporting("x", "is the capital of Poland."), Supporting(document_id="d2")))
    assert (gold.unit, gold.units_of) == ("chunk", ((frozenset({2}), frozenset({1, 2})),))
    assert gold.ranked_units(kb, [2, 0, 2]) == [2, 0]


def test_a_missing_passage_is_counted_and_none_at_all_is_an_error(kb: KnowledgeBase) -> None:
    gold = find_gold(kb, asked(Supporting("Atlantis", "It sank."), Supporting(document_id="d1")))
    assert gold.missing == ("Atlantis",)
    assert gold.units_of == ((frozenset(), frozenset({0})),)
    with pytest.raises(UsageError, match="none of the 1 supporting passages"):
        find_gold(kb, asked(Supporting("Atlantis", "It sank.")))


def test_documents_are_ranked_by_their_best_chunk(kb: KnowledgeBase) -> None:
    gold = find_gold(kb, asked(Supporting(document_id="d1")))
    assert gold.ranked_units(kb, [2, 0, 1, 3]) == [1, 0, 2]


def test_ranking_measures_by_hand() -> None:
    gold = [frozenset({7}), frozenset({8, 9}), frozenset()]
    scores = ranking_scores([5, 9, 8, 1, 7], gold)
    assert scores["mrr"] == 1 / 2
    assert [scores[f"recall@{k}"] for k in (1, 2, 5)] == [0, 1 / 3, 2 / 3]
    assert scores["all_gold@20"] == 0
    assert ranking_scores([7], [frozenset({7})])["all_gold@1"] == 1
    assert ranking_scores([], [frozenset({7})])["mrr"] == 0


def test_a_claim_is_found_in_the_chunk_with_most_of_its_words() -> None:
    claim = {"curie": 3.0, "polonium": 4.0, "discovered": 1.0}
    chunks = [{"curie"}, {"curie", "polonium"}]
    assert claim_scores([claim], chunks, 1) == {"evidence_recall@1": 0, "evidence_coverage@1": 3 / 8}
    assert claim_scores([claim], chunks, 2) == {"evidence_recall@2": 1, "evidence_coverage@2": 7 / 8}
    assert claim_scores([claim, {}], [], 5) == {"evidence_recall@5": 0, "evidence_coverage@5": 0}


def test_intervals_cover_the_mean_and_narrow_with_more_questions() -> None:
    rng = np.random.default_rng(0)
    few, many = (confidence_interval(rng.random(n)) for n in (20, 2000))
    assert few[0] < 0.5 < few[1]
    assert many[1] - many[0] < (few[1] - few[0]) / 5
    assert confidence_interval([1.0, 1.0]) == (1.0, 1.0)
    assert percentiles([1.0, 2.0, 3.0]) == {"p50": 2.0, "p95": 2.9, "p99": 2.98}


def test_the_report_has_the_baseline_and_can_be_recomputed(
    kb: KnowledgeBase, questions: Callable[..., Path], tmp_path: Path
) -> None:
    predictions = tmp_path / "predictions.jsonl"
    report = run(questions(*ROWS), kb, RetrieveSettings(), engines=["mix"], predictions=predictions)
    assert list(report["engines"]) == ["mix", "dense"]
    assert (report["questions"], report["passages"], report["with_claims"], report["unit"]) == (
        2,
        3,
        1,
        "document",
    )
    for row in report["engines"].values():
        assert row["recall@5"] == 1.0  # three documents
        assert row["interval_95"]["recall@5"] == [1.0, 1.0]
        assert row["over_dense"]["mrr"]["interval_95"][0] <= row["over_dense"]["mrr"]["difference"]
        assert row["milliseconds"]["total"]["p99"] >= row["milliseconds"]["encode"]["p50"] >= 0
    assert report["engines"]["mix"]["evidence_recall@5"] == 1.0
    lines = [json.loads(line) for line in predictions.read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["two", "2"]
    for name in ("mix", "dense"):
        values = []
        for line in lines:
            found = line if name == "mix" else line["others"][name]
            ranked = [unit["document_id"] for unit in found["retrieved"]]
            scores = [unit["score"] for unit in found["retrieved"]]
            assert scores == sorted(scores, reverse=True)
            gold = [{unit["document_id"] for unit in passage} for passage in line["gold"]]
            values.append(sum(bool(units & set(ranked[:2])) for units in gold) / len(gold))
        assert report["engines"][name]["recall@2"] == pytest.approx(np.mean(values), abs=1e-4)


def test_routes_can_be_left_out_but_not_of_the_baseline(
    kb: KnowledgeBase, questions: Callable[..., Path]
) -> None:
    report = run(questions(*ROWS), kb, RetrieveSettings(), without=["pagerank", "chunk_dense"])
    assert "pagerank" not in report["engines"]["mix"]["milliseconds"]
    assert "chunk_dense" in report["engines"]["dense"]["milliseconds"]
    for wrong in ({"without": ["walk"]}, {"engines": ["best"]}):
        with pytest.raises(UsageError, match="choose"):
            run(questions(*ROWS), kb, RetrieveSettings(), **wrong)


def test_questions_without_gold_still_have_latencies(
    kb: KnowledgeBase, questions: Callable[..., Path]
) -> None:
    report = run(questions({"question": "Where?"}), kb, RetrieveSettings(), engines=["naive"])
    assert "recall@5" not in report["engines"]["naive"]
    assert report["engines"]["naive"]["milliseconds"]["total"]["p50"] > 0


def test_kinds_of_questions_are_told_apart(
    kb: KnowledgeBase, questions: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    assert run(questions(*ROWS), kb, RetrieveSettings())["kinds"] == {}
    rows = [{**ROWS[0], "question_type": "Fact Retrieval"}, {**ROWS[1], "type": "bridge"}]
    report = run(questions(*rows), kb, RetrieveSettings(), engines=["mix"])
    assert list(report["kinds"]) == ["Fact Retrieval", "bridge"]
    for measure in ("recall@2", "mrr"):
        of_kinds = [found["mix"][measure] for found in report["kinds"].values() if measure in found["mix"]]
        assert np.mean(of_kinds) == pytest.approx(report["engines"]["mix"][measure], abs=1e-4)
    assert all(found["dense"]["questions"] == 1 for found in report["kinds"].values())
    render(report, Console())
    assert "Fact Retrieval" in capsys.readouterr().out


def test_the_table_shows_every_engine(
    kb: KnowledgeBase, questions: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    render(run(questions(*ROWS), kb, RetrieveSettings()), Console())
    shown = capsys.readouterr().out
    for word in ("mix", "naive", "bm25", "dense", "recall@5", "[1.00, 1.00]", "p99 ms", "2 questions"):
        assert word in shown
