"""Erasing from the ledger and its segments what the documents of the index do not account for.

A row that is deleted stays on the disk: in SQLite's free pages and its log, in a segment that other results
share. Here the file is written anew and so is every segment with a row that nothing points to. What the file
system keeps of files that are gone is its own matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from hornbeam.store.ledger_part import LedgerPart
from hornbeam.store.segments import read_segment, segment_rows, write_segment

#: Kinds of results whose failures are kept under the same key.
_WITH_FAILURES = ("extraction", "verification")


class Erasure(LedgerPart):
    """Of an open ledger, by its writer. Every step may be repeated after a stop.

    Args:
        execute, execute_many: as of every part.
        segments: folder of the segments.
        format_version: of segments.
    """

    def __init__(
        self,
        execute: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]],
        execute_many: Callable[[str, Iterable[Sequence[Any]]], None],
        segments: Path,
        format_version: int,
    ) -> None:
        super().__init__(execute, execute_many)
        self._segments = segments
        self._format = format_version

    def drop_documents(self) -> int:
        """Documents that no source holds, with their chunks; how many."""
        gone = "document_id NOT IN (SELECT document_id FROM sources)"
        self._execute(f"DELETE FROM chunks WHERE {gone}", ())
        return len(self._execute(f"DELETE FROM documents WHERE {gone} RETURNING 1", ()))

    def keep_results(self, kind: str, keys: Collection[str]) -> int:
        """Drop all results of a kind but these; how many went."""
        self._execute("CREATE TEMP TABLE IF NOT EXISTS held (key TEXT PRIMARY KEY) WITHOUT ROWID", ())
        self._execute("DELETE FROM held", ())
        self._execute_many("INSERT OR IGNORE INTO held VALUES (?)", ((key,) for key in keys))
        gone = "kind = ? AND key NOT IN (SELECT key FROM held)"
        dropped = sum(
            len(self._execute(f"DELETE FROM {table} WHERE {gone} RETURNING 1", (kind,)))
            for table in ("journal", "sealed")
        )
        if kind == "extraction":
            self._execute("DELETE FROM taken_over WHERE key NOT IN (SELECT key FROM held)", ())
        return dropped

    def keep_failures(self, keys: Collection[str]) -> None:
        """What was said of failures is of no other key."""
        for (key,) in self._execute("SELECT key FROM failures", ()):
            if key not in keys:
                self._execute("DELETE FROM failures WHERE key = ?", (key,))

    def keys(self, kind: str) -> list[str]:
        """Of all results of a kind."""
        sql = "SELECT key FROM journal WHERE kind = ?1 UNION SELECT key FROM sealed WHERE kind = ?1"
        return [str(key) for (key,) in self._execute(sql, (kind,))]

    def drop_proposed_types(self, text_hashes: Collection[str]) -> None:
        """Proposals and surfaces of types that were seen in other texts than these."""
        lost: set[tuple[str, str]] = set()
        for kind, name, text_hash in self._execute("SELECT kind, name, text_hash FROM type_evidence", ()):
            if text_hash not in text_hashes:
                lost.add((kind, name))
                self._execute(
                    "DELETE FROM type_evidence WHERE kind = ? AND name = ? AND text_hash = ?",
                    (kind, name, text_hash),
                )
        self._execute_many("UPDATE type_traces SET surfaces = '[]' WHERE kind = ? AND name = ?", sorted(lost))
        if lost:
            self._execute("DELETE FROM proposals", ())

    def drop_reports(self) -> None:
        """Of all runs but the last that finished: they name examples."""
        self._execute(
            "UPDATE runs SET report = NULL WHERE run < (SELECT max(run) FROM runs WHERE report IS NOT NULL)",
            (),
        )

    def worn_segments(self) -> list[str]:
        """Segments that are pointed to and have rows that are not."""
        rows = self._execute("SELECT segment, count(DISTINCT place) FROM sealed GROUP BY segment", ())
        return sorted(str(segment) for segment, held in rows if held < segment_rows(self._segments / segment))

    def rewrite_segment(self, segment: str) -> None:
        """Put what counts in a segment into a new one. Inside a transaction; remove the old file after it."""
        found = self._execute(
            "SELECT kind, key, place FROM sealed WHERE segment = ? ORDER BY key", (segment,)
        )
        payloads = read_segment(self._segments / segment, (place for _, _, place in found))
        rows = [(key, payloads[place]) for _, key, place in found]
        name = write_segment(self._segments, found[0][0], rows, self._format)
        self._execute_many(
            "UPDATE sealed SET segment = ?, place = ? WHERE kind = ? AND key = ?",
            ((name, place, kind, key) for place, (kind, key, _) in enumerate(found)),
        )

    def rewrite_ledger(self) -> bool:
        """Write the file anew, without free pages, and empty its log. Not inside a transaction.

        Returns:
            False if another process reads the log, which then stays.
        """
        self._execute("VACUUM", ())
        ((busy, _, _),) = self._execute("PRAGMA wal_checkpoint(TRUNCATE)", ())
        return not busy
