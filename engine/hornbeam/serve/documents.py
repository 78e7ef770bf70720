"""A document's text around a span, put together from the chunks that lie there.

Offsets are characters (Unicode code points) of the document's text, as everywhere; what no chunk holds (white
space between two of them) is filled up, so that they hold in what is returned, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hornbeam.retrieve.knowledge_base import KnowledgeBase


def document_json(kb: KnowledgeBase, row: int, start: int, end: int) -> dict[str, Any]:
    """The text from `start` up to `end`, cut to where the document has any.

    Returns:
        its `text`, the `start` and `end` of that, and how many `characters` the chunks of the document span.
    """
    chunks = np.flatnonzero(kb.chunk_documents == row)
    spans = sorted((*kb.chunk_span(chunk), chunk) for chunk in chunks.tolist())
    length = max((last for _, last, _ in spans), default=0)
    start, end = min(start, length), min(end, length)
    parts: list[str] = []
    at = start
    for first, last, chunk in spans:
        if last <= at or first >= end:
            continue
        if first > at:
            parts.append(_gap(first - at))
            at = first
        text = kb.chunks.text("text", chunk)[at - first : end - first]
        parts.append(text)
        at += len(text)
    return {
        "document_id": kb.documents.text("document_id", row),
        "source": kb.documents.text("source", row),
        "title": kb.documents.text("title", row),
        "start": start,
        "end": at,
        "characters": length,
        "text": "".join(parts),
    }


def _gap(characters: int) -> str:
    return ("\n" * min(2, characters)).rjust(characters)
