"""Whether the evidence answers a question at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hornbeam.answer.inquiry import Inquiry
from hornbeam.answer.prompts import ANSWERABLE_GRAMMAR, answerable_prompt
from hornbeam.retrieve.evidence import Evidence


def answerable(inquiry: Inquiry, evidence: Sequence[Evidence]) -> float:
    """P(yes) of the model's yes or no, from the probabilities that the grammar left.

    Raises:
        ModelError: the model could not decide.
    """
    prompt = answerable_prompt(inquiry.model, inquiry.question, evidence)
    request = inquiry.request("decide", prompt, 4, grammar=ANSWERABLE_GRAMMAR, logprobs=True)
    (completion,) = inquiry.complete("decide", [request])
    said = math.exp(sum(token.logprob for token in completion.tokens))
    return said if completion.text == "yes" else 1.0 - said
