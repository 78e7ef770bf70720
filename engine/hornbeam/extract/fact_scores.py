"""How likely a guided fact is right: a logistic model of six figures, the same for every schema.

Fitted on sentences of other ontologies than those that are reported on (`bench/fact_scores.py` fits it again
and prints the reliability table): what counts is how the model chose and how like the ends are to known
ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Raise when the figures or the weights change: stored results then are no longer those of this module.
SCORES_VERSION = "1"
_LEAST_VOTE = 0.01


@dataclass(frozen=True, slots=True)
class FactFigures:
    tail_logprob: float  # of the choice among the ends that the grammar allowed
    head_logprob: float
    votes: float  # of the known sentences for the type, and its words in the text
    head_likeness: float  # cosine with known heads of the type
    tail_likeness: float
    order: int  # of the type among those asked for, the likeliest first

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
        )


_BIAS = -1.081
_WEIGHTS = (1.383, 0.281, 0.216, 0.563, 3.131, -0.310)


def probability(figures: FactFigures, others: Sequence[FactFigures]) -> float:
    """P(the fact is right).

    Args:
        others: of all facts of its sentence, its own among them.
    """
    score = _BIAS + sum(
        weight * value for weight, value in zip(_WEIGHTS, figures.values(others), strict=True)
    )
    return 1 / (1 + math.exp(-score))
