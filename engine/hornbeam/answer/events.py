"""What a question's answer streams: one typed protocol for the terminal, programs and servers.

Order: one EvidenceFound, any number of AnswerText and Cited, one Final.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hornbeam.retrieve.evidence import Evidence


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """Before the first token of the answer."""

    evidence: tuple[Evidence, ...]
    milliseconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class AnswerText:
    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A claim that ends here rests on this piece of evidence."""

    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Final:
    answer: str  # with its [n] marks; the refusal in words when rejected
    rejected: bool
    answerable: float | None  # P(the evidence answers the question); None in open mode
    citations: tuple[Evidence, ...]  # each once, in the order of the answer
    tokens: dict[str, int] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    cut: bool = False  # the token limit ended the answer; what follows its last mark has no citation


Event = EvidenceFound | AnswerText | Cited | Final


def evidence_json(evidence: Evidence) -> dict[str, Any]:
    return {
        "label": evidence.label,
        "kind": evidence.kind,
        "text": evidence.text,
        "document_id": evidence.document_id,
        "source": evidence.source,
        "title": evidence.title,
        "start": evidence.start,
        "end": evidence.end,
        "chunk_id": evidence.chunk_id,
        "quote": evidence.quote,
        "score": evidence.score,
        "routes": {
            route: {"rank": place.rank, "score": place.score} for route, place in evidence.routes.items()
        },
    }
