"""A damaged ledger made again: from its own rows as far as they can be read, and from the segments."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hornbeam.errors import StoreError
from hornbeam.store.disk import sync_directory
from hornbeam.store.filling import Filling
from hornbeam.store.ledger import Ledger
from hornbeam.store.segments import check_segment, segment_keys

_FILE = "ledger.sqlite"
#: The file, the log of its last writes, and what its users share.
_PARTS = (_FILE, f"{_FILE}-wal", f"{_FILE}-shm")


@dataclass(slots=True)
class Salvage:
    kept_in: Path | None  # where the damaged file is now; None: there was none
    rows: int = 0  # read from it
    cut: list[str] = field(default_factory=list)  # tables of which some rows cannot be read, or all
    results: int = 0  # found in segments


def rebuild_ledger(index: Path) -> Salvage:
    """Put a new ledger in place of a damaged or missing one; the damaged one is kept beside it.

    What only the ledger had and cannot be read any more is lost: the paths that the index was built from,
    what runs cost, which documents were deleted, results that were in no segment yet. The caller holds the
    index's `write_lock`.

    Raises:
        StoreError: the index cannot be written.
    """
    aside = _put_aside(index)
    salvage = Salvage(aside)
    with Ledger(index, create=True) as ledger, ledger.transaction():
        if aside is not None:
            _take_rows(aside / _FILE, ledger.filling, salvage)
        salvage.results = _take_segments(index / "segments", ledger.filling)
    return salvage


def _put_aside(index: Path) -> Path | None:
    there = [index / part for part in _PARTS if (index / part).exists()]
    if not there:
        return None
    number = 1
    while (aside := index / f"damaged-{number}").exists():
        number += 1
    try:
        aside.mkdir()
        for path in reversed(there):  # the ledger last: until then nothing was changed
            path.rename(aside / path.name)
        sync_directory(index)
    except OSError as error:
        raise StoreError(f"{index} cannot be written: {error.strerror or error}") from error
    return aside if (aside / _FILE).exists() else None


def _take_rows(damaged: Path, filling: Filling, salvage: Salvage) -> None:
    with closing(sqlite3.connect(damaged)) as old:
        old.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for table, columns, keys in filling.layout():
            try:
                held = {row[1] for row in old.execute(f"PRAGMA table_info({table})")}
            except sqlite3.Error:
                held = set()
            names = [column for column in columns if column in held]
            if not names:
                salvage.cut.append(table)
                continue
            quoted = ", ".join(f'"{name}"' for name in names)
            order = ", ".join(f'"{key}"' for key in keys)
            reading = _Reading()
            forward = reading.rows(old, f"SELECT {quoted} FROM {table} ORDER BY {order}")
            salvage.rows += filling.take_rows(table, names, forward)
            if reading.cut:  # what lies behind the damage is reached from the other end
                salvage.cut.append(table)
                order = ", ".join(f'"{key}" DESC' for key in keys)
                backward = reading.rows(old, f"SELECT {quoted} FROM {table} ORDER BY {order}")
                salvage.rows += filling.take_rows(table, names, backward)


class _Reading:
    """Rows until the damage."""

    def __init__(self) -> None:
        self.cut = False

    def rows(self, old: sqlite3.Connection, sql: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from old.execute(sql)
        except sqlite3.Error:
            self.cut = True


def _take_segments(folder: Path, filling: Filling) -> int:
    """Point to every result in a sound segment that nothing points to; of two with one key, the newer."""
    found = 0
    paths = [path for path in folder.glob("*.parquet") if path.is_file()] if folder.is_dir() else []
    for path in sorted(paths, key=lambda path: (-path.stat().st_mtime_ns, path.name)):
        try:
            check_segment(path)
        except StoreError:
            continue  # the audit names it
        found += filling.point_to(path.name.rpartition("-")[0], path.name, segment_keys(path))
    return found
