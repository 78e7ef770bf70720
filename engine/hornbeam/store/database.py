"""The ledger's file: an SQLite database that is opened, brought up to this Hornbeam's tables, and written in
transactions. What its tables mean is in `documents`, `results`, `runs`, `places` and `type_evidence`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Self

from hornbeam.errors import StoreError
from hornbeam.store.damage import repair_hint
from hornbeam.store.disk import explain_disk_error

FORMAT_VERSION = 1
#: Keys or documents looked up by one SQL statement (SQLite's own limit on parameters is far higher).
AT_ONCE = 500
#: How long to wait for another process's transaction.
_BUSY_SECONDS = 30.0

_META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);"

#: Columns that came later, of texts: the tables of an older ledger get them, or are read as if they had them.
_LATER_COLUMNS = {"sources": "shown", "rejections": "shown"}

#: What SQLite says of a file that is not as it wrote it.
_DAMAGED = ("malformed", "not a database", "no such table", "no such column", "file is encrypted")


class Database:
    """The open file of an index directory. Use as a context manager.

    Args:
        tables: statements that make those that are missing.
        create: make the directory and the file where there are none.
        read_only: change nothing, not even the tables of an older ledger: also where nothing can be written.

    Raises:
        StoreError: there is none, it is damaged, of another format, or cannot be opened.
    """

    def __init__(self, index: Path, tables: str, *, create: bool, read_only: bool) -> None:
        self.index = index
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
                self._db.executescript(_META + tables)
            self._add_later_columns(read_only=read_only)
            self._check_format()
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
                f"{self.index} has format {stored}, "
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
        if said := explain_disk_error(self.index, error):
            return StoreError(said)
        path = self.index / "ledger.sqlite"
        if isinstance(error, sqlite3.DatabaseError) and any(told in str(error) for told in _DAMAGED):
            return StoreError(
                f"{path} is damaged ({error}); {repair_hint(self.index)}: it saves what can be read and "
                "finds the stored results again; searches and questions need no ledger"
            )
        return StoreError(f"{path}{what and ' ' + what}: {error}")

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

    def meta(self, key: str) -> str | None:
        value = self._one("SELECT value FROM meta WHERE key = ?", (key,))
        return None if value is None else str(value)

    def set_meta(self, key: str, value: str) -> None:
        self._run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def integrity(self) -> str:
        """What SQLite finds wrong with the file; "" for nothing."""
        found = [str(row[0]) for row in self._run("PRAGMA integrity_check(5)")]
        return "" if found == ["ok"] else "; ".join(found)


def check_is_index(index: Path) -> None:
    """
    Raises:
        StoreError: the directory holds no ledger.
    """
    if not (index / "ledger.sqlite").is_file():
        if has_remains(index):
            raise StoreError(
                f"{index / 'ledger.sqlite'} is missing; {repair_hint(index)}: it finds the stored results "
                "again; searches and questions need no ledger"
            )
        raise StoreError(
            f"{index} is no index (no ledger.sqlite); build one with 'hornbeam index PATH --index {index}'"
        )


def has_remains(index: Path) -> bool:
    """Whether the directory was an index that has lost its ledger."""
    return any((index / name).is_dir() for name in ("versions", "segments"))


def _read_only_uri(path: Path) -> str:
    """Of a ledger for reading. Where its folder cannot be written, SQLite cannot make the shared memory that
    readers beside a writer need; there is no writer then, if there is no log of its writes either."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    log = path.with_name(path.name + "-wal")
    alone = not os.access(path.parent, os.W_OK) and not log.exists()
    return uri + "&immutable=1" if alone else uri


def portions(keys: Iterable[str]) -> Iterator[list[str]]:
    """Distinct keys, as many as go into one statement."""
    distinct = iter(dict.fromkeys(keys))
    while some := list(islice(distinct, AT_ONCE)):
        yield some


def marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))
