"""Whether the evidence answers a question at all, and what it lacks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hornbeam.answer.grammars import ANSWERABLE_GRAMMAR
from hornbeam.answer.inquiry import Inquiry
from hornbeam.answer.names import names_in, terms_in, uncovered
from hornbeam.index.tokens import tokenise
from hornbeam.retrieve.evidence import Evidence

_NOT_ANSWERED = "The evidence found does not answer this question."
#: Named in a refusal; all are in the event.
_NAMED = 5
#: Of `by_evidence`; what `bench/answerability.py --signals share,named` fits.
_BIAS = -3.2
_WEIGHTS = {"share": 2.7, "named": 2.0}


def answerable(inquiry: Inquiry, evidence: Sequence[Evidence]) -> float:
    """The probability that the evidence answers; `inquiry.signals` tells what it was made from.

    Raises:
        ModelError: the model could not decide.
    """
    lexical = inquiry.kb.lexical["chunks"]
    weights = {token: lexical.idf(token) for token in tokenise(inquiry.question)}
    inquiry.signals = signals_of(inquiry.question, evidence, weights)
    if inquiry.answer.answerable_by == "evidence":
        return by_evidence(inquiry.signals)
    inquiry.signals["says_yes"] = _says_yes(inquiry, evidence)
    return inquiry.signals["says_yes"]


def by_evidence(signals: Mapping[str, float]) -> float:
    """A probability from two signals, for models too small to judge: a logistic model, fitted where half of
    the questions had an answer, on HotpotQA; tested on 2Wiki, see bench/RESULTS.md."""
    value = _BIAS + sum(weight * signals[name] for name, weight in _WEIGHTS.items())
    return 1 / (1 + math.exp(-value))


def signals_of(question: str, evidence: Sequence[Evidence], weights: Mapping[str, float]) -> dict[str, float]:
    """What the evidence itself says of whether it answers, without a model; each in [0, 1].

    fused       best fused score of a piece
    cosine      best cosine of a passage; words: best BM25 score of one; fact: best score of a triple
    covered     share of the question's terms that a piece speaks of
    named       the same of its names; 1 where it has none
    together    the greatest share of its terms that one piece speaks of
    share       the greatest share of its words, weighted, that stand in one piece

    Args:
        weights: of the question's lexical tokens: their idf.
    """
    terms, names = terms_in(question), names_in(question)

    def best(route: str) -> float:
        return max((piece.routes[route].score for piece in evidence if route in piece.routes), default=0.0)

    def share(wanted: Sequence[str], pieces: Sequence[Evidence]) -> float:
        missing = uncovered(wanted, [text for piece in pieces for text in _texts(piece)])
        return 1 - len(missing) / len(wanted) if wanted else 1.0

    total = sum(weights.values())

    def said(piece: Evidence) -> float:
        tokens = weights.keys() & set(tokenise(" ".join(_texts(piece))))
        return sum(weights[token] for token in tokens) / total if tokens else 0.0

    return {
        "fused": max((piece.score for piece in evidence), default=0.0),
        "cosine": best("chunk_dense"),
        "words": best("chunk_bm25"),
        "fact": best("triple"),
        "covered": share(terms, evidence),
        "named": share(names, evidence),
        "together": max((share(terms, [piece]) for piece in evidence), default=0.0),
        "share": max((said(piece) for piece in evidence), default=0.0),
    }


def _says_yes(inquiry: Inquiry, evidence: Sequence[Evidence]) -> float:
    """P(yes) of the model's yes or no, from the probabilities that the grammar left."""
    lines = " ".join(" ".join(piece.text.split()) for piece in evidence)
    prompt = inquiry.chat("answerable", evidence=lines, question=inquiry.question)
    request = inquiry.request("decide", prompt, 4, grammar=ANSWERABLE_GRAMMAR, logprobs=True)
    (completion,) = inquiry.complete("decide", [request])
    said = math.exp(sum(token.logprob for token in completion.tokens))
    return said if completion.text == "yes" else 1.0 - said


def missing_terms(question: str, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The question's own names and words that no piece of the evidence speaks of, in its order."""
    texts = [text for piece in evidence for text in _texts(piece)]
    return tuple(uncovered(terms_in(question), texts))


def _texts(piece: Evidence) -> tuple[str, str, str]:
    return piece.text, piece.quote or "", piece.title or ""


def refusal(missing: Sequence[str]) -> str:
    """What a declined question is told."""
    if not missing:
        return f"{_NOT_ANSWERED} It speaks of everything that the question names, but does not say this."
    named = ", ".join(f"“{term}”" for term in missing[:_NAMED])
    return f"{_NOT_ANSWERED} It says nothing about {named}."
