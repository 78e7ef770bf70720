"""``bench/device_check.py`` passes nothing that it has not seen on a device, and sees a mismatch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import device_check
from device import contract, decoding, running
from device.checks import Check
from device.comparison import (
    Comparison,
    neighbours_found,
    no_worse,
    relative_error,
    same_labels,
)
from device.contract import tests_row as outcome_of_tests  # not to be collected as a test
from device.report import Row, exit_code

from hornbeam_kernels import backend as backend_module
from hornbeam_kernels.backend import Backend, select_backend

sys.path.pop(0)


@pytest.fixture(autouse=True)
def time_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "REPEATS", 1)


@pytest.fixture(autouse=True)
def no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has tests of its own."""
    skipped = Row("constrained decoding", "skip", "not in this test")
    monkeypatch.setattr(device_check, "decoding_check", lambda device: skipped)


def check(run: Callable[[Backend], Any], compare: Callable[[Any, Any], Comparison] | None = None) -> Check:
    return Check("a kernel", run, compare or relative_error(1e-4), 1000)


def test_without_a_device_nothing_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(backend_module, "_device_files", lambda: 0)
    assert device_check.main([]) == 2
    assert capsys.readouterr().out.startswith("nothing was checked: ")
    assert device_check.main(["--json"]) == 2
    assert json.loads(capsys.readouterr().out)["checks"] == []


def test_the_self_test_runs_every_kernel_and_says_that_it_is_none_of_a_device(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert device_check.main(["--self-test", "--size", "400", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["heading"].startswith("SELF-TEST")
    assert {row["outcome"] for row in found["checks"][:-1]} == {"pass"}
    assert len(found["checks"]) == 16 + 1


def test_every_kernel_agrees_on_a_pretended_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cupy", "faiss", "graspologic_native", "sklearn"):
        pytest.importorskip(name, reason=f"{name} is not installed (extras cpu and dev)")
    from support.fake_rapids import fake_rapids
    from support.pretend_cupy import pretend_backend

    for name, module in fake_rapids().modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    pretended = {"cpu": select_backend("cpu"), "cuda": pretend_backend()}
    monkeypatch.setattr(device_check, "select_backend", pretended.__getitem__)
    code = device_check.main(["--size", "500", "--skip-tests"])
    text = capsys.readouterr().out
    assert code == 0, text
    assert "16 pass, 0 fail, 1 skip" in text
    assert "kmeans: cuml" in text


def test_a_mismatch_is_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([1.0, 1.001, *[1.001] * 9])
    monkeypatch.setattr(device_check, "checks", lambda size: [check(lambda b: np.array([next(answers)]))])
    assert device_check.main(["--self-test"]) == 1
    assert "relative error 1.0e-03, allowed 1e-04" in capsys.readouterr().out


def test_a_kernel_that_raises_on_the_device_fails_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def second_time(backend: Backend) -> np.ndarray:
        calls.append(backend)
        if len(calls) > 1:
            raise RuntimeError("out of memory\nat some place")
        return np.ones(1)

    both = [check(second_time), check(lambda b: np.ones(1))]
    monkeypatch.setattr(device_check, "checks", lambda size: both)
    assert device_check.main(["--self-test"]) == 1
    text = capsys.readouterr().out
    assert "RuntimeError: out of memory" in text
    assert "1 pass, 1 fail, 1 skip" in text


def test_a_part_without_its_library_is_skipped_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.cuda_libraries, "chosen_libraries", lambda: {"leiden": "none: pip install x"})
    device = Backend("cuda", np, None, "pretended")
    one = Check("Leiden", lambda b: np.ones(1), relative_error(0), 1, "leiden")
    row = running.run_check(one, device, select_backend("cpu"), 1e9)
    assert (row.outcome, row.detail) == ("skip", "none: pip install x")

    def missing(backend: Backend) -> Any:
        raise ModuleNotFoundError("No module named 'faiss'")

    row = running.run_check(check(missing), select_backend("cpu"), select_backend("cpu"), 1e9)
    assert row.outcome == "skip"
    assert "faiss" in row.detail


LABELS = np.array([0, 1, 1, 2])
SCORES = np.array([[0.9, 0.5]]), np.array([[3, 4]])
AGREEMENTS: dict[str, tuple[Callable[[Any, Any], Comparison], Any, Any, bool]] = {
    "equal": (relative_error(0.0), np.ones(3), np.ones(3), True),
    "within": (relative_error(1e-3), np.ones(3) + 1e-4, np.ones(3), True),
    "beyond": (relative_error(1e-5), np.ones(3) + 1e-4, np.ones(3), False),
    "not a number": (relative_error(1e9), np.array([np.nan]), np.ones(1), False),
    "another shape": (relative_error(1e9), np.ones((3, 1)), np.ones(3), False),
    "labels": (same_labels(1.0), LABELS, LABELS, True),
    "a label off": (same_labels(0.8), np.array([0, 1, 2, 2]), LABELS, False),
    "labels missing": (same_labels(0.0), LABELS[:3], LABELS, False),
    "better": (no_worse(float, 0.0, "Q"), 0.9, 0.8, True),
    "a little worse": (no_worse(float, 0.02, "Q"), 0.79, 0.8, True),
    "worse": (no_worse(float, 0.02, "Q"), 0.7, 0.8, False),
    "unmeasurable": (no_worse(float, 0.02, "Q"), float("nan"), 0.8, False),
    "neighbours": (neighbours_found(1.0), SCORES, SCORES, True),
    "a neighbour missed": (neighbours_found(0.6), (np.array([[0.9, 0.4]]), None), SCORES, False),
    "no neighbour": (neighbours_found(0.1), (np.full((1, 2), -np.inf), None), SCORES, False),
}


@pytest.mark.parametrize(("compare", "device", "cpu", "agrees"), AGREEMENTS.values(), ids=AGREEMENTS)
def test_agreement(compare: Callable[[Any, Any], Comparison], device: Any, cpu: Any, agrees: bool) -> None:
    comparison = compare(device, cpu)
    assert comparison.agrees is agrees
    assert comparison.measured


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [(["pass"], 0), (["pass", "skip"], 0), (["pass", "fail"], 1), (["skip"], 1), ([], 1)],
)
def test_the_exit_code_is_zero_only_when_something_passed_and_nothing_failed(
    outcomes: list[str], code: int
) -> None:
    assert exit_code([Row("a kernel", outcome, "") for outcome in outcomes]) == code


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [
        ('<testcase name="test_a[cuda-3]"/><testcase name="test_a[cpu-3]"/>', "pass"),
        ('<testcase name="test_a[cuda]"/><testcase name="test_b"><failure/></testcase>', "fail"),
        ('<testcase name="test_a[cuda]"/><testcase name="test_b"><error/></testcase>', "fail"),
        ('<testcase name="test_a[cuda]"><skipped/></testcase><testcase name="test_a[cpu]"/>', "fail"),
        ('<testcase name="test_a[pretended-cuda-3]"/><testcase name="test_cuda"/>', "fail"),
    ],
)
def test_contract_tests_pass_only_if_some_ran_on_the_device(tmp_path: Path, cases: str, outcome: str) -> None:
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>", "utf-8")
    assert outcome_of_tests("contract tests", report, 1.0).outcome == outcome


