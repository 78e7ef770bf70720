"""The ledger: one SQLite file that knows every document, chunk, stored result and run of an index.

Results (a document's text, a chunk's extraction, a community's summary) are kept by content-derived key. A
new result is durable as soon as `put` returns: it is committed to the journal table. When the journal has
grown it is sealed into an immutable, content-addressed Parquet segment and the rows become pointers:

    write segment → fsync → rename → fsync folder → one transaction: pointers in, journal rows out

A stop between any two of these steps leaves the journal in place and at worst a segment that nobody points
to. Readers of results look in the journal first, then in the segments.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from hornbeam.errors import StoreError

FORMAT_VERSION = 1
_JOURNAL_LIMIT = 4096
#: Rows of a segment that are read together. Results are looked up one by one, in any order.
_ROWS_PER_GROUP = 64
#: Keys looked up by one SQL statement (SQLite's own limit on parameters is far higher).
_KEYS_AT_ONCE = 500

Kind = Literal["document", "extraction", "summary"]

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS documents (
    document_id TEXT PRIMARY KEY, title TEXT NOT NULL, language TEXT NOT NULL,
    characters INTEGER NOT NULL, chunking TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sources (source TEXT PRIMARY KEY, document_id TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sources_by_document ON sources (document_id);
CREATE TABLE IF NOT EXISTS rejections (path TEXT PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS chunks (
    document_id TEXT NOT NULL, ordinal INTEGER NOT NULL, chunk_id TEXT NOT NULL,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY (document_id, ordinal)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (key TEXT PRIMARY KEY, reason TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS journal (
    kind TEXT NOT NULL, key TEXT NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sealed (
    kind TEXT NOT NULL, key TEXT NOT NULL, segment TEXT NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (
    run INTEGER NOT NULL, stage TEXT NOT NULL, calls INTEGER NOT NULL, prompt INTEGER NOT NULL,
    cached INTEGER NOT NULL, output INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (run, stage));
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY, started REAL NOT NULL, finished REAL, version TEXT, report TEXT);
"""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """Where a chunk lies; its text is the document's."""

    chunk_id: str
    document_id: str
    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class DocumentRow:
    document_id: str
    title: str
    language: str
    characters: int
    sources: tuple[str, ...]  # sorted


