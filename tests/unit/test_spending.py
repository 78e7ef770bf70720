"""What runs cost, by stage, document and version; budgets that stop them; estimates before them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xgrammar")

from hornbeam.corpus import Chunker
from hornbeam.errors import Interrupted, UsageError
from hornbeam.extract.stages import Extractor
from hornbeam.pipeline.estimating import estimate, lines
from hornbeam.progress import Progress
from hornbeam.schema import load_schema
from hornbeam.settings import CorpusSettings, CostSettings, ExtractSettings
from hornbeam.status import index_status
from hornbeam.store.ledger import Ledger
from support.building import build, walker, walking_settings


def write_corpus(folder: Path, count: int = 6) -> Path:
    folder.mkdir()
    for number in range(count):
        sentence = f"Ada Byron met Charles Babbage in London. Letter {number} says so. "
        (folder / f"{number}.txt").write_text(sentence * (1 + number % 6), "utf-8")
    return folder


def with_cost(**cost: Any) -> Any:
    return walking_settings(cost=cost, extract={"window": 2}, organise={"namer": "facts"})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus")


def test_the_tokens_of_the_documents_add_up_to_those_of_the_run(corpus: Path, tmp_path: Path) -> None:
    report = build(tmp_path / "index", [corpus], settings=with_cost())
    with Ledger(tmp_path / "index", create=False) as ledger:
        documents = ledger.runs.dearest_documents(100)
    for stage in ("entities", "relations"):
        for name in ("calls", "prompt", "cached", "output"):
            own = [entry["stages"].get(stage, {}).get(name, 0) for entry in documents]
            assert sum(own) == report.tokens[stage][name]
    tokens = [entry["tokens"] for entry in documents]
    assert tokens == sorted(tokens, reverse=True)
    assert len(documents) == 6


def test_status_tells_the_cost_of_all_runs_and_of_each_version(corpus: Path, tmp_path: Path) -> None:
    index, priced = tmp_path / "index", {"gpu_hour_price": 3600, "currency": "EUR"}  # a second costs 1
    first = build(index, [corpus], settings=with_cost(**priced))
    (corpus / "new.txt").write_text("Mary Somerville taught Ada Byron in London.", "utf-8")
    with pytest.raises(Interrupted):
        build(index, [corpus], settings=with_cost(budget="0 tokens", **priced))
    second = build(index, [corpus], settings=with_cost(**priced))

    status = index_status(index)
    versions = status["spent"]["versions"]
    assert [(one["version"], one["runs"]) for one in versions] == [(first.version, 1), (second.version, 2)]
    seconds = sum(one["seconds"] for one in versions)
    tokens = sum(one["prompt"] + one["output"] for one in versions)
    cost = status["cost"]
    assert cost["total"] == pytest.approx(seconds)
    assert cost["currency"] == "EUR"
    assert cost["per_document"] == pytest.approx(seconds / 7)
    assert cost["per_million_tokens"] == pytest.approx(seconds / tokens * 1e6)
    assert index_status(index, 7200)["cost"]["total"] == pytest.approx(2 * seconds)


def test_a_run_stops_in_order_when_its_budget_is_used_up_and_goes_on(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hornbeam.cost.budget._LOOK_S", 0.0)
    whole = build(tmp_path / "whole", [corpus], settings=with_cost())
    spent = sum(stage["prompt"] + stage["output"] for stage in whole.tokens.values())
    settings = with_cost(budget=f"{spent // 3} tokens")
    stopped: list[Interrupted] = []
    report = None
    while report is None and len(stopped) < 20:
        try:
            report = build(tmp_path / "index", [corpus], settings=settings)
        except Interrupted as error:
            stopped.append(error)
    assert 2 <= len(stopped) < 20
    assert all("tokens is used up" in str(error) and error.exit_code == 1 for error in stopped)
    assert report is not None
    assert report.version == whole.version
    with Ledger(tmp_path / "index", create=False) as ledger:
        usage = ledger.runs.usage()
    for stage in ("entities", "relations"):  # nothing was asked twice
        assert usage[stage]["calls"] == whole.tokens[stage]["calls"]
        assert usage[stage]["output"] == whole.tokens[stage]["output"]


def test_no_time_at_all_stops_before_the_first_call(corpus: Path, tmp_path: Path) -> None:
    model = walker()
    with pytest.raises(Interrupted, match="0 hours"):
        build(tmp_path / "index", [corpus], model=model, settings=with_cost(budget="0h"))
    assert model.calls == 0


def estimated(paths: list[Path], sample: int, **cost: Any) -> dict[str, Any]:
    model = walker()
    return estimate(
        paths,
        Extractor(model, load_schema("general"), ExtractSettings(max_output_tokens=160)),
        Chunker(model.tokenizer, 48, 8),
        CorpusSettings(),
        CostSettings(**cost),
        Progress(quiet=True),
        sample,
    )


def test_an_estimate_of_all_files_counts_the_chunks_that_there_are(corpus: Path, tmp_path: Path) -> None:
    found = estimated([corpus], 100, gpu_hour_price=2)
    report = build(tmp_path / "index", [corpus], settings=with_cost())
    estimates = found["estimates"]
    assert set(estimates["chunks"].values()) == {report.chunks["total"]}
    assert estimates["documents"]["expected"] == 6
    for one in estimates.values():
        assert one["low"] <= one["expected"] <= one["high"]
    assert estimates["money"]["expected"] == pytest.approx(2 * estimates["hours"]["expected"])
    assert any("output tokens" in line for line in lines(found))


def test_an_estimate_of_a_sample_has_a_range_around_the_truth(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "many", 30)
    truth = estimated([corpus], 100)["estimates"]["chunks"]["expected"]
    found = estimated([corpus], 12)
    assert found["sampled_files"] == 12
    chunks = found["estimates"]["chunks"]
    assert chunks["low"] < chunks["high"]
    assert 0.6 * truth < chunks["expected"] < 1.6 * truth


def test_an_estimate_of_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text(" \n", "utf-8")
    with pytest.raises(UsageError, match="no text was found in 1 of 1 files"):
        estimated([tmp_path / "empty.txt"], 5)