def test_the_contract_tests_are_run_and_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import pytest\n@pytest.mark.parametrize('device', ['cuda', 'cpu'])\ndef test_a(device): pass\n",
        "utf-8",
    )
    monkeypatch.setattr(contract, "CONTRACT_TESTS", tmp_path)
    row = contract.contract_tests()
    assert row.outcome == "pass"
    assert row.detail == "2 passed, 1 of them on the device, 0 failed"
    monkeypatch.setattr(contract, "TIME_LIMIT", 0.01)
    assert contract.contract_tests().outcome == "fail"
    monkeypatch.setattr(contract, "CONTRACT_TESTS", tmp_path / "none")
    assert contract.contract_tests().outcome == "skip"


def test_constrained_decoding_is_compared_with_the_cpu(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    pytest.importorskip("xgrammar")
    pytest.importorskip("transformers")
    from support.tiny_model import write_tiny_model

    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a second one would wait for a shared core
    request.addfinalizer(lambda: torch.set_num_threads(threads))
    answers = cache(decoding._answers)
    monkeypatch.setattr(decoding, "_tiny_model", lambda folder: write_tiny_model(tmp_path / "model"))
    monkeypatch.setattr(decoding, "_answers", answers)
    monkeypatch.setattr(decoding, "SEQUENCES", 4)
    monkeypatch.setattr(decoding, "LETTERS", 8)
    row = decoding.decoding_check("cpu")
    assert row.outcome == "pass", row
    assert "0 answers break their grammar; 4 of 4 are the CPU's" in row.detail
    assert row.seconds
    monkeypatch.setattr(decoding, "_shape", lambda number: "never")
    row = decoding.decoding_check("cpu")
    assert row.outcome == "fail"
    assert "4 answers break their grammar" in row.detail


def test_constrained_decoding_without_its_packages_or_a_device_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert decoding.decoding_check("cuda").outcome == "skip"
    monkeypatch.setattr(decoding, "find_spec", lambda name: None)
    row = decoding.decoding_check("cpu")
    assert (row.outcome, row.detail) == ("skip", "not installed: torch, transformers, xgrammar")
