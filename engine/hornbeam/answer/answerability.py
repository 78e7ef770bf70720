"""Whether the evidence answers a question at all, and what it lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hornbeam.answer.grammars import ANSWERABLE_GRAMMAR
from hornbeam.answer.inquiry import Inquiry
from hornbeam.answer.names import terms_in, uncovered
from hornbeam.retrieve.evidence import Evidence

_NOT_ANSWERED = "The evidence found does not answer this question."
#: Named in a refusal; all are in the event.
_NAMED = 5


def answerable(inquiry: Inquiry, evidence: Sequence[Evidence]) -> float:
    """P(yes) of the model's yes or no, from the probabilities that the grammar left.

    Raises:
        ModelError: the model could not decide.
    """
    lines = " ".join(" ".join(piece.text.split()) for piece in evidence)
    prompt = inquiry.chat("answerable", evidence=lines, question=inquiry.question)
    request = inquiry.request("decide", prompt, 4, grammar=ANSWERABLE_GRAMMAR, logprobs=True)
    (completion,) = inquiry.complete("decide", [request])
    said = math.exp(sum(token.logprob for token in completion.tokens))
    return said if completion.text == "yes" else 1.0 - said


def missing_terms(question: str, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The question's own names and words that no piece of the evidence speaks of, in its order."""
    texts = [text for piece in evidence for text in (piece.text, piece.quote or "", piece.title or "")]
    return tuple(uncovered(terms_in(question), texts))


def refusal(missing: Sequence[str]) -> str:
    """What a declined question is told."""
    if not missing:
        return f"{_NOT_ANSWERED} It speaks of everything that the question names, but does not say this."
    named = ", ".join(f"“{term}”" for term in missing[:_NAMED])
    return f"{_NOT_ANSWERED} It says nothing about {named}."
