"""Where an index's documents come from: the paths it is built from, its files as they were, and what the user
deleted from it; part of the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from hornbeam.store.ledger_part import LedgerPart

PLACE_TABLES = """
CREATE TABLE IF NOT EXISTS roots (
    number INTEGER PRIMARY KEY, place TEXT NOT NULL, pattern TEXT NOT NULL, given TEXT NOT NULL,
    UNIQUE (place, pattern));
CREATE TABLE IF NOT EXISTS files (
    file TEXT PRIMARY KEY, digest TEXT NOT NULL, reading TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deleted (
    document_id TEXT NOT NULL, source TEXT NOT NULL, shown TEXT NOT NULL,
    PRIMARY KEY (document_id, source)) WITHOUT ROWID;
"""

#: In place of a source: the document was deleted wherever it lies.
ANYWHERE = ""


class Places(LedgerPart):
    """The places in an open ledger."""

    def roots(self) -> list[tuple[str, str, str]]:
        """(place, pattern, as given), in the order in which the index met them."""
        return [
            (str(place), str(pattern), str(given))
            for place, pattern, given in self._execute(
                "SELECT place, pattern, given FROM roots ORDER BY number", ()
            )
        ]

    def add_roots(self, roots: Iterable[tuple[str, str, str]]) -> None:
        """A root that is known keeps the form in which it was given first."""
        self._execute_many("INSERT OR IGNORE INTO roots (place, pattern, given) VALUES (?, ?, ?)", roots)

    def digest(self, file: str, reading: str) -> str | None:
        """Of the file's bytes when it was last read whole.

        Args:
            reading: fingerprint of how files are read now; what was read otherwise is not known.
        """
        rows = self._execute("SELECT digest FROM files WHERE file = ? AND reading = ?", (file, reading))
        return str(rows[0][0]) if rows else None

    def add_digest(self, file: str, digest: str, reading: str) -> None:
        self._execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (file, digest, reading))

    def forget_files(self, files: Iterable[str]) -> None:
        """They are read again when they are met."""
        self._execute_many("DELETE FROM files WHERE file = ?", [(file,) for file in files])

    def delete(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Remember (document id, source or `ANYWHERE`, shown), so that an update does not bring them back."""
        self._execute_many("INSERT OR IGNORE INTO deleted VALUES (?, ?, ?)", rows)

    def deleted(self) -> list[tuple[str, str, str]]:
        """(source or `ANYWHERE`, shown, document id)."""
        rows = self._execute(
            "SELECT source, shown, document_id FROM deleted ORDER BY document_id, source", ()
        )
        return [(str(source), str(shown), str(document_id)) for source, shown, document_id in rows]

    def is_deleted(self, document_id: str, source: str) -> bool:
        return bool(
            self._execute(
                "SELECT 1 FROM deleted WHERE document_id = ? AND source IN (?, ?) LIMIT 1",
                (document_id, source, ANYWHERE),
            )
        )

    def undelete(self, document_id: str, source: str) -> None:
        self._execute(
            "DELETE FROM deleted WHERE document_id = ? AND source IN (?, ?)", (document_id, source, ANYWHERE)
        )
