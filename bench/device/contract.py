"""The kernels' contract tests, run where the device is."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path

from device.report import Row

CONTRACT_TESTS = Path(__file__).resolve().parents[2] / "tests" / "contract" / "kernels"
TIME_LIMIT = 150
"""Seconds after which the tests are stopped."""


def contract_tests() -> Row:
    """The kernels' contract tests. They pass only if some ran on the device."""
    name = "contract tests"
    if find_spec("pytest") is None:
        return Row(name, "skip", "pytest is not installed (extra dev)")
    if not CONTRACT_TESTS.is_dir():
        return Row(name, "skip", f"no {CONTRACT_TESTS}: run from a checkout")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", str(CONTRACT_TESTS), f"--junitxml={report}"]
        before = time.perf_counter()
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return Row(name, "fail", f"not done after {TIME_LIMIT} s")
        seconds = time.perf_counter() - before
        if not report.exists():
            words = (ran.stderr or ran.stdout).strip().splitlines() or [""]
            return Row(name, "fail", f"pytest exit code {ran.returncode}: {words[-1][:200]}", seconds)
        return tests_row(name, report, seconds)


def tests_row(name: str, report: Path, seconds: float) -> Row:
    """The outcome in pytest's JUnit report; tests on the device have ``cuda`` among their parameters."""
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    passed = [case for case in cases if not len(case)]
    on_device = [case for case in passed if "cuda" in parameters(case.get("name", ""))]
    detail = f"{len(passed)} passed, {len(on_device)} of them on the device, {len(failed)} failed"
    if failed:
        detail += f"; the first: {failed[0].get('name')}"
    return Row(name, "pass" if on_device and not failed else "fail", detail, seconds)


def parameters(test: str) -> set[str]:
    """``test_x[cuda-3]`` → {"cuda", "3"}; ``pretended-cuda`` is a parameter of its own."""
    inside = test.partition("[")[2].rstrip("]").replace("pretended-cuda", "pretended")
    return set(inside.split("-"))
