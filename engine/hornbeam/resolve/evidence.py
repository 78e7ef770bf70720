"""What speaks for two names being one thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hornbeam.settings import ResolveSettings


class EvidenceKind(StrEnum):
    STATED = "stated"  # the text says so: "also known as", "formerly", 字, он же
    ACRONYM = "acronym"  # NASA and its long form in one document
    SPELLING = "spelling"  # the same letters but for marks, blanks, punctuation
    SLIP = "slip"  # one letter of a long word
    INFLECTION = "inflection"  # Москвы and Москва
    PARTIAL = "partial"  # a part of a name after the whole, in one document
    CONTEXT = "context"  # could be forms of one name, in like company, in different documents
    APPOSITION = "apposition"  # an epithet that always stands right before one name, in unspaced scripts
    MODEL = "model"  # the model said so of two names in different documents; the score is P(yes)
    TYPE = "type"  # the same name under another type, in one document


#: How sure each kind is where nothing else is known: measured on documents with known aliases, see
#: bench/RESULTS.md.
SCORES = {
    EvidenceKind.STATED: 0.97,
    EvidenceKind.SPELLING: 0.96,
    EvidenceKind.TYPE: 0.95,
    EvidenceKind.ACRONYM: 0.95,
    EvidenceKind.PARTIAL: 0.94,
    EvidenceKind.INFLECTION: 0.93,
    EvidenceKind.SLIP: 0.91,
    EvidenceKind.APPOSITION: 0.9,
    EvidenceKind.CONTEXT: 0.9,
}
#: Likeness, which is not transitive; everything else is firm.
LOOSE = frozenset({EvidenceKind.SLIP, EvidenceKind.CONTEXT, EvidenceKind.MODEL})
#: Tells of names in the document where it stands, and in no other.
LOCAL = frozenset({EvidenceKind.PARTIAL, EvidenceKind.TYPE})
#: Points from an alias to the one thing that it stands for; one of two things is each only where it is said.
DIRECTED = frozenset({EvidenceKind.STATED, EvidenceKind.ACRONYM, EvidenceKind.APPOSITION})


@dataclass(frozen=True, slots=True)
class LocalName:
    """A name of one type in one document, with every place where it stands."""

    canonical: str
    type: str
    written: str
    places: Sequence[tuple[int, int]]  # character spans of the document's text, ascending
    votes: float = 1.0  # confidence that the name has this type, over its places


@dataclass(frozen=True, slots=True)
class Link:
    """One name of a document is told to be another: numbers of local names, and where it is told."""

    alias: int
    target: int
    kind: EvidenceKind
    start: int  # of the evidence, within the document's text
    end: int
    score: float


def kinds_that_count(settings: ResolveSettings) -> frozenset[EvidenceKind]:
    """All kinds but those that the settings leave out."""
    left_out = set(settings.without.split())
    if settings.types == "keep":
        left_out.add(EvidenceKind.TYPE)
    if not settings.ask:
        left_out.add(EvidenceKind.MODEL)
    return frozenset(kind for kind in EvidenceKind if kind.value not in left_out)
