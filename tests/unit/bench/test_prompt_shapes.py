"""Tokens by prompt shape: what is counted, and what is made of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.schema import load_schema
from hornbeam.settings import Settings
from support.walker import GrammarWalker

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import gpu_costs
    import prompt_shapes as script
finally:
    sys.path.remove(str(BENCH))

GENERAL = load_schema("general")
TEXTS = ["Ada Byron met Charles Babbage in London.", "Mary Somerville taught Ada Byron."]
SHAPES = ["ours", "whole schema", "tuples, gleaning", "NER, then OpenIE"]


def test_prompts_are_counted_without_a_call() -> None:
    model = GrammarWalker(closing=0.1)
    found = script.count_prompts(TEXTS, GENERAL, model, Settings())
    assert list(found) == SHAPES
    assert model.calls == 0
    assert [spent.calls for spent in found.values()] == [4, 2, 4, 4]
    whole = script.Shapes(GENERAL, model).whole_schema
    assert found["whole schema"].prompt == sum(model.tokenizer.count(next(whole(text))) for text in TEXTS)


def test_answers_are_asked_for_and_go_into_the_second_prompt() -> None:
    model = GrammarWalker(closing=0.1)
    found = script.ask(TEXTS, GENERAL, model, Settings())
    assert list(found) == SHAPES
    assert all(spent.output > 0 for spent in found.values())
    free = [request for request in model.requests if request.grammar is None]
    second = [request.prompt for request in free if request.request_id.endswith("/1")]
    assert len(second) == 4
    assert all("The answer is" in prompt for prompt in second)  # what the walker says without a grammar
    assert sum(spent.calls for spent in found.values()) == model.calls


def test_the_table_compares_what_no_cache_had() -> None:
    found = {"ours": script.Spent(4, 1000, 800, 100), "other": script.Spent(2, 1000, 100, 300)}
    ours, other = script.rows(found, 2)
    assert (ours["calls"], ours["read"], ours["output"], ours["times_ours"]) == (2, 100, 50, 1)
    assert other["times_ours"] == 4


@pytest.mark.parametrize("text", TEXTS)
def test_every_prompt_of_a_shape_holds_the_text(text: str) -> None:
    for way in script.ways(GENERAL, GrammarWalker()).values():
        assert text in next(way(text))


def test_an_estimate_of_cost_follows_its_formula() -> None:
    for row, one in zip(gpu_costs.cost_rows(500), gpu_costs.PUBLISHED, strict=True):
        seconds = 1000 * 500 / one.tokens_per_second
        assert row["seconds_per_1000_chunks"] == pytest.approx(seconds, abs=0.05)
        assert row["usd_per_1000_chunks"] == pytest.approx(seconds / 3600 * one.hour_price, abs=1e-4)
        assert row["source"]


def test_the_command_counts_the_demo_corpus(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "open_model", lambda settings: GrammarWalker())
    script.main(["--limit", "3", "--json", "--costs"])
    told = json.loads(capsys.readouterr().out)
    assert told["passages"] == 3
    assert [row["shape"] for row in told["shapes"]] == SHAPES
    assert len(told["costs"]) == len(gpu_costs.PUBLISHED)
