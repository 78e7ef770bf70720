"""The same input gives the same version, and a build tells how long its model had nothing to do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import UsageError
from hornbeam.llm import vllm_engine
from hornbeam.llm.protocol import Completion
from hornbeam.llm.vllm_engine import VllmModel
from hornbeam.llm.working_time import TimedModel, idle_figures
from hornbeam.settings import ModelSettings, load_settings
from support.building import build, table_bytes, walker, walking_settings


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(5):
        text = f"Ada Byron met Charles Babbage in London. Mary Somerville wrote letter {number} in Paris. "
        (folder / f"{number}.txt").write_text(text * 2, "utf-8")
    return folder


def test_what_is_answered_when_does_not_change_the_version(corpus: Path, tmp_path: Path) -> None:
    versions, tables = set(), set()
    for number, (window, per_poll) in enumerate([(8, None), (8, 1), (8, 3), (1, 1)]):
        settings = walking_settings(extract={"window": window}).model_copy(update={"repro": True})
        index = tmp_path / f"index{number}"
        report = build(index, [corpus], model=walker(per_poll=per_poll), settings=settings)
        versions.add((window, report.version))  # a version names its settings
        tables.add(tuple(sorted(table_bytes(index, report.version).items())))
    assert len(versions) == 2
    assert len(tables) == 1


def test_repro_and_chance_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"repro needs extract\.temperature = 0"):
        load_settings(overrides={"repro": True, "extract.temperature": 0.7}, environment={})


def test_batch_invariant_answers_are_told_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers")
    from support.tiny_model import write_tiny_model

    directory = write_tiny_model(tmp_path / "tiny")
    monkeypatch.setattr(vllm_engine, "vllm_distribution", lambda device: ("vllm", "0"))

    def fingerprint(device: Literal["cpu", "cuda"], invariant: bool) -> str:
        settings = ModelSettings(batch_invariant=invariant)
        return VllmModel(directory, settings, device).identity.fingerprint

    assert fingerprint("cuda", False) != fingerprint("cuda", True)
    assert fingerprint("cpu", False) == fingerprint("cpu", True)  # float32 there


def test_a_build_tells_how_long_its_model_had_nothing_to_do(corpus: Path, tmp_path: Path) -> None:
    model = walker(before_poll=lambda: time.sleep(0.02), per_poll=2)
    report = build(tmp_path / "index", [corpus], model=model)
    spent = report.to_json()["model_time"]
    assert set(spent) == {"extract", "summarise"}
    for stage, figures in spent.items():
        between = report.seconds["read"] if stage == "extract" else 0.0  # documents are read meanwhile
        assert 0 < figures["seconds"] <= report.seconds[stage] + between + 0.01
        assert 0 <= figures["idle_seconds"] < figures["seconds"]
        assert 0 <= figures["idle_share"] < 1


class Slow:
    """A model whose polls take a while."""

    in_flight = 0

    def submit(self, request: Any) -> None:
        time.sleep(0.05)
        self.in_flight += 1

    def poll(self) -> list[Completion]:
        time.sleep(0.05)
        self.in_flight = 0
        return []


class SlowServers(Slow):
    def submit(self, request: Any) -> None:
        self.in_flight += 1

    def serving(self) -> dict[str, Any]:
        return {"enforces": "grammar", "servers": []}


def test_an_engine_in_this_process_works_only_while_it_is_polled() -> None:
    model = TimedModel(Slow())  # type: ignore[arg-type]
    model.submit(None)  # type: ignore[arg-type]
    time.sleep(0.1)
    model.poll()
    assert 0.05 <= model.working_s < 0.1
    assert 0.05 <= model.starting_s < 0.1
    assert model.serving() is None


def test_servers_work_as_long_as_a_request_is_on_its_way() -> None:
    model = TimedModel(SlowServers())  # type: ignore[arg-type]
    model.submit(None)  # type: ignore[arg-type]
    time.sleep(0.1)
    model.poll()
    assert model.working_s >= 0.15
    worked = model.working_s
    time.sleep(0.05)
    assert model.working_s == worked
    assert model.serving() == {"enforces": "grammar", "servers": []}


@pytest.mark.parametrize(
    ("seconds", "working", "starting", "share"),
    [(10, 9, 0, 0.1), (30, 9, 20, 0.1), (10, 11, 0, 0), (5, 0, 5, 0), (10, 0, 0, 1)],
)
def test_the_idle_share_leaves_out_the_start(
    seconds: float, working: float, starting: float, share: float
) -> None:
    assert idle_figures(seconds, working, starting)["idle_share"] == pytest.approx(share)
