"""The ledger's results (a document's text, a chunk's extraction, a community's summary), by content-derived
key.

A new result is durable as soon as `put` returns, or the transaction around it ends: it is in the journal
table. When the journal has grown it is sealed into immutable, content-addressed Parquet segments and the rows
become pointers:

    write segment → fsync → rename → fsync folder → one transaction: pointers in, journal rows out

A stop between any two of these steps leaves the journal in place and at worst a segment that nobody points
to. Readers of results look in the journal first, then in the segments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Literal

from hornbeam.errors import StoreError
from hornbeam.store.database import FORMAT_VERSION, Database, marks, portions
from hornbeam.store.segments import read_segment, write_segment

#: Rows and bytes of the journal, per kind, from which it is sealed: also the size of a segment.
_JOURNAL_ROWS = 4096
_JOURNAL_BYTES = 64 << 20

Kind = Literal["document", "extraction", "proposal", "verification", "summary", "vocabulary"]

RESULT_TABLES = """
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, reason TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal (
    kind TEXT NOT NULL, key TEXT NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sealed (
    kind TEXT NOT NULL, key TEXT NOT NULL, segment TEXT NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken_over (key TEXT PRIMARY KEY, source TEXT NOT NULL) WITHOUT ROWID;
"""


class Results(Database):
    """The part of a ledger that keeps results, in its journal and in segments."""

    def __init__(self, index: Path, tables: str, *, create: bool, read_only: bool) -> None:
        super().__init__(index, tables, create=create, read_only=read_only)
        try:
            waiting = self._run("SELECT kind, count(*), sum(length(payload)) FROM journal GROUP BY kind")
        except StoreError:
            self._db.close()
            raise
        #: rows and bytes of the journal by kind; an upper bound once a row was replaced
        self._waiting = {str(kind): (int(rows), int(size)) for kind, rows, size in waiting}

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
        for some in portions(keys):
            found.update(self._run(f"SELECT key, reason FROM failures WHERE key IN ({marks(some)})", some))
        return found

    def present(self, kind: Kind, keys: Iterable[str]) -> set[str]:
        """Those of the keys that have a result."""
        found: set[str] = set()
        for some in portions(keys):
            for table in ("journal", "sealed"):
                sql = f"SELECT key FROM {table} WHERE kind = ? AND key IN ({marks(some)})"
                found.update(key for (key,) in self._run(sql, (kind, *some)))
        return found

    def marks_of(self, kind: Kind, keys: Iterable[str]) -> dict[str, str]:
        """A mark of each key's payload, which another payload does not have; a key without one is absent.
        The mark of the same payload is another one after it was sealed."""
        found: dict[str, str] = {}
        for some in portions(keys):
            wanted = f"WHERE kind = ? AND key IN ({marks(some)})"
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
        for some in portions(keys):
            wanted = f"WHERE kind = ? AND key IN ({marks(some)})"
            found.update(self._run(f"SELECT key, payload FROM journal {wanted}", (kind, *some)))
            for key, segment, place in self._run(
                f"SELECT key, segment, place FROM sealed {wanted}", (kind, *some)
            ):
                if key not in found:
                    places.setdefault(segment, {})[key] = place
        for segment, rows in sorted(places.items()):
            payloads = read_segment(self.index / "segments" / segment, rows.values())
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
        for some in portions(keys):
            sql = f"SELECT key FROM taken_over WHERE key IN ({marks(some)})"
            found.update(key for (key,) in self._run(sql, some))
        return found

    def give_back(self, keys: Iterable[str]) -> None:
        """Undo `take_over`: the keys have no result, those that they had it from keep theirs."""
        rows = [(key,) for key in keys]
        for table in ("journal", "sealed"):
            self._run_many(f"DELETE FROM {table} WHERE kind = 'extraction' AND key = ?", rows)
        self._run_many("DELETE FROM taken_over WHERE key = ?", rows)

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
        segment = write_segment(self.index / "segments", kind, rows, FORMAT_VERSION)
        with self.transaction():
            self._run_many(
                "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?)",
                ((kind, key, segment, place) for place, (key, _) in enumerate(rows)),
            )
            self._run_many("DELETE FROM journal WHERE kind = ? AND key = ?", ((kind, key) for key, _ in rows))
        return True