class Ledger:
    """Open (or create) the ledger of an index directory. Use as a context manager."""

    def __init__(self, index: Path, *, create: bool) -> None:
        self._index = index
        path = index / "ledger.sqlite"
        if not create and not path.is_file():
            raise StoreError(f"{index} is no index (no ledger.sqlite); build one with 'hornbeam index PATH --index {index}'")
        try:
            index.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_TABLES)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path} cannot be opened: {error}") from error
        stored = self.meta("format")
        if stored is None:
            self.set_meta("format", str(FORMAT_VERSION))
        elif int(stored) != FORMAT_VERSION:
            raise StoreError(
                f"{index} has format {stored}, this Hornbeam reads format {FORMAT_VERSION}; build it anew"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside become durable together, or none does. Not to be nested."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # Facts about the index as a whole

    def meta(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    # Documents and chunks

    def source_document(self, source: str) -> str | None:
        row = self._db.execute("SELECT document_id FROM sources WHERE source = ?", (source,)).fetchone()
        return None if row is None else str(row[0])

    def has_source(self, document_id: str) -> bool:
        row = self._db.execute("SELECT 1 FROM sources WHERE document_id = ? LIMIT 1", (document_id,)).fetchone()
        return row is not None

    def chunking_of(self, document_id: str) -> str | None:
        """Fingerprint of the settings that the document was chunked with; None: unknown document."""
        row = self._db.execute("SELECT chunking FROM documents WHERE document_id = ?", (document_id,)).fetchone()
        return None if row is None else str(row[0])

    def add_source(self, source: str, document_id: str) -> None:
        """A source holds one document: a changed file lets go of its old text."""
        self._db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?)", (source, document_id))
        self._db.execute("DELETE FROM rejections WHERE path = ?", (source,))

    def add_document(
        self, document_id: str, title: str, language: str, characters: int, chunking: str, chunks: Iterable[ChunkRow]
    ) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)",
            (document_id, title, language, characters, chunking),
        )
        self._db.execute("DELETE FROM chunks WHERE document_id = ?", (document_id,))
        self._db.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)",
            [(document_id, i, c.chunk_id, c.start, c.end, c.tokens) for i, c in enumerate(chunks)],
        )

    def add_rejection(self, path: str, reason: str) -> None:
        """A source that can no longer be read holds no document."""
        self._db.execute("INSERT OR REPLACE INTO rejections VALUES (?, ?)", (path, reason))
        self._db.execute("DELETE FROM sources WHERE source = ?", (path,))

    def documents(self) -> Iterator[DocumentRow]:
        """Documents that some source holds, by id."""
        rows = self._db.execute(
            "SELECT d.document_id, d.title, d.language, d.characters, json_group_array(s.source) "
            "FROM documents d JOIN sources s USING (document_id) GROUP BY d.document_id ORDER BY d.document_id"
        )
        for document_id, title, language, characters, sources in rows:
            yield DocumentRow(document_id, title, language, characters, tuple(sorted(json.loads(sources))))

    def chunks(self, document_id: str) -> list[ChunkRow]:
        rows = self._db.execute(
            'SELECT chunk_id, document_id, start, "end", tokens FROM chunks WHERE document_id = ? ORDER BY ordinal',
            (document_id,),
        )
        return [ChunkRow(*row) for row in rows]

    def counts(self) -> dict[str, int]:
        """Documents that some source holds, their chunks, and rejected inputs."""
        active = "SELECT DISTINCT document_id FROM sources"
        queries = {
            "documents": f"SELECT count(*) FROM ({active})",
            "chunks": f"SELECT count(*) FROM chunks WHERE document_id IN ({active})",
            "rejected": "SELECT count(*) FROM rejections",
        }
        return {name: int(self._db.execute(sql).fetchone()[0]) for name, sql in queries.items()}

    def rejections(self) -> list[tuple[str, str]]:
        return [(str(p), str(r)) for p, r in self._db.execute("SELECT path, reason FROM rejections ORDER BY path")]

    # Results

    def put(self, kind: Kind, key: str, payload: bytes) -> None:
        """Keep a result. Durable on return, unless inside `transaction`."""
        self._db.execute("INSERT OR REPLACE INTO journal VALUES (?, ?, ?)", (kind, key, payload))
        if kind == "extraction":
            self._db.execute("DELETE FROM failures WHERE key = ?", (key,))

    def put_failure(self, key: str, reason: str, detail: str) -> None:
        """A chunk that failed: counted, and tried again by the next run."""
        self._db.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (key, reason, detail))

    def failure(self, key: str) -> str | None:
        row = self._db.execute("SELECT reason FROM failures WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def has(self, kind: Kind, key: str) -> bool:
        for table in ("journal", "sealed"):
            if self._db.execute(f"SELECT 1 FROM {table} WHERE kind = ? AND key = ?", (kind, key)).fetchone():
                return True
        return False

    def get_many(self, kind: Kind, keys: Iterable[str]) -> dict[str, bytes]:
        """Payloads by key; a key without one is absent.

        Raises:
            StoreError: a segment that the ledger points to is missing or damaged.
        """
        wanted = list(dict.fromkeys(keys))
        found: dict[str, bytes] = {}
        places: dict[str, list[tuple[int, str]]] = {}
        for first in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[first : first + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._db.execute(
                f"SELECT key, segment, place FROM sealed WHERE kind = ? AND key IN ({marks})", (kind, *some)
            )
            for key, segment, place in rows:
                places.setdefault(segment, []).append((place, key))
            rows = self._db.execute(
                f"SELECT key, payload FROM journal WHERE kind = ? AND key IN ({marks})", (kind, *some)
            )
            found.update((key, bytes(payload)) for key, payload in rows)
        for segment, entries in sorted(places.items()):
            payloads = self._read_segment(segment, [place for place, _ in entries])
            for place, key in entries:
                found.setdefault(key, payloads[place])
        return found

    def seal(self, *, at_least: int = _JOURNAL_LIMIT) -> None:
        """Move the journal into segments, one per kind that has `at_least` rows."""
        kinds = self._db.execute("SELECT kind FROM journal GROUP BY kind HAVING count(*) >= ?", (at_least,)).fetchall()
        for (kind,) in kinds:
            rows = self._db.execute(
                "SELECT key, payload FROM journal WHERE kind = ? ORDER BY key", (kind,)
            ).fetchall()
            segment = self._write_segment(kind, rows)
            with self.transaction():
                self._db.executemany(
                    "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?)",
                    [(kind, key, segment, place) for place, (key, _) in enumerate(rows)],
                )
                self._db.executemany(
                    "DELETE FROM journal WHERE kind = ? AND key = ?", [(kind, key) for key, _ in rows]
                )

    def _write_segment(self, kind: str, rows: list[tuple[str, bytes]]) -> str:
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = self._index / "segments"
        folder.mkdir(exist_ok=True)
        digest = hashlib.sha256()
        for key, payload in rows:
            digest.update(key.encode() + len(payload).to_bytes(8, "little") + payload)
        name = f"{kind}-{digest.hexdigest()[:32]}.parquet"
        table = pa.table(
            {
                "key": pa.array([key for key, _ in rows], pa.string()),
                "payload": pa.array([payload for _, payload in rows], pa.large_binary()),
            },
            metadata={"hornbeam_format": str(FORMAT_VERSION), "kind": kind},
        )
        temporary = folder / f".{name}.{os.getpid()}"
        pq.write_table(table, temporary, compression="zstd", row_group_size=_ROWS_PER_GROUP)
        sync_file(temporary)
        temporary.rename(folder / name)
        sync_directory(folder)
        return name

    def _read_segment(self, name: str, places: list[int]) -> dict[int, bytes]:
        """Payloads at the given rows, and their neighbours."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._index / "segments" / name
        found: dict[int, bytes] = {}
        try:
            with pq.ParquetFile(path) as file:
                for group in sorted({place // _ROWS_PER_GROUP for place in places}):
                    payloads = file.read_row_group(group, columns=["payload"])["payload"].to_pylist()
                    found.update(enumerate(payloads, start=group * _ROWS_PER_GROUP))
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"segment {path} is missing or damaged: {error}") from error
        return found

    # Runs and what they cost

    def start_run(self) -> int:
        cursor = self._db.execute("INSERT INTO runs (started) VALUES (?)", (time.time(),))
        return int(cursor.lastrowid or 0)

    def add_usage(
        self, run: int, stage: str, *, calls: int = 0, prompt: int = 0, cached: int = 0, output: int = 0,
        seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self._db.execute(
            "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, stage) DO UPDATE SET "
            "calls = calls + excluded.calls, prompt = prompt + excluded.prompt, "
            "cached = cached + excluded.cached, output = output + excluded.output, "
            "seconds = seconds + excluded.seconds",
            (run, stage, calls, prompt, cached, output, seconds),
        )

    def usage(self, run: int | None = None) -> dict[str, dict[str, Any]]:
        """Calls, tokens and seconds by stage, of one run or of all."""
        rows = self._db.execute(
            "SELECT stage, sum(calls), sum(prompt), sum(cached), sum(output), sum(seconds) FROM usage "
            "WHERE ? IS NULL OR run = ? GROUP BY stage ORDER BY stage",
            (run, run),
        )
        names = ("calls", "prompt", "cached", "output", "seconds")
        return {stage: dict(zip(names, values, strict=True)) for stage, *values in rows}

    def finish_run(self, run: int, version: str | None, report: str) -> None:
        self._db.execute(
            "UPDATE runs SET finished = ?, version = ?, report = ? WHERE run = ?", (time.time(), version, report, run)
        )

    def last_report(self) -> str | None:
        row = self._db.execute(
            "SELECT report FROM runs WHERE report IS NOT NULL ORDER BY run DESC LIMIT 1"
        ).fetchone()
        return None if row is None else str(row[0])


def sync_file(path: Path) -> None:
    """Force a written file to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Force a folder's entries (new names, renames) to the disk."""
    sync_file(path)
