"""Fit the probability that evidence answers a question, and see how well it holds on another set.

    hornbeam evaluate qa SET.jsonl --index DIR --engine mix --mode reject --predictions fitted.jsonl
    hornbeam evaluate qa OTHER.jsonl --index DIR --engine mix --mode reject --predictions asked.jsonl
    python bench/answerability.py fitted.jsonl asked.jsonl [--engine mix] [--signals says_yes,cosine,together]

Every question stands in a file twice: as it is, and with its evidence removed. Prints, for both files, the
area under the ROC curve of the value that was used, of each signal (`hornbeam.answer.answerability`) and of
a logistic model of all or some of them, fitted on the first file alone; its bias and weights; and for the
second file what the threshold does. Intervals: 95 %, bootstrap over questions, both of a question's lines
together. Questions with no evidence at all, which are declined without a decision, are left out and counted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

_RESAMPLES = 1000
_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)

Lines = list[dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fitted", type=Path)
    parser.add_argument("asked", type=Path)
    parser.add_argument("--engine", default="mix")
    parser.add_argument("--signals", help="of the fitted model, by commas; default: all")
    options = parser.parse_args(arguments)
    sets = {path.name: _read(path, options.engine) for path in (options.fitted, options.asked)}
    fitted, asked = sets.values()
    names = options.signals.split(",") if options.signals else sorted(fitted[0]["signals"])
    model = LogisticRegression(C=1.0).fit(_matrix(fitted, names), _labels(fitted))
    weights = dict(zip(names, model.coef_[0].round(3).tolist(), strict=True))
    print(f"bias {model.intercept_[0]:.3f}, weights {weights}")

    def probability(lines: Lines) -> NDArray[np.float64]:
        found: NDArray[np.float64] = model.predict_proba(_matrix(lines, names))[:, 1]
        return found

    values: dict[str, Callable[[Lines], NDArray[np.float64]]] = {
        "as it was": lambda lines: np.array([line["answerable"] for line in lines]),
        **{name: _signal(name) for name in sorted(fitted[0]["signals"])},
        "fitted": probability,
    }
    print(f"{'AUROC':12}" + "".join(f"{name:>34}" for name in sets))
    for name, value in values.items():
        print(f"{name:12}" + "".join(f"{_area(lines, value(lines)):>34}" for lines in sets.values()))
    print("fitted, second file: threshold, accuracy, false answers, false rejections")
    said, labels = probability(asked), _labels(asked)
    for threshold in _THRESHOLDS:
        answers = said >= threshold
        print(
            f"{threshold:9.2f} {np.mean(answers == labels):9.3f} {answers[~labels].mean():9.3f} "
            f"{(~answers[labels]).mean():9.3f}"
        )


def _read(path: Path, engine: str) -> Lines:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    of_engine = [line for line in lines if line["engine"] == engine]
    decided = [line for line in of_engine if line["signals"]]
    print(f"{path.name}: {len(decided)} decisions of {engine}, {len(of_engine) - len(decided)} without one")
    return decided


def _matrix(lines: Lines, names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[line["signals"][name] for name in names] for line in lines])


def _labels(lines: Lines) -> NDArray[np.bool_]:
    return np.array([not line["evidence_removed"] for line in lines])


def _signal(name: str) -> Callable[[Lines], NDArray[np.float64]]:
    return lambda lines: _matrix(lines, [name])[:, 0]


def _area(lines: Lines, values: NDArray[np.float64]) -> str:
    labels = _labels(lines)
    questions = np.unique([line["question"] for line in lines], return_inverse=True)[1]
    of_question = [np.flatnonzero(questions == question) for question in range(questions.max() + 1)]
    rng = np.random.default_rng(42)
    areas = []
    for _ in range(_RESAMPLES):
        rows = np.concatenate([of_question[at] for at in rng.integers(0, len(of_question), len(of_question))])
        if 0 < labels[rows].sum() < len(rows):
            areas.append(roc_auc_score(labels[rows], values[rows]))
    low, high = (float(np.quantile(areas, share)) for share in (0.025, 0.975))
    return f"{roc_auc_score(labels, values):.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
