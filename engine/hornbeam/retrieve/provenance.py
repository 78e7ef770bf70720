"""Where in which document a found thing stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import Kind

#: Evidence chunks of one fact that are looked at for the smallest window.
_CHUNKS_PER_FACT = 8


@dataclass(frozen=True, slots=True)
class Provenance:
    """A span of a document, inside one chunk."""

    chunk: int  # row
    chunk_id: str
    document_id: str
    source: str
    title: str
    start: int  # characters within the document's text
    end: int


def quote(kb: KnowledgeBase, provenance: Provenance) -> str:
    """document.text[start:end], read from the chunk."""
    offset = int(kb.chunk_starts[provenance.chunk])
    return kb.chunks.text("text", provenance.chunk)[provenance.start - offset : provenance.end - offset]


def provenance_of(kb: KnowledgeBase, kind: Kind, rows: tuple[int, ...]) -> Provenance | None:
    """The span that best shows a candidate; None if no chunk states it (an imported graph has no text).

    A chunk: all of it. An entity: its most confident mention. A triple: the smallest window around a mention
    of its head and one of its tail in a chunk that states it. An attribute: its value. A path: the window of
    its first triple that has one. A community: the window of its heaviest central fact, else the mention of
    its centre.
    """
    if kind == "chunk":
        return chunk_provenance(kb, rows[0])
    if kind == "entity":
        return _entity_provenance(kb, rows[0])
    if kind == "attribute":
        return _attribute_provenance(kb, rows[0])
    if kind == "community":
        facts = (fact_provenance(kb, fact) for fact in kb.central_facts(rows[0], 3))
        centre = int(kb.communities.get("centre_row", rows[0]))
        return next((found for found in facts if found), None) or _entity_provenance(kb, centre)
    windows = (fact_provenance(kb, relation) for relation in rows)
    return next((found for found in windows if found), None)


def chunk_provenance(kb: KnowledgeBase, chunk: int, start: int = 0, end: int | None = None) -> Provenance:
    """The span [start, end) of a chunk's text, or all of it."""
    first, last = kb.chunk_span(chunk)
    return Provenance(
        chunk=chunk,
        chunk_id=kb.chunks.text("chunk_id", chunk),
        **kb.document_of(chunk),
        start=first + start,
        end=last if end is None else first + end,
    )


def fact_provenance(kb: KnowledgeBase, relation: int) -> Provenance | None:
    """The smallest window around head and tail over the relation's evidence chunks.

    A chunk that states the relation but mentions only one of its ends gives that mention, one that mentions
    neither gives itself; both only if no chunk has a window.
    """
    head, tail = int(kb.heads[relation]), int(kb.tails[relation])
    windows: list[tuple[int, int, int, int]] = []  # (ends missing, length, chunk, start)
    for chunk in kb.relation_chunks.of(relation)[:_CHUNKS_PER_FACT].tolist():
        heads, tails = _spans_in(kb, head, chunk), _spans_in(kb, tail, chunk)
        if len(heads) and len(tails):
            starts = np.minimum(heads[:, None, 0], tails[None, :, 0])  # [heads, tails]
            lengths = np.maximum(heads[:, None, 1], tails[None, :, 1]) - starts
            best = int(np.argmin(lengths))
            windows.append((0, int(lengths.flat[best]), chunk, int(starts.flat[best])))
        elif len(heads) or len(tails):
            start, end = (heads if len(heads) else tails)[0].tolist()
            windows.append((1, end - start, chunk, start))
        else:
            first, last = kb.chunk_span(chunk)
            windows.append((2, last - first, chunk, 0))
    if not windows:
        return None
    _, length, chunk, start = min(windows)
    return chunk_provenance(kb, chunk, start, start + length)


def _entity_provenance(kb: KnowledgeBase, entity: int) -> Provenance | None:
    chunks, spans = kb.mentions.of(entity), kb.mentions.spans_of(entity)
    if not len(chunks):
        return None
    return chunk_provenance(kb, int(chunks[0]), int(spans[0, 0]), int(spans[0, 1]))


def _attribute_provenance(kb: KnowledgeBase, attribute: int) -> Provenance | None:
    chunks, spans = kb.attribute_chunks.of(attribute), kb.attribute_chunks.spans_of(attribute)
    if not len(chunks):
        return None
    return chunk_provenance(kb, int(chunks[0]), int(spans[0, 0]), int(spans[0, 1]))


def _spans_in(kb: KnowledgeBase, entity: int, chunk: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """Spans of an entity's mentions in one chunk, int32 [m, 2]."""
    spans: np.ndarray[tuple[int, int], np.dtype[np.int32]]
    spans = kb.mentions.spans_of(entity)[kb.mentions.of(entity) == chunk]
    return spans
