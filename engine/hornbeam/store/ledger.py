"""The ledger: one SQLite file that knows every document, chunk, stored result and run of an index."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hornbeam.store.database import FORMAT_VERSION, check_is_index, has_remains
from hornbeam.store.documents import DOCUMENT_TABLES, ChunkRow, DocumentRow, Documents, file_of
from hornbeam.store.erasure import Erasure
from hornbeam.store.filling import Filling
from hornbeam.store.places import PLACE_TABLES, Places
from hornbeam.store.results import RESULT_TABLES, Kind, Results
from hornbeam.store.runs import RUN_TABLES, Runs
from hornbeam.store.type_evidence import EVIDENCE_TABLES, TypeEvidence

__all__ = [
    "FORMAT_VERSION",
    "ChunkRow",
    "DocumentRow",
    "Kind",
    "Ledger",
    "check_is_index",
    "file_of",
    "has_remains",
]

Decision = Literal["separate"]

_DECISION_TABLE = """
CREATE TABLE IF NOT EXISTS decisions (
    kind TEXT NOT NULL, key TEXT NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
"""
_TABLES = DOCUMENT_TABLES + RESULT_TABLES + _DECISION_TABLE + RUN_TABLES + PLACE_TABLES + EVIDENCE_TABLES


class Ledger(Documents, Results):
    """Open (or create) the ledger of an index directory. Use as a context manager.

    One process writes at a time (`write_lock`); any number read.

    Args:
        read_only: change nothing, not even the tables of an older ledger: also where nothing can be written.

    Raises:
        StoreError: as `Database`.
    """

    def __init__(self, index: Path, *, create: bool, read_only: bool = False) -> None:
        super().__init__(index, _TABLES, create=create, read_only=read_only)
        #: what each run did and cost; written in the same transactions
        self.runs = Runs(self._run)
        self.types = TypeEvidence(self._run, self._run_many)
        self.places = Places(self._run, self._run_many)
        self.filling = Filling(self._run, self._run_many)
        self.erasure = Erasure(self._run, self._run_many, index / "segments", FORMAT_VERSION)

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
