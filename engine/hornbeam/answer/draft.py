"""How far an answer has come: what is given when time runs out."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from hornbeam.answer.events import AnswerText, Cited, Event, Final
from hornbeam.answer.writing import AnswerReader
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.sentences import sentence_spans

OUT_OF_TIME = "There was no time to answer this question."


@dataclass(slots=True)
class Draft:
    evidence: Sequence[Evidence] = ()
    probability: float | None = None  # that it answers the question
    reader: AnswerReader | None = None  # of the answer that is being written
    answer: str = ""  # of the last sub-question that has one
    citation: Evidence | None = None  # that this answer rests on


def best_so_far(draft: Draft, *, reject: bool) -> Generator[Event, None, Final]:
    """The text that has come; else the last sub-answer; else the best piece's first sentence. A question that
    may be declined and has not been decided is declined."""
    if reject and draft.probability is None:
        return Final(OUT_OF_TIME, True, None, (), out_of_time=True)
    if draft.reader is not None and draft.reader.text:
        reader = draft.reader
        return Final(reader.text, False, draft.probability, reader.citations, cut=True, out_of_time=True)
    if draft.citation is not None:
        text, cited = draft.answer, draft.citation
    elif draft.evidence:
        text, cited = _first_sentence(draft.evidence)
    else:
        return Final(OUT_OF_TIME, True, draft.probability, (), out_of_time=True)
    text = f"{text} [{cited.label}]"
    yield AnswerText(text)
    yield Cited(cited)
    return Final(text, False, draft.probability, (cited,), out_of_time=True)


def _first_sentence(evidence: Sequence[Evidence]) -> tuple[str, Evidence]:
    best = next((piece for piece in evidence if piece.kind == "chunk"), evidence[0])
    start, end = next(iter(sentence_spans(best.text)), (0, len(best.text)))
    text = " ".join(best.text[start:end].split())
    if best.start is None or best.text != best.quote:
        return text, best
    quoted = best.text[start:end]
    return text, replace(best, start=best.start + start, end=best.start + end, quote=quoted)
