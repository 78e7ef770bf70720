"""Rows from elsewhere for a ledger that was made anew; part of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from hornbeam.store.ledger_part import LedgerPart

_ROWS_AT_ONCE = 1000


class Filling(LedgerPart):
    """Of an open ledger, by its writer. What the ledger has stays."""

    def layout(self) -> list[tuple[str, list[str], list[str]]]:
        """(table, its columns, those of its key in order) of every table."""
        names = self._execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
            (),
        )
        found = []
        for (name,) in names:
            columns = self._execute(f"PRAGMA table_info({name})", ())
            keys = [row[1] for row in sorted(columns, key=lambda row: int(row[5])) if row[5]]
            found.append((str(name), [str(row[1]) for row in columns], keys or ["rowid"]))
        return found

    def take_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Add rows, but for those whose key the table has; how many were added."""
        marks = ", ".join("?" * len(columns))
        named = ", ".join(f'"{column}"' for column in columns)
        before = self._count(table)
        waiting = iter(rows)
        while some := list(islice(waiting, _ROWS_AT_ONCE)):
            self._execute_many(f"INSERT OR IGNORE INTO {table} ({named}) VALUES ({marks})", some)
        return self._count(table) - before

    def point_to(self, kind: str, segment: str, keys: Sequence[str]) -> int:
        """Let results be found in a segment.

        Args:
            keys: of the segment's rows, in order.
        """
        known = {
            str(key) for (key,) in self._execute("SELECT key FROM journal WHERE kind = ?", (kind,))
        }  # what waits to be sealed is newer
        rows = [(kind, key, segment, place) for place, key in enumerate(keys) if key not in known]
        return self.take_rows("sealed", ("kind", "key", "segment", "place"), rows)

    def _count(self, table: str) -> int:
        return int(self._execute(f"SELECT count(*) FROM {table}", ())[0][0])
