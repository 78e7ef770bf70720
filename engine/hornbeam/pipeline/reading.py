"""Documents into the ledger: texts, chunks, sources, rejections."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hornbeam.corpus import Chunker
from hornbeam.pipeline.recipe import text_hash
from hornbeam.progress import Progress
from hornbeam.records import Document, Rejection
from hornbeam.store.ledger import ChunkRow, Ledger

#: What is read before it is written in one transaction; both bound the memory.
_DOCUMENTS_AT_ONCE = 128
_CHARACTERS_AT_ONCE = 8 << 20


@dataclass(slots=True)
class ReadingReport:
    """seen = indexed + unchanged + duplicates + rejected."""

    seen: int = 0
    indexed: int = 0  # texts that no source of the index held
    unchanged: int = 0  # the source held this text before
    duplicates: int = 0  # another source holds this text
    rejected: list[dict[str, str]] = field(default_factory=list)
    removed: int = 0  # records that are no longer in their file


def read_documents(
    corpus: Iterable[Document | Rejection],
    ledger: Ledger,
    run: int,
    chunker: Chunker,
    chunking: str,
    progress: Progress,
) -> ReadingReport:
    """
    Args:
        chunking: fingerprint of the chunker; a document that was cut by another is cut anew.
    """
    report = ReadingReport()
    with progress.stage("read", unit="documents") as stage:
        for batch in _batches(corpus):
            with ledger.transaction():
                for item in batch:
                    report.seen += 1
                    if isinstance(item, Rejection):
                        report.rejected.append({"path": item.path, "reason": item.reason})
                        ledger.add_rejection(item.path, item.reason, run)
                    else:
                        _take(item, ledger, run, chunker, chunking, report)
            ledger.seal()
            stage.advance(len(batch))
    report.removed = forget_vanished_records(ledger, run)
    return report


def _take(
    document: Document, ledger: Ledger, run: int, chunker: Chunker, chunking: str, report: ReadingReport
) -> None:
    document_id = document.document_id
    count_document(document_id, document.source, ledger, run, report)
    if ledger.chunking_of(document_id) != chunking:
        rows = [
            ChunkRow(c.chunk_id, document_id, c.start, c.end, c.tokens, text_hash(c.text))
            for c in chunker.chunk(document)
        ]
        ledger.put("document", document_id, document.text.encode("utf-8"))
        ledger.add_document(document_id, document.language, len(document.text), chunking, rows)
    ledger.add_source(document.source, document_id, document.title, run)


def count_document(document_id: str, source: str, ledger: Ledger, run: int, report: ReadingReport) -> None:
    """Before the document is taken: is it new to the index, new to this source, or neither?"""
    held, last_run = ledger.source_seen(source) or ("", 0)
    if held == document_id and last_run == run:
        report.duplicates += 1  # the same path, given twice
    elif held == document_id:
        report.unchanged += 1
    elif ledger.has_source(document_id):
        report.duplicates += 1
    else:
        report.indexed += 1


def _batches(corpus: Iterable[Document | Rejection]) -> Iterator[list[Document | Rejection]]:
    batch: list[Document | Rejection] = []
    characters = 0
    for item in corpus:
        batch.append(item)
        characters += len(item.text) if isinstance(item, Document) else 0
        if len(batch) >= _DOCUMENTS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def forget_vanished_records(ledger: Ledger, run: int) -> int:
    """A file with fewer records than before, or that is no longer readable, lets go of the rest; how many."""
    gone = [
        source
        for source, file in ledger.vanished(run)
        # A plain file can have the name that a record would have; it is gone only when it is.
        if source == file or not os.path.lexists(source)
    ]
    if gone:
        with ledger.transaction():
            ledger.forget_sources(gone)
    return len(gone)
