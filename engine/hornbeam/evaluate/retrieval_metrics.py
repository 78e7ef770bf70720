"""Measures of a ranking against the passages that a question needs, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The cut-offs k of recall@k and all_gold@k.
CUTS = (1, 2, 5, 10, 20)
#: Of a claim's words, weighted by idf, that one retrieved chunk must hold for the claim to count as found.
FOUND_CLAIM = 0.75
RESAMPLES = 2000
SEED = 42


def ranking_scores(ranked: Sequence[int], gold: Sequence[AbstractSet[int]]) -> dict[str, float]:
    """recall@k, all_gold@k and mrr of one question.

    Args:
        ranked: units, best first, none twice.
        gold: the passages, each as the units any of which is it; at least one passage.

    recall@k is the share of the passages among the first k units, all_gold@k 1 if all of them are there
    (HippoRAG's protocol; the mean over questions is taken by the caller), mrr 1 / the rank of the first unit
    that is one of them, 0 if none is.
    """
    places = [next((rank for rank, unit in enumerate(ranked, 1) if unit in units), None) for units in gold]
    reached = [place for place in places if place is not None]
    scores = {"mrr": 1 / min(reached) if reached else 0.0}
    for cut in CUTS:
        found = sum(place <= cut for place in reached)
        scores[f"recall@{cut}"] = found / len(gold)
        scores[f"all_gold@{cut}"] = float(found == len(gold))
    return scores


def claim_scores(
    claims: Sequence[Mapping[str, float]], chunks: Sequence[AbstractSet[str]], cut: int
) -> dict[str, float]:
    """evidence_recall@k and evidence_coverage@k of one question at one cut-off k.

    Args:
        claims: the idf of each lexical token of a claim; at least one claim.
        chunks: lexical tokens of the chunks, best first; the first `cut` count.

    A claim's coverage is the idf-weighted share of its tokens in the chunk that has most of them, so it needs
    no judge and asks for the claim's own words: of a paraphrase it says too little, of a chunk that denies
    the claim too much. Coverage is its mean over the claims, recall the share of claims with at least
    `FOUND_CLAIM`.
    """
    covered = []
    for weights in claims:
        total = sum(weights.values())
        best = max(
            (sum(weights[token] for token in weights.keys() & chunk) for chunk in chunks[:cut]), default=0.0
        )
        covered.append(best / total if total else 0.0)
    return {
        f"evidence_recall@{cut}": float(np.mean([share >= FOUND_CLAIM for share in covered])),
        f"evidence_coverage@{cut}": float(np.mean(covered)),
    }


def confidence_interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the mean over questions: percentile bootstrap (Efron 1979), fixed seed."""
    sample = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(SEED)
    means = sample[rng.integers(0, len(sample), (RESAMPLES, len(sample)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99, linear between the two nearest."""
    return {f"p{share}": round(float(np.percentile(milliseconds, share)), 3) for share in (50, 95, 99)}
