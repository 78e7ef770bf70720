"""Weights of a fact's figures, fitted on judged facts."""

import numpy as np
import pytest

from hornbeam.tune.calibration import JudgedFacts, best_threshold, fit, measures, probabilities


def judged(seed: int, texts: int = 300) -> list[JudgedFacts]:
    """Facts whose chance of being right is logistic in the first figure and not in the second."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(texts):
        figures = rng.standard_normal((6, 2)) * (1.0, 50.0)
        right = rng.random(6) < 1 / (1 + np.exp(-(2 * figures[:, 0] - 1)))
        made.append(JudgedFacts(figures, tuple("abcdef"), right, max(1, int(right.sum()))))
    return made


def test_a_fit_finds_what_the_facts_were_drawn_from() -> None:
    bias, weights = fit(judged(1))
    assert bias == pytest.approx(-1, abs=0.25)
    assert weights[0] == pytest.approx(2, abs=0.3)
    assert abs(weights[1]) < 0.01
    others = judged(2)
    said = np.concatenate([probabilities(text, bias, weights) for text in others])
    right = np.concatenate([text.right for text in others])
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        inside = (said >= low) & (said < high)
        assert right[inside].mean() == pytest.approx(said[inside].mean(), abs=0.08)


def test_the_threshold_is_the_one_with_the_best_f1() -> None:
    texts = judged(3)
    bias, weights = fit(texts)
    best = best_threshold(texts, bias, weights)
    top = measures(texts, bias, weights, best)[2]
    assert all(top >= measures(texts, bias, weights, other)[2] for other in (0.02, 0.1, 0.3, 0.5, 0.6))


def test_of_facts_with_one_tail_the_best_is_kept_and_a_text_keeps_one_in_any_case() -> None:
    text = JudgedFacts(
        np.array([[2.0], [1.0], [-9.0]]), ("x", "x", "y"), np.array([True, False, True]), gold=2
    )
    assert measures([text], 0.0, [1.0], 0.5) == pytest.approx((1.0, 0.5, 2 / 3))
    weak = JudgedFacts(np.array([[-9.0]]), ("x",), np.array([True]), gold=1)
    assert measures([weak], 0.0, [1.0], 0.5) == pytest.approx((1.0, 1.0, 1.0))


def test_a_text_without_facts_counts_as_nothing_found() -> None:
    none = JudgedFacts(np.zeros((0, 1)), (), np.zeros(0, bool), gold=3)
    assert measures([none], 0.0, [1.0], 0.5) == (0.0, 0.0, 0.0)


def test_facts_of_one_kind_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="right and wrong"):
        fit([JudgedFacts(np.ones((3, 1)), ("a", "b", "c"), np.ones(3, bool), 3)])
