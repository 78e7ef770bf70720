"""The fit of facts' probabilities: what it reads of predictions, and that its error is one of calibration."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import fact_scores
finally:
    sys.path.remove(str(BENCH))


def predictions(file: Path, seed: int, *, confidence: float) -> Path:
    """300 sentences with a fact each, right with the logistic probability of its one figure."""
    chance = random.Random(seed)
    rows = []
    for number in range(300):
        figure = chance.uniform(-3, 3)
        right = chance.random() < 1 / (1 + math.exp(-figure))
        fact = ["a", "knows", f"b{number}"]
        given = {"fact": fact, "confidence": confidence, "right": right, "figures": [figure]}
        rows.append({"gold": [fact], "given": [given]})
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return file


def test_the_fit_holds_where_the_confidence_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = predictions(tmp_path / "known.jsonl", 1, confidence=0.95)
    asked = predictions(tmp_path / "asked.jsonl", 2, confidence=0.95)
    fact_scores.main([str(known), str(asked)])
    shown = capsys.readouterr().out
    assert "asked: 300 facts of 300 sentences" in shown
    errors = {
        line.split(":")[0].strip(): float(line.split("ECE ")[1].split(",")[0])
        for line in shown.partition("asked:")[2].splitlines()
        if "ECE" in line
    }
    assert errors["confidence"] > 0.35
    assert errors["fitted"] < 0.1


def test_certain_facts_that_are_right_have_no_error() -> None:
    right = np.array([True, True, False, False])
    assert fact_scores.calibration_error(np.array([1.0, 1.0, 0.0, 0.0]), right) == 0.0
    assert fact_scores.calibration_error(np.array([0.0, 0.0, 1.0, 1.0]), right) == 1.0
