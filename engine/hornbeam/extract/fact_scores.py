"""How likely a guided fact is right: a logistic model of what the extractor knows of it, the same for every
schema.

Fitted on sentences of other ontologies than those that are reported on (`bench/fact_scores.py` fits it again
and prints the reliability table): what counts is how the model chose and how like the ends are to known
ones. A model with an adapter chooses otherwise, so an adapter brings its own weights (`hornbeam tune`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hornbeam.llm.protocol import ModelIdentity

_LEAST_VOTE = 0.01
#: Log-odds of a judgement, at most: one of 1.0 as a float has none.
_MOST_LOG_ODDS = 12.0


@dataclass(frozen=True, slots=True)
class FactFigures:
    tail_logprob: float  # of the choice among the ends that the grammar allowed
    head_logprob: float
    votes: float  # of the known sentences for the type, and its words in the text
    head_likeness: float  # cosine with known heads of the type
    tail_likeness: float
    order: int  # of the type among those asked for, the likeliest first
    stated: float | None = None  # P(yes) of a model that judges its facts

    def values(self, others: Sequence[FactFigures]) -> tuple[float, ...]:
        """The inputs of the model. Likeness counts against the mean over the sentence's facts: how like
        names are to those of the store depends on the store."""
        heads = sum(other.head_likeness for other in others) / len(others)
        tails = sum(other.tail_likeness for other in others) / len(others)
        return (
            self.tail_logprob,
            self.head_logprob,
            math.log(max(self.votes, _LEAST_VOTE)),
            self.head_likeness - heads,
            self.tail_likeness - tails,
            float(self.order),
            0.0 if self.stated is None else _log_odds(self.stated),
        )


@dataclass(frozen=True, slots=True)
class FactScores:
    """
    Args:
        weights: of the figures' values, in their order.
        judged: facts are asked for with a yes or no each.
        threshold: P(right) below which a fact is left out where the settings name none.
    """

    bias: float
    weights: tuple[float, ...]
    judged: bool
    threshold: float

    @property
    def version(self) -> str:
        """Part of the key of stored results."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    def probability(self, figures: FactFigures, others: Sequence[FactFigures]) -> float:
        """P(the fact is right).

        Args:
            others: of all facts of its sentence, its own among them.
        """
        values = figures.values(others)
        score = self.bias + sum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1 / (1 + math.exp(-score)) if score > -700 else 0.0


#: Of a model without an adapter, fitted with the embedded one.
UNTRAINED = FactScores(
    bias=-1.081, weights=(1.383, 0.281, 0.216, 0.563, 3.131, -0.310, 0.0), judged=False, threshold=0.06
)


def scores_of(identity: ModelIdentity) -> FactScores:
    """Those of the model's adapter, where it has one that was trained on guided facts."""
    adapter = identity.adapter
    if adapter is None:
        return UNTRAINED
    if adapter.facts is None:
        return replace(UNTRAINED, judged=adapter.judges)
    return FactScores(adapter.facts.bias, adapter.facts.weights, adapter.judges, adapter.facts.threshold)


def _log_odds(probability: float) -> float:
    least = 1 / (1 + math.exp(_MOST_LOG_ODDS))
    bounded = min(max(probability, least), 1 - least)
    return math.log(bounded / (1 - bounded))
