"""The ledger's documents: which sources hold which, how they are cut into chunks, and what was rejected."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hornbeam.store.database import AT_ONCE, Database, marks, portions
from hornbeam.store.places import Places

DOCUMENT_TABLES = """
CREATE TABLE IF NOT EXISTS documents (
    document_id TEXT PRIMARY KEY, language TEXT NOT NULL, characters INTEGER NOT NULL,
    chunking TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources (
    source TEXT PRIMARY KEY, file TEXT NOT NULL, document_id TEXT NOT NULL, title TEXT NOT NULL,
    run INTEGER NOT NULL, shown TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sources_by_document ON sources (document_id);
CREATE INDEX IF NOT EXISTS sources_by_file ON sources (file, run);
CREATE TABLE IF NOT EXISTS rejections (
    path TEXT PRIMARY KEY, file TEXT NOT NULL, reason TEXT NOT NULL, run INTEGER NOT NULL,
    shown TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    document_id TEXT NOT NULL, ordinal INTEGER NOT NULL, chunk_id TEXT NOT NULL,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL, tokens INTEGER NOT NULL, text_hash TEXT NOT NULL,
    PRIMARY KEY (document_id, ordinal)) WITHOUT ROWID;
"""

#: How the corpus names a record of a file: `articles.jsonl#3`, `feed.json#3.2`.
_RECORD = re.compile(r"#\d+(\.\d+)*$")


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """Where a chunk lies; its text is the document's."""

    chunk_id: str
    document_id: str
    start: int
    end: int
    tokens: int
    text_hash: str  # of the chunk's text: results are kept by it, so that keys need no text


@dataclass(frozen=True, slots=True)
class DocumentRow:
    document_id: str
    title: str  # at the first of its sources
    language: str
    characters: int
    chunking: str  # fingerprint of how it was cut
    sources: tuple[str, ...]  # as shown, sorted


class Documents(Database):
    """The part of a ledger that knows its documents and their chunks."""

    #: the paths it is built from, its files as they were, and what was deleted from it
    places: Places

    def source_seen(self, source: str) -> tuple[str, int] | None:
        """The document that a source holds and the last run that met it there."""
        rows = self._run("SELECT document_id, run FROM sources WHERE source = ?", (source,))
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def has_source(self, document_id: str) -> bool:
        return bool(self._run("SELECT 1 FROM sources WHERE document_id = ? LIMIT 1", (document_id,)))

    def chunking_of(self, document_id: str) -> str | None:
        """Fingerprint of the settings that the document was chunked with; None: unknown document."""
        chunking = self._one("SELECT chunking FROM documents WHERE document_id = ?", (document_id,))
        return None if chunking is None else str(chunking)

    def add_source(
        self, source: str, document_id: str, title: str, run: int, *, shown: str | None = None
    ) -> None:
        """A source holds one document: a changed file lets go of its old text.

        Args:
            source: what it is known by, the same from every working directory.
            shown: what readers of the tables see; None: `source`.
        """
        self._run(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?)",
            (source, file_of(source), document_id, title, run, shown or source),
        )
        self._run("DELETE FROM rejections WHERE path = ?", (source,))

    def adopt_source(self, source: str, shown: str) -> None:
        """What an older Hornbeam knew by its path as given is this source."""
        if self._has_old_sources and source != shown:
            self._run(
                "UPDATE OR IGNORE sources SET source = ?, file = ? WHERE source = ? AND shown = ''",
                (source, file_of(source), shown),
            )

    def meet_files(self, files: Iterable[str], run: int) -> int:
        """A run has met files that are as they were; the number of sources in them."""
        met = 0
        for some in portions(files):
            sql = f"UPDATE sources SET run = ? WHERE file IN ({marks(some)}) RETURNING 1"
            met += len(self._run(sql, (run, *some)))
        return met

    def source_count(self) -> int:
        return int(self._one("SELECT count(*) FROM sources"))

    def sources(self) -> Iterator[tuple[str, str, str, int]]:
        """(source, shown, document id, the last run that met it), by source."""
        last = ""
        while True:
            page = self._run(
                "SELECT source, CASE shown WHEN '' THEN source ELSE shown END, document_id, run "
                "FROM sources WHERE source > ? ORDER BY source LIMIT ?",
                (last, AT_ONCE),
            )
            yield from page
            if len(page) < AT_ONCE:
                return
            last = page[-1][0]

    def add_document(
        self, document_id: str, language: str, characters: int, chunking: str, chunks: Iterable[ChunkRow]
    ) -> None:
        self._run(
            "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)",
            (document_id, language, characters, chunking),
        )
        self._run("DELETE FROM chunks WHERE document_id = ?", (document_id,))
        self._run_many(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (document_id, place, chunk.chunk_id, chunk.start, chunk.end, chunk.tokens, chunk.text_hash)
                for place, chunk in enumerate(chunks)
            ),
        )

    def add_rejection(
        self, path: str, reason: str, run: int, *, file: str | None = None, shown: str | None = None
    ) -> None:
        """A source that can no longer be read holds no document.

        Args:
            file: that it is part of, where its name does not tell.
            shown: what users see; None: `path`.
        """
        self._run(
            "INSERT OR REPLACE INTO rejections VALUES (?, ?, ?, ?, ?)",
            (path, file or file_of(path), reason, run, shown or path),
        )
        self.places.forget_files([file_of(path)])
        self._run("DELETE FROM sources WHERE source = ?", (path,))

    def vanished(self, run: int) -> list[tuple[str, str]]:
        """(source, file) of what `run` did not meet, read or rejected, in files that it has met."""
        met = "SELECT file FROM sources WHERE run = ?1 UNION SELECT file FROM rejections WHERE run = ?1"
        rows = self._run(
            f"SELECT source, file FROM sources WHERE run <> ?1 AND file IN ({met}) "
            f"UNION SELECT path, file FROM rejections WHERE run <> ?1 AND file IN ({met})",
            (run,),
        )
        return [(str(source), str(file)) for source, file in rows]

    def forget_sources(self, sources: Iterable[str]) -> None:
        """Let go of sources, read or rejected. A document without a source is no longer in the graph."""
        names = [(source,) for source in sources]
        self.places.forget_files(file_of(source) for (source,) in names)
        self._run_many("DELETE FROM sources WHERE source = ?", names)
        self._run_many("DELETE FROM rejections WHERE path = ?", names)

    def documents(self) -> Iterator[DocumentRow]:
        """Documents that some source holds, by id. The ledger may be written to meanwhile."""
        last = ""
        while True:
            # A page at a time, found by key: an open cursor would see half of what is written meanwhile.
            page = self._document_rows("d.document_id > ?", (last, AT_ONCE))
            yield from map(_document_row, page)
            if len(page) < AT_ONCE:
                return
            last = page[-1][0]

    def documents_of(self, document_ids: Iterable[str]) -> Iterator[DocumentRow]:
        """Of these documents those that some source holds, each once."""
        for some in portions(document_ids):
            rows = self._document_rows(f"d.document_id IN ({marks(some)})", [*some, -1])
            yield from map(_document_row, rows)

    def _document_rows(self, where: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._run(
            "SELECT d.document_id, d.language, d.characters, d.chunking, "
            "json_group_array(json_array(CASE s.shown WHEN '' THEN s.source ELSE s.shown END, s.title)) "
            f"FROM documents d JOIN sources s USING (document_id) WHERE {where} "
            "GROUP BY d.document_id ORDER BY d.document_id LIMIT ?",
            values,
        )

    def chunks(self, document_ids: Iterable[str]) -> dict[str, list[ChunkRow]]:
        """Chunks of each document, in order."""
        found: dict[str, list[ChunkRow]] = {document_id: [] for document_id in document_ids}
        for some in portions(found):
            rows = self._run(
                'SELECT chunk_id, document_id, start, "end", tokens, text_hash FROM chunks '
                f"WHERE document_id IN ({marks(some)}) ORDER BY document_id, ordinal",
                some,
            )
            for row in rows:
                found[row[1]].append(ChunkRow(*row))
        return found

    def chunk_count(self, document_ids: Iterable[str]) -> int:
        """Chunks of these documents that some source holds, each once."""
        held = "document_id IN (SELECT document_id FROM sources)"
        return sum(
            int(
                self._one(
                    f"SELECT count(*) FROM chunks WHERE document_id IN ({marks(some)}) AND {held}", some
                )
            )
            for some in portions(document_ids)
        )

    def counts(self) -> dict[str, int]:
        """Documents that some source holds, their chunks, and rejected inputs."""
        held = "SELECT DISTINCT document_id FROM sources"
        queries = {
            "documents": f"SELECT count(*) FROM ({held})",
            "chunks": f"SELECT count(*) FROM chunks WHERE document_id IN ({held})",
            "rejected": "SELECT count(*) FROM rejections",
        }
        return {name: int(self._one(sql)) for name, sql in queries.items()}

    def rejections(self) -> list[tuple[str, str]]:
        """(path, reason), sorted by path."""
        rows = self._run(
            "SELECT CASE shown WHEN '' THEN path ELSE shown END, reason FROM rejections ORDER BY 1"
        )
        return [(str(path), str(reason)) for path, reason in rows]


def file_of(source: str) -> str:
    """The file that a source is, or is a record of."""
    return _RECORD.sub("", source)


def _document_row(row: tuple[Any, ...]) -> DocumentRow:
    document_id, language, characters, chunking, places = row
    found = sorted((source, title) for source, title in json.loads(places))
    sources = tuple(source for source, _ in found)
    return DocumentRow(document_id, found[0][1], language, characters, chunking, sources)
