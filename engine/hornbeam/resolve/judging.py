"""Are two names one thing? The model's yes or no about pairs that could be forms of one, with P(yes)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hornbeam.corpus import detect_language
from hornbeam.extract.verification import GRAMMAR, probability_of_yes
from hornbeam.llm.protocol import Completion
from hornbeam.resolve.answers import Answers, Question

TASK = "same_thing"
_ANSWER_TOKENS = 4
#: Sentences that are shown of each name.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """Two names with what is told of each."""

    first: str
    told_of_first: Sequence[str]
    second: str
    told_of_second: Sequence[str]


def probabilities(pairs: Sequence[Pair], answers: Answers) -> list[float | None]:
    """P(they are one thing), of each pair; None: the model failed."""
    said = answers.ask(TASK, [_question(pair) for pair in pairs], _probability)
    return [None if one is None else float(one) for one in said]


def _question(pair: Pair) -> Question:
    told = [" ".join(list(some)[:_SHOWN]) for some in (pair.told_of_first, pair.told_of_second)]
    values = {"first": pair.first, "told_of_first": told[0], "second": pair.second, "told_of_second": told[1]}
    return Question(values, detect_language("\n".join(told)), GRAMMAR, _ANSWER_TOKENS)


def _probability(completion: Completion) -> str | None:
    yes = probability_of_yes(completion)
    return None if yes is None else str(yes)
