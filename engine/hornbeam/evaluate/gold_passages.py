"""Supporting passages found again in an index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from hornbeam.errors import UsageError
from hornbeam.evaluate.question_files import Question, Supporting
from hornbeam.index.tokens import normalise
from hornbeam.retrieve.knowledge_base import KnowledgeBase

Unit = Literal["document", "chunk"]


@dataclass(frozen=True, slots=True)
class Gold:
    """What a ranking is measured against.

    Units are what is ranked: documents (a document stands where its best chunk does), as in the protocol of
    HippoRAG, or chunks, where a passage is only part of a document.
    """

    unit: Unit
    units_of: tuple[tuple[frozenset[int], ...], ...]  # question → passage → rows any of which is the passage
    missing: tuple[str, ...]  # passages that the index does not hold: always a miss

    def ranked_units(self, kb: KnowledgeBase, chunks: Iterable[int]) -> list[int]:
        """Chunk rows, best first, as units, none twice."""
        rows = (int(kb.chunk_documents[chunk]) if self.unit == "document" else chunk for chunk in chunks)
        return list(dict.fromkeys(rows))


def find_gold(kb: KnowledgeBase, questions: Sequence[Question]) -> Gold:
    """Find every supporting passage in the index.

    A passage is the document whose text it is (with or without its title in front, but for case and space);
    else the chunks of every document that holds it as a part; with a title alone, the documents of that
    title. A passage that is not there counts as missed by every engine.

    Raises:
        UsageError: no passage at all is in the index: it was made from something else.
    """
    finder = _Finder(kb)
    wanted = list(dict.fromkeys(passage for question in questions for passage in question.supporting))
    found = {passage: finder.find(passage) for passage in wanted}
    missing = [passage.title or passage.text[:60] or passage.document_id for passage in wanted]
    missing = [name for name, passage in zip(missing, wanted, strict=True) if not found[passage][1]]
    if wanted and len(missing) == len(wanted):
        raise UsageError(
            f"none of the {len(wanted)} supporting passages is in {kb.directory}, for example "
            f"'{missing[0]}': index the passages of these questions first"
        )
    whole = all(unit == "document" for unit, rows in found.values() if rows)
    units = {}
    for passage, (unit, rows) in found.items():
        if unit == "document" and not whole:
            rows = frozenset(np.flatnonzero(np.isin(kb.chunk_documents, list(rows))).tolist())
        units[passage] = rows
    return Gold(
        "document" if whole else "chunk",
        tuple(tuple(units[passage] for passage in question.supporting) for question in questions),
        tuple(missing),
    )


class _Finder:
    """Looks passages up by their text, title or identifier."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._texts = _document_texts(kb.directory)
        self._by_text: dict[str, set[int]] = defaultdict(set)
        self._by_title: dict[str, set[int]] = defaultdict(set)
        self._by_id: dict[str, int] = {}
        for row, text in enumerate(self._texts):
            title = kb.documents.text("title", row)
            self._by_id[kb.documents.text("document_id", row)] = row
            self._by_title[_plain(title)].add(row)
            for form in (text, f"{title}\n{text}"):
                self._by_text[_plain(form)].add(row)
        self._chunk_ids: dict[str, int] | None = None

    def find(self, passage: Supporting) -> tuple[Unit, frozenset[int]]:
        if passage.chunk_id:
            if self._chunk_ids is None:
                chunks = self._kb.chunks
                self._chunk_ids = {chunks.text("chunk_id", row): row for row in range(len(chunks))}
            row = self._chunk_ids.get(passage.chunk_id)
            return "chunk", frozenset(() if row is None else (row,))
        if passage.document_id:
            row = self._by_id.get(passage.document_id)
            return "document", frozenset(() if row is None else (row,))
        if not passage.text.strip():
            return "document", frozenset(self._by_title.get(_plain(passage.title), ()))
        # With its title first: one text may stand under two titles.
        for form in (f"{passage.title}\n{passage.text}", passage.text):
            if rows := self._by_text.get(_plain(form)):
                return "document", frozenset(rows)
        return "chunk", frozenset(self._chunks_with(passage.text.strip()))

    def _chunks_with(self, text: str) -> Iterable[int]:
        for document, whole in enumerate(self._texts):
            start = whole.find(text)
            if start >= 0:
                for chunk in np.flatnonzero(self._kb.chunk_documents == document).tolist():
                    first, last = self._kb.chunk_span(chunk)
                    # The chunks that hold at least half of the passage, or half of which it fills.
                    shared = min(last, start + len(text)) - max(first, start)
                    if 2 * shared >= min(len(text), last - first):
                        yield chunk


def _plain(text: str) -> str:
    return " ".join(normalise(text).split())


def _document_texts(version_directory: Path) -> list[str]:
    import pyarrow.parquet as pq

    table = pq.read_table(version_directory / "tables" / "documents.parquet", columns=["text"])
    texts: list[str] = table.column("text").to_pylist()
    return texts
