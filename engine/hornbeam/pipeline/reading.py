"""Documents into the ledger: texts, chunks, sources, rejections."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from hornbeam.corpus import Chunker, CutDocument, SeenFile
from hornbeam.pipeline.recipe import text_hash
from hornbeam.progress import Progress
from hornbeam.records import Document, Rejection
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import ChunkRow, Ledger, file_of

#: What is read before it is written in one transaction; both bound the memory, and the time for which nobody
#: looks after the model while a batch is read.
_ITEMS_AT_ONCE = 128
_CHARACTERS_AT_ONCE = 1 << 20

Item = Document | Rejection | SeenFile


@dataclass(slots=True)
class ReadingReport:
    """seen = indexed + unchanged + duplicates + rejected + excluded."""

    seen: int = 0
    indexed: int = 0  # texts that no source of the index held
    unchanged: int = 0  # the source held this text before
    duplicates: int = 0  # another source holds this text
    rejected: list[dict[str, str]] = field(default_factory=list)
    excluded: int = 0  # deleted from the index before, and met again by an update
    changed: int = 0  # of those indexed and duplicates: the source held another text before
    moved: int = 0  # sources that are gone while their text came up at another
    removed: int = (
        0  # sources that are gone: records no longer in their file, and what update or delete found
    )


@dataclass(slots=True)
class Reader:
    """One run's way of taking a corpus in.

    Args:
        chunker: of documents that come without their chunks.
        chunking: fingerprint of the chunker; a document that was cut by another is cut anew.
        reading: fingerprint of all that decides how a file becomes documents and chunks.
        shown: an absolute source as users see it.
        skip_deleted: leave out what the user deleted from the index, as an update does.
    """

    ledger: Ledger
    run: int
    chunker: Chunker
    chunking: str
    reading: str
    progress: Progress
    shown: Callable[[str], str]
    stop: StopRequest
    skip_deleted: bool = False
    report: ReadingReport = field(default_factory=ReadingReport)
    new_documents: set[str] = field(default_factory=set)  # at a source that did not hold them before
    _excluded_files: set[str] = field(default_factory=set)

    def known_digest(self, file: str) -> str | None:
        return self.ledger.places.digest(file, self.reading)

    def read(self, corpus: Iterable[Item]) -> ReadingReport:
        """All of it at once.

        Raises:
            Interrupted: the user stopped the run; what was read is in the ledger.
        """
        for _ in self.batches(corpus):
            self.stop.check(f"{self.report.seen} documents are read")
        return self.report

    def batches(self, corpus: Iterable[Item]) -> Iterator[list[str]]:
        """Takes in a batch whenever it is asked for one; the ids of its documents, which are in the ledger
        by then. Between two batches no transaction is open."""
        with self.progress.stage("read", unit="documents") as stage:
            for batch in _batches(corpus):
                before = self.report.seen
                with self.ledger.transaction():
                    taken = [document_id for item in batch if (document_id := self._take(item)) is not None]
                    self._take_unchanged(batch)
                self.ledger.seal()
                stage.advance(self.report.seen - before)
                yield taken
        self.report.removed += forget_vanished_records(self.ledger, self.run)

    def _take(self, item: Item) -> str | None:
        """The document that was taken, if one was."""
        report = self.report
        if isinstance(item, Document):
            report.seen += 1
            return self._take_document(item)
        if isinstance(item, Rejection):
            report.seen += 1
            shown = self.shown(item.path)
            report.rejected.append({"path": shown, "reason": item.reason})
            self.ledger.add_rejection(item.path, item.reason, self.run, shown=shown)
        elif not item.unchanged and item.whole and item.source not in self._excluded_files:
            self.ledger.places.add_digest(item.source, item.digest, self.reading)
        return None

    def _take_unchanged(self, batch: list[Item]) -> None:
        """Most files of an update: together, not one by one."""
        files = Counter(item.source for item in batch if isinstance(item, SeenFile) and item.unchanged)
        while files:
            sources = self.ledger.meet_files(files, self.run)
            self.report.seen += sources
            self.report.unchanged += sources
            files -= Counter(set(files))  # a path that was given twice is met twice

    def _take_document(self, document: Document) -> str | None:
        ledger, document_id, source = self.ledger, document.document_id, document.source
        if self.skip_deleted and ledger.places.is_deleted(document_id, source):
            self.report.excluded += 1
            self._excluded_files.add(file_of(source))
            ledger.forget_sources([source])  # of another text, which is no longer there
            return None
        shown = self.shown(source)
        ledger.adopt_source(source, shown)
        held, _ = ledger.source_seen(source) or ("", 0)
        count_document(document_id, source, ledger, self.run, self.report)
        if held != document_id:
            self.new_documents.add(document_id)
            self.report.changed += bool(held)
        if ledger.chunking_of(document_id) != self.chunking:
            cut = document.chunks if isinstance(document, CutDocument) else self.chunker.chunk(document)
            rows = [
                ChunkRow(c.chunk_id, document_id, c.start, c.end, c.tokens, text_hash(c.text)) for c in cut
            ]
            ledger.put("document", document_id, document.text.encode("utf-8"))
            ledger.add_document(document_id, document.language, len(document.text), self.chunking, rows)
        ledger.add_source(source, document_id, document.title, self.run, shown=shown)
        ledger.places.undelete(document_id, source)
        return document_id


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


def _batches(corpus: Iterable[Item]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    characters = 0
    for item in corpus:
        batch.append(item)
        characters += len(item.text) if isinstance(item, Document) else 0
        if len(batch) >= _ITEMS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
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
