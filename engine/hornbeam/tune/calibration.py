"""How the figures of guided facts are weighed: a logistic model fitted on texts that were not trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Between them the threshold is looked for.
_THRESHOLDS = tuple(round(0.02 * step, 2) for step in range(1, 31))


@dataclass(frozen=True, slots=True)
class JudgedFacts:
    """The facts that were given for one text.

    Args:
        figures: float64 [facts, figures], see `FactFigures.values`.
        tails: of the facts; of those with the same one, the best alone is kept.
        right: whether a fact is a gold one.
        gold: facts that the text has.
    """

    figures: NDArray[np.float64]
    tails: tuple[str, ...]
    right: NDArray[np.bool_]
    gold: int


def fit(texts: Iterable[JudgedFacts]) -> tuple[float, tuple[float, ...]]:
    """Bias and weights of P(right), figures scaled for the fit and weights scaled back.

    Raises:
        ValueError: all facts are right, or all are wrong.
    """
    from sklearn.linear_model import LogisticRegression

    given = [text for text in texts if len(text.right)]
    figures = np.concatenate([text.figures for text in given]) if given else np.zeros((0, 1))
    right = np.concatenate([text.right for text in given]) if given else np.zeros(0, bool)
    if len(np.unique(right)) < 2:
        raise ValueError("a fit needs right and wrong facts")
    scale = figures.std(axis=0) + 1e-9
    model = LogisticRegression(max_iter=1000).fit(figures / scale, right)
    return float(model.intercept_[0]), tuple(float(weight) for weight in model.coef_[0] / scale)


def probabilities(text: JudgedFacts, bias: float, weights: Sequence[float]) -> NDArray[np.float64]:
    """float64 [facts]."""
    scores: NDArray[np.float64] = 1 / (1 + np.exp(-(text.figures @ np.array(weights) + bias)))
    return scores


def measures(
    texts: Sequence[JudgedFacts], bias: float, weights: Sequence[float], threshold: float
) -> tuple[float, float, float]:
    """Precision, recall, F1 of what is kept from the threshold on (the best of a text in any case): means
    over the texts."""
    rows = []
    for text in texts:
        kept: list[bool] = []
        taken: set[str] = set()
        scores = probabilities(text, bias, weights) if len(text.right) else np.zeros(0)
        for number in np.argsort(-scores, kind="stable"):
            if text.tails[number] not in taken and (not kept or scores[number] >= threshold):
                taken.add(text.tails[number])
                kept.append(bool(text.right[number]))
        right = sum(kept)
        precision, recall = right / max(1, len(kept)), right / max(1, text.gold)
        rows.append((precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0))
    means = np.mean(rows, axis=0)
    return float(means[0]), float(means[1]), float(means[2])


def best_threshold(texts: Sequence[JudgedFacts], bias: float, weights: Sequence[float]) -> float:
    """That with the highest F1; the least of equals."""
    return max(_THRESHOLDS, key=lambda threshold: (measures(texts, bias, weights, threshold)[2], -threshold))
