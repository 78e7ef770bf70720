"""The ledger: one SQLite file that knows every document, chunk, stored result and run of an index.

Results (a document's text, a chunk's extraction, a community's summary) are kept by content-derived key. A
new result is durable as soon as `put` returns, or the transaction around it ends: it is in the journal table.
When the journal has grown it is sealed into immutable, content-addressed Parquet segments and the rows become
pointers:

    write segment → fsync → rename → fsync folder → one transaction: pointers in, journal rows out

A stop between any two of these steps leaves the journal in place and at worst a segment that nobody points
to. Readers of results look in the journal first, then in the segments.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

from hornbeam.errors import StoreError
from hornbeam.store.disk import explain_disk_error
from hornbeam.store.erasure import Erasure
from hornbeam.store.places import PLACE_TABLES, Places
from hornbeam.store.runs import RUN_TABLES, Runs
from hornbeam.store.segments import read_segment, write_segment
from hornbeam.store.type_evidence import EVIDENCE_TABLES, TypeEvidence

FORMAT_VERSION = 1
#: Rows and bytes of the journal, per kind, from which it is sealed: also the size of a segment.
_JOURNAL_ROWS = 4096
_JOURNAL_BYTES = 64 << 20
#: Keys or documents looked up by one SQL statement (SQLite's own limit on parameters is far higher).
_AT_ONCE = 500
#: How long to wait for another process's transaction.
_BUSY_SECONDS = 30.0

Kind = Literal["document", "extraction", "proposal", "verification", "summary", "vocabulary"]
Decision = Literal["separate"]

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
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
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, reason TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS decisions (
    kind TEXT NOT NULL, key TEXT NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal (
    kind TEXT NOT NULL, key TEXT NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sealed (
    kind TEXT NOT NULL, key TEXT NOT NULL, segment TEXT NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken_over (key TEXT PRIMARY KEY, source TEXT NOT NULL) WITHOUT ROWID;
"""

#: Columns that came later, of texts: the tables of an older ledger get them, or are read as if they had them.
_LATER_COLUMNS = {"sources": "shown", "rejections": "shown"}

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


