"""Fit the probability that a fact is right, and see how well it holds.

    hornbeam evaluate text2kg DIR --split held-out --method METHOD --predictions known.jsonl
    hornbeam evaluate text2kg DIR --split test     --method METHOD --predictions asked.jsonl
    python bench/fact_scores.py known.jsonl asked.jsonl

METHOD is guided, staged or staged-known. Prints bias and weights of a logistic model of the facts' figures as
fitted on the first file (for guided facts those of `hornbeam.extract.fact_scores`), and for both files, for
the confidence that the facts have and for the fitted probability: how often facts of a given value are right
(reliability), the expected calibration error (ECE: mean distance of value and share right, weighted by
facts), the Brier score and the area under the ROC curve; of the fitted one also P, R, F1 by threshold (one
mean over all sentences, every tail once, the best fact of a sentence in any case).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

_BINS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, np.inf)
_THRESHOLDS = (0.0, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("known", type=Path)
    parser.add_argument("asked", type=Path)
    options = parser.parse_args(arguments)
    known, asked = _read(options.known), _read(options.asked)
    figures, right = _table(known)
    scale = figures.std(axis=0) + 1e-9
    model = LogisticRegression().fit(figures / scale, right)
    weights, bias = model.coef_[0] / scale, float(model.intercept_[0])
    print(f"_BIAS = {bias:.3f}\n_WEIGHTS = ({', '.join(f'{weight:.3f}' for weight in weights)})")
    for name, sentences in (("known", known), ("asked", asked)):
        figures, right = _table(sentences)
        fitted = 1 / (1 + np.exp(-(figures @ weights + bias)))
        print(f"\n{name}: {len(right)} facts of {len(sentences)} sentences, {right.mean():.3f} right")
        _reliability("confidence", _confidence(sentences), right)
        _reliability("fitted", fitted, right)
        _thresholds(sentences, fitted)


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _table(sentences: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    given = [fact for sentence in sentences for fact in sentence["given"]]
    return np.array([fact["figures"] for fact in given]), np.array([fact["right"] for fact in given])


def _confidence(sentences: Sequence[dict[str, Any]]) -> NDArray[np.float64]:
    return np.array([fact["confidence"] for sentence in sentences for fact in sentence["given"]])


def _reliability(name: str, value: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
    brier = float(((value - right) ** 2).mean())
    print(
        f"   {name}: ECE {calibration_error(value, right):.3f}, Brier {brier:.3f}, "
        f"AUROC {roc_auc_score(right, value):.3f}"
    )
    print("   value       facts    mean  right")
    for low, high in pairwise(_BINS):
        inside = (value >= low) & (value < high)
        if inside.any():
            print(
                f"   {low:.2f}–{min(high, 1):.2f} {inside.sum():8} {value[inside].mean():7.3f} "
                f"{right[inside].mean():6.3f}"
            )


def calibration_error(value: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Over the bins, weighted by their facts: the distance of mean value and share right."""
    error = 0.0
    for low, high in pairwise(_BINS):
        inside = (value >= low) & (value < high)
        if inside.any():
            error += abs(value[inside].mean() - right[inside].mean()) * inside.mean()
    return error


def _thresholds(sentences: Sequence[dict[str, Any]], probability: NDArray[np.float64]) -> None:
    print("   threshold  precision  recall     F1  facts a sentence")
    for threshold in _THRESHOLDS:
        rows, kept_facts, place = [], 0, 0
        for sentence in sentences:
            given = sentence["given"]
            scores = probability[place : place + len(given)]
            place += len(given)
            kept, taken = [], set()
            for number in np.argsort(-scores, kind="stable"):
                fact = given[number]
                tail = fact["fact"][2]
                if tail not in taken and (not kept or scores[number] >= threshold):
                    taken.add(tail)
                    kept.append(fact["right"])
            kept_facts += len(kept)
            right, gold = sum(kept), len({tuple(fact) for fact in sentence["gold"]})
            precision, recall = right / max(1, len(kept)), right / max(1, gold)
            f1 = 2 * precision * recall / (precision + recall) if right else 0.0
            rows.append((precision, recall, f1))
        means = np.mean(rows, axis=0)
        print(
            f"   {threshold:9.2f} {means[0]:10.3f} {means[1]:7.3f} {means[2]:6.3f} "
            f"{kept_facts / len(sentences):8.2f}"
        )


if __name__ == "__main__":
    main()
