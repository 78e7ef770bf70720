"""Fit the scores of guided facts, and see how well they hold.

    hornbeam evaluate text2kg DIR --split held-out --predictions known.jsonl
    hornbeam evaluate text2kg DIR --split test     --predictions asked.jsonl
    python bench/fact_scores.py known.jsonl asked.jsonl

Prints bias and weights for `hornbeam.extract.fact_scores` as fitted on the first file, and for both files how
often facts of a given probability are right (reliability), the area under the ROC curve, and P, R, F1 by
threshold (one mean over all sentences).
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

_BINS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0001)
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
        probability = 1 / (1 + np.exp(-(figures @ weights + bias)))
        auc = roc_auc_score(right, probability)
        print(f"\n{name}: {len(right)} facts, {right.mean():.3f} right, AUROC {auc:.3f}")
        _reliability(probability, right)
        _thresholds(sentences, probability)


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _table(sentences: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    given = [fact for sentence in sentences for fact in sentence["given"]]
    return np.array([fact["figures"] for fact in given]), np.array([fact["right"] for fact in given])


def _reliability(probability: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
    print("   P         facts  mean P  right")
    for low, high in pairwise(_BINS):
        inside = (probability >= low) & (probability < high)
        if inside.any():
            print(
                f"   {low:.2f}–{high:.2f} {inside.sum():6} {probability[inside].mean():7.3f} "
                f"{right[inside].mean():6.3f}"
            )


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