class Ledger:
    """Open (or create) the ledger of an index directory. Use as a context manager.

    One process writes at a time (`write_lock`); any number read.

    Args:
        read_only: change nothing, not even the tables of an older ledger: also where nothing can be written.
    """

    def __init__(self, index: Path, *, create: bool, read_only: bool = False) -> None:
        self._index = index
        #: what each run did and cost; written in the same transactions
        self.runs = Runs(self._run)
        self.types = TypeEvidence(self._run, self._run_many)
        #: the paths it is built from, its files as they were, and what was deleted from it
        self.places = Places(self._run, self._run_many)
        self.erasure = Erasure(self._run, self._run_many, index / "segments", FORMAT_VERSION)
        path = index / "ledger.sqlite"
        if not create:
            check_is_index(index)
        try:
            if read_only:
                self._db = sqlite3.connect(
                    _read_only_uri(path), uri=True, isolation_level=None, timeout=_BUSY_SECONDS
                )
            else:
                index.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS)
        except (sqlite3.Error, OSError) as error:
            raise self._error(error, "cannot be opened") from error
        try:
            if not read_only:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.executescript(_TABLES + RUN_TABLES + PLACE_TABLES + EVIDENCE_TABLES)
            self._add_later_columns(read_only=read_only)
            self._check_format()
            #: rows and bytes of the journal by kind; an upper bound once a row was replaced
            self._waiting = {
                kind: (int(rows), int(size))
                for kind, rows, size in self._db.execute(
                    "SELECT kind, count(*), sum(length(payload)) FROM journal GROUP BY kind"
                )
            }
        except sqlite3.Error as error:
            self._db.close()
            raise self._error(error, "cannot be opened") from error
        except StoreError:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _check_format(self) -> None:
        stored = self.meta("format")
        if stored is None:
            self.set_meta("format", str(FORMAT_VERSION))
        elif stored != str(FORMAT_VERSION):
            raise StoreError(
                f"{self._index} has format {stored}, "
                f"this Hornbeam reads format {FORMAT_VERSION}; build it anew "
                "with 'hornbeam index PATH… --index NEW'"
            )

    def _add_later_columns(self, *, read_only: bool) -> None:
        for table, column in _LATER_COLUMNS.items():
            there = {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}
            if column in there:
                continue
            if read_only:
                # Of this connection alone; it hides the table of its name.
                self._db.execute(f"CREATE TEMP VIEW {table} AS SELECT *, '' AS {column} FROM main.{table}")
            else:
                self._db.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")
        #: sources that an older Hornbeam wrote, known by their path as given
        self._has_old_sources = bool(self._run("SELECT 1 FROM sources WHERE shown = '' LIMIT 1"))

    def _error(self, error: Exception, what: str = "") -> StoreError:
        said = explain_disk_error(self._index, error)
        return StoreError(said or f"{self._index / 'ledger.sqlite'}{what and ' ' + what}: {error}")

    def _run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None without rows."""
        rows = self._run(sql, values)
        return rows[0][0] if rows else None

    def _run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        try:
            self._db.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._error(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside become durable together, or none does. Not to be nested."""
        self._run("BEGIN IMMEDIATE")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite itself rolls back after some errors
                self._run("ROLLBACK")
            raise

    # Facts about the index as a whole

    def meta(self, key: str) -> str | None:
        value = self._one("SELECT value FROM meta WHERE key = ?", (key,))
        return None if value is None else str(value)

    def set_meta(self, key: str, value: str) -> None:
        self._run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    # What people decided

    def decide(self, kind: Decision, key: str, payload: str) -> None:
        """Keep a decision that builds respect. Durable on return, unless inside `transaction`."""
        self._run("INSERT OR REPLACE INTO decisions VALUES (?, ?, ?)", (kind, key, payload))

    def withdraw(self, kind: Decision, key: str) -> bool:
        """Take a decision back; False where there was none."""
        return bool(self._run("DELETE FROM decisions WHERE kind = ? AND key = ? RETURNING key", (kind, key)))

    def decisions(self, kind: Decision) -> list[tuple[str, str]]:
        """(key, payload) of every decision of a kind, by key."""
        rows = self._run("SELECT key, payload FROM decisions WHERE kind = ? ORDER BY key", (kind,))
        return [(str(key), str(payload)) for key, payload in rows]

    # Documents and chunks

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
        for some in _portions(files):
            sql = f"UPDATE sources SET run = ? WHERE file IN ({_marks(some)}) RETURNING 1"
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
                (last, _AT_ONCE),
            )
            yield from page
            if len(page) < _AT_ONCE:
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
            page = self._run(
                "SELECT d.document_id, d.language, d.characters, d.chunking, "
                "json_group_array(json_array(CASE s.shown WHEN '' THEN s.source ELSE s.shown END, s.title)) "
                "FROM documents d JOIN sources s USING (document_id) WHERE d.document_id > ? "
                "GROUP BY d.document_id ORDER BY d.document_id LIMIT ?",
                (last, _AT_ONCE),
            )
            for document_id, language, characters, chunking, places in page:
                found = sorted((source, title) for source, title in json.loads(places))
                sources = tuple(source for source, _ in found)
                yield DocumentRow(document_id, found[0][1], language, characters, chunking, sources)
            if len(page) < _AT_ONCE:
                return
            last = page[-1][0]

    def chunks(self, document_ids: Iterable[str]) -> dict[str, list[ChunkRow]]:
        """Chunks of each document, in order."""
        found: dict[str, list[ChunkRow]] = {document_id: [] for document_id in document_ids}
        for some in _portions(found):
            rows = self._run(
                'SELECT chunk_id, document_id, start, "end", tokens, text_hash FROM chunks '
                f"WHERE document_id IN ({_marks(some)}) ORDER BY document_id, ordinal",
                some,
            )
            for row in rows:
                found[row[1]].append(ChunkRow(*row))
        return found

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

    # Results

    def put(self, kind: Kind, key: str, payload: bytes) -> None:
        """Keep a result, in place of an earlier one. Durable on return, unless inside `transaction`."""
        self._run("INSERT OR REPLACE INTO journal VALUES (?, ?, ?)", (kind, key, payload))
        if kind == "extraction":
            self._run("DELETE FROM taken_over WHERE key = ?", (key,))
        rows, size = self._waiting.get(kind, (0, 0))
        self._waiting[kind] = (rows + 1, size + len(payload))

    def put_failure(self, key: str, reason: str, detail: str) -> None:
        """An extraction that is to be tried again by the next run."""
        self._run("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (key, reason, detail))

    def clear_failure(self, key: str) -> None:
        self._run("DELETE FROM failures WHERE key = ?", (key,))

    def failures(self, keys: Iterable[str]) -> dict[str, str]:
        """Reasons by key, of those that failed."""
        found: dict[str, str] = {}
        for some in _portions(keys):
            found.update(self._run(f"SELECT key, reason FROM failures WHERE key IN ({_marks(some)})", some))
        return found

    def present(self, kind: Kind, keys: Iterable[str]) -> set[str]:
        """Those of the keys that have a result."""
        found: set[str] = set()
        for some in _portions(keys):
            for table in ("journal", "sealed"):
                sql = f"SELECT key FROM {table} WHERE kind = ? AND key IN ({_marks(some)})"
                found.update(key for (key,) in self._run(sql, (kind, *some)))
        return found

    def marks_of(self, kind: Kind, keys: Iterable[str]) -> dict[str, str]:
        """A mark of each key's payload, which another payload does not have; a key without one is absent.
        The mark of the same payload is another one after it was sealed."""
        found: dict[str, str] = {}
        for some in _portions(keys):
            wanted = f"WHERE kind = ? AND key IN ({_marks(some)})"
            # A segment is named after what is in it.
            found.update(
                self._run(f"SELECT key, segment || ':' || place FROM sealed {wanted}", (kind, *some))
            )
            for key, payload in self._run(f"SELECT key, payload FROM journal {wanted}", (kind, *some)):
                found[key] = hashlib.sha256(payload).hexdigest()
        return found

    def get_many(self, kind: Kind, keys: Iterable[str]) -> dict[str, bytes]:
        """Payloads by key; a key without one is absent.

        Raises:
            StoreError: a segment that the ledger points to is missing or damaged.
        """
        found: dict[str, bytes] = {}
        places: dict[str, dict[str, int]] = {}  # segment → key → row
        for some in _portions(keys):
            wanted = f"WHERE kind = ? AND key IN ({_marks(some)})"
            found.update(self._run(f"SELECT key, payload FROM journal {wanted}", (kind, *some)))
            for key, segment, place in self._run(
                f"SELECT key, segment, place FROM sealed {wanted}", (kind, *some)
            ):
                if key not in found:
                    places.setdefault(segment, {})[key] = place
        for segment, rows in sorted(places.items()):
            payloads = read_segment(self._index / "segments" / segment, rows.values())
            found.update((key, payloads[place]) for key, place in rows.items())
        return found

    def take_over(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Let an extraction's key, the first of a pair, have another's result; what is stored is shared."""
        rows = list(pairs)
        where = "WHERE kind = 'extraction' AND key = ?2"
        copied = (
            "journal SELECT kind, ?1, payload FROM journal",
            "sealed SELECT kind, ?1, segment, place FROM sealed",
        )
        for statement in copied:
            self._run_many(f"INSERT OR REPLACE INTO {statement} {where}", rows)
        self._run_many("INSERT OR REPLACE INTO taken_over VALUES (?, ?)", rows)
        waiting_rows, size = self._waiting.get("extraction", (0, 0))
        self._waiting["extraction"] = (waiting_rows + len(rows), size)

    def has_taken_over(self) -> bool:
        return bool(self._run("SELECT 1 FROM taken_over LIMIT 1"))

    def taken_over(self, keys: Iterable[str]) -> set[str]:
        """Those of the extractions' keys that have another's result."""
        found: set[str] = set()
        for some in _portions(keys):
            sql = f"SELECT key FROM taken_over WHERE key IN ({_marks(some)})"
            found.update(key for (key,) in self._run(sql, some))
        return found

    def give_back(self, keys: Iterable[str]) -> None:
        """Undo `take_over`: the keys have no result, those that they had it from keep theirs."""
        rows = [(key,) for key in keys]
        for table in ("journal", "sealed"):
            self._run_many(f"DELETE FROM {table} WHERE kind = 'extraction' AND key = ?", rows)
        self._run_many("DELETE FROM taken_over WHERE key = ?", rows)

    def integrity(self) -> str:
        """What SQLite finds wrong with the file; "" for nothing."""
        found = [str(row[0]) for row in self._run("PRAGMA integrity_check(5)")]
        return "" if found == ["ok"] else "; ".join(found)

    def forget_segment(self, segment: str) -> int:
        """Let go of the results that lie in a segment; how many."""
        rows = self._run("DELETE FROM sealed WHERE segment = ? RETURNING 1", (segment,))
        return len(rows)

    def segments(self) -> set[str]:
        """Names of the segments that results lie in."""
        return {str(name) for (name,) in self._run("SELECT DISTINCT segment FROM sealed")}

    def seal(self, *, rows: int = _JOURNAL_ROWS, size: int = _JOURNAL_BYTES) -> None:
        """Move into segments what the journal has, kind by kind, where it has `rows` rows or `size` bytes.

        Cheap when there is nothing to do. Not inside `transaction`.
        """
        for kind, (waiting_rows, waiting_size) in list(self._waiting.items()):
            if waiting_rows >= rows or waiting_size >= size:
                while self._seal_segment(kind):
                    pass
                self._waiting[kind] = (0, 0)

    def _seal_segment(self, kind: str) -> bool:
        """Seal one segment's worth; False when there was nothing."""
        rows: list[tuple[str, bytes]] = []
        size = 0
        cursor = self._db.execute("SELECT key, payload FROM journal WHERE kind = ? ORDER BY key", (kind,))
        for key, payload in islice(cursor, _JOURNAL_ROWS):
            rows.append((key, payload))
            size += len(payload)
            if size >= _JOURNAL_BYTES:
                break
        cursor.close()
        if not rows:
            return False
        segment = write_segment(self._index / "segments", kind, rows, FORMAT_VERSION)
        with self.transaction():
            self._run_many(
                "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?)",
                ((kind, key, segment, place) for place, (key, _) in enumerate(rows)),
            )
            self._run_many("DELETE FROM journal WHERE kind = ? AND key = ?", ((kind, key) for key, _ in rows))
        return True


def check_is_index(index: Path) -> None:
    """
    Raises:
        StoreError: the directory holds no ledger.
    """
    if not (index / "ledger.sqlite").is_file():
        raise StoreError(
            f"{index} is no index (no ledger.sqlite); build one with 'hornbeam index PATH --index {index}'"
        )


def _read_only_uri(path: Path) -> str:
    """Of a ledger for reading. Where its folder cannot be written, SQLite cannot make the shared memory that
    readers beside a writer need; there is no writer then, if there is no log of its writes either."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    log = path.with_name(path.name + "-wal")
    alone = not os.access(path.parent, os.W_OK) and not log.exists()
    return uri + "&immutable=1" if alone else uri


def file_of(source: str) -> str:
    """The file that a source is, or is a record of."""
    return _RECORD.sub("", source)


def _portions(keys: Iterable[str]) -> Iterator[list[str]]:
    """Distinct keys, as many as go into one statement."""
    distinct = iter(dict.fromkeys(keys))
    while some := list(islice(distinct, _AT_ONCE)):
        yield some


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))
