"""What must hold of every plan and every citation, counted over the events of a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from hornbeam.answer.events import Event, EvidenceFound, Final, Planned, Stepped
from hornbeam.answer.plans import Level, SubQuestion
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.provenance import Provenance, quote

#: plans: asked for; plans_valid: see `valid_plan`; planned_questions: theirs; citations: of final answers;
#: citations_resolving: see `resolves`; answers_citing: answers with at least one.
COUNTS = (
    "plans",
    "plans_valid",
    "planned_questions",
    "answers",
    "answers_citing",
    "citations",
    "citations_resolving",
)


def counted(kb: KnowledgeBase, events: Sequence[Event], limit: int) -> dict[str, int]:
    """`COUNTS` of one question.

    Args:
        limit: sub-questions that a plan may have.
    """
    counts = dict.fromkeys(COUNTS, 0)
    shown: dict[int, Evidence] = {}
    failed = False
    for event in events:
        match event:
            case EvidenceFound(evidence=pieces):
                shown |= {piece.label: piece for piece in pieces}
            case Stepped(number=0):
                failed = True
            case Planned(sub_questions):
                counts["plans"] += 1
                counts["planned_questions"] += len(sub_questions)
                valid = not failed and valid_plan(sub_questions, kb.entity_types, limit)
                counts["plans_valid"] += valid
            case Final(rejected=False, citations=cited):
                counts["answers"] += 1
                counts["answers_citing"] += bool(cited)
                counts["citations"] += len(cited)
                counts["citations_resolving"] += sum(resolves(kb, piece, shown) for piece in cited)
    return counts


def valid_plan(plan: Sequence[SubQuestion], types: Sequence[str], limit: int) -> bool:
    """One to `limit` questions in words, each of a known level, with types of the schema, and resting on
    earlier ones alone: a plan without cycles."""
    return 1 <= len(plan) <= limit and all(
        one.number == number
        and one.text.strip() != ""
        and one.level in get_args(Level)
        and set(one.types) <= set(types)
        and all(0 < rests < number for rests in one.depends_on)
        for number, one in enumerate(plan, start=1)
    )


def resolves(kb: KnowledgeBase, cited: Evidence, shown: dict[int, Evidence]) -> bool:
    """The citation names a piece that was shown, and its quote is what its document says at that place.

    Of a piece that no text states (a summary, an imported fact) the label is all there is to check.
    """
    piece = shown.get(cited.label)
    if piece is None or piece.chunk_id != cited.chunk_id:
        return False
    if cited.start is None or cited.end is None or cited.chunk_id is None:
        return cited.quote is None
    chunk = kb.chunks.row_of("chunk_id", cited.chunk_id)
    if chunk is None:
        return False
    where = Provenance(
        chunk=chunk, chunk_id=cited.chunk_id, **kb.document_of(chunk), start=cited.start, end=cited.end
    )
    return where.document_id == cited.document_id and quote(kb, where) == cited.quote
