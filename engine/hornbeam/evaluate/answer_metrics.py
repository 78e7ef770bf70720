"""Measures of answers: against known ones, and of the decision to answer at all."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalised(answer: str) -> str:
    """HippoRAG's form, after SQuAD's: lower case, no ASCII punctuation, no articles, single spaces; in this
    order."""
    plain = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1 if the answer is one of `golds` (at least one) in normal form."""
    said = normalised(answer)
    return float(any(said == normalised(gold) for gold in golds))


def f1(answer: str, golds: Sequence[str]) -> float:
    """The best over `golds` of the harmonic mean of precision and recall of tokens, counted with repetitions;
    0 without a common token."""
    return max(_f1(normalised(answer).split(), normalised(gold).split()) for gold in golds)


def _f1(said: list[str], gold: list[str]) -> float:
    common = sum((Counter(said) & Counter(gold)).values())
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The chance that one of `positive` scores above one of `negative`, ties half (Mann and Whitney 1947);
    None where one of them is empty. O(n log n)."""
    if not positive or not negative:
        return None
    from scipy.stats import rankdata

    ranks = rankdata(np.array([*positive, *negative], dtype=np.float64))
    n, m = len(positive), len(negative)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))


def abstention(answered: Sequence[bool], answerable: Sequence[bool]) -> dict[str, float | int]:
    """How the decisions to answer went; at least one question.

    accuracy: decided rightly; false_answers: of those without evidence, the share that was answered;
    false_rejections: of those with evidence, the share that was not.
    """
    with_evidence = [said for said, can in zip(answered, answerable, strict=True) if can]
    without = [said for said, can in zip(answered, answerable, strict=True) if not can]
    right = sum(with_evidence) + sum(not said for said in without)
    report: dict[str, float | int] = {
        "with_evidence": len(with_evidence),
        "without_evidence": len(without),
        "accuracy": round(right / len(answered), 4),
    }
    if without:
        report["false_answers"] = round(sum(without) / len(without), 4)
    if with_evidence:
        report["false_rejections"] = round(sum(not said for said in with_evidence) / len(with_evidence), 4)
    return report
