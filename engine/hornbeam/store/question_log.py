"""Questions that were asked of a served index, with answers and what people thought of them.

INDEX/questions.sqlite, beside the ledger and not in it: the ledger has one writer, a build; this has any
number of servers, which only read the index. SQLite's own locks keep their writes apart.

An entry names every document whose text it may hold (its evidence), so that a purge finds what must go.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hornbeam.errors import StoreError

Rating = Literal["up", "down"]
FILE = "questions.sqlite"
_BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE IF NOT EXISTS questions (
    question_id TEXT PRIMARY KEY, asked REAL NOT NULL, client TEXT NOT NULL, version TEXT NOT NULL,
    question TEXT NOT NULL, standalone TEXT NOT NULL, engine TEXT NOT NULL, answer TEXT NOT NULL,
    outcome TEXT NOT NULL, milliseconds REAL NOT NULL, cited TEXT NOT NULL,
    rating TEXT, note TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS question_documents (
    question_id TEXT NOT NULL, document_id TEXT NOT NULL,
    PRIMARY KEY (document_id, question_id)) WITHOUT ROWID;
"""
_NAMES = (
    "question_id",
    "asked",
    "client",
    "version",
    "question",
    "standalone",
    "engine",
    "answer",
    "outcome",
    "milliseconds",
    "cited",
    "rating",
    "note",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and how it ended."""

    question_id: str
    asked: float  # Unix seconds
    client: str  # a key's id, or an address
    version: str  # that answered
    question: str
    standalone: str  # as it was understood
    engine: str
    answer: str
    outcome: str  # answered, rejected, out of time
    milliseconds: float
    cited: tuple[str, ...]  # documents of its citations, by source, in the order of the answer
    documents: frozenset[str] = field(default_factory=frozenset)  # ids: of all its evidence
    rating: Rating | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "question_id": self.question_id,
            "asked": self.asked,
            "client": self.client,
            "version": self.version,
            "question": self.question,
            "standalone": self.standalone,
            "engine": self.engine,
            "answer": self.answer,
            "outcome": self.outcome,
            "milliseconds": self.milliseconds,
            "cited": list(self.cited),
            "rating": self.rating,
            "note": self.note,
        }


class QuestionLog:
    """Of one index. Every call opens the file and closes it: nothing is held while nothing is written."""

    def __init__(self, index: Path) -> None:
        self._path = index / FILE

    def add(self, asked: Asked) -> None:
        """Keep it, in place of what was kept of it.

        Raises:
            StoreError: it cannot be written.
        """
        row = (
            asked.question_id,
            asked.asked,
            asked.client,
            asked.version,
            asked.question,
            asked.standalone,
            asked.engine,
            asked.answer,
            asked.outcome,
            asked.milliseconds,
            json.dumps(asked.cited, ensure_ascii=False),
            asked.rating,
            asked.note,
        )
        with self._open(create=True) as connection:
            connection.execute(f"INSERT OR REPLACE INTO questions VALUES ({', '.join('?' * len(row))})", row)
            connection.executemany(
                "INSERT OR IGNORE INTO question_documents VALUES (?, ?)",
                [(asked.question_id, document) for document in sorted(asked.documents)],
            )

    def rate(self, question_id: str, client: str, rating: Rating, note: str) -> bool:
        """Whether the client had asked it."""
        if not self._path.exists():
            return False
        with self._open() as connection:
            done = connection.execute(
                "UPDATE questions SET rating = ?, note = ? WHERE question_id = ? AND client = ?",
                (rating, note, question_id, client),
            )
            return done.rowcount > 0

    def entries(self, rating: Rating | None = None, limit: int | None = None) -> list[Asked]:
        """The newest first."""
        if not self._path.exists():
            return []
        with self._open() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(_NAMES)} FROM questions WHERE ?1 IS NULL OR rating = ?1 "
                "ORDER BY asked DESC, question_id LIMIT ?2",
                (rating, -1 if limit is None else limit),
            ).fetchall()
        return [_entry(dict(zip(_NAMES, row, strict=True))) for row in rows]

    def forget(self, question_ids: Sequence[str] | None = None, before: float | None = None) -> int:
        """Erase entries, by id or by age (Unix seconds), neither: all; how many. No free page has any."""
        if not self._path.exists():
            return 0
        with self._open() as connection:
            chosen = "1"
            values: list[Any] = []
            if question_ids is not None:
                chosen, values = f"question_id IN ({', '.join('?' * len(question_ids))})", [*question_ids]
            if before is not None:
                chosen, values = f"({chosen}) AND asked < ?", [*values, before]
            return self._erase(connection, chosen, values)

    def keep_documents(self, documents: Collection[str]) -> int:
        """Erase entries that may hold text of another document; how many went."""
        if not self._path.exists():
            return 0
        with self._open() as connection:
            rows = connection.execute("SELECT DISTINCT document_id FROM question_documents")
            rows = connection.execute("SELECT DISTINCT document_id FROM question_documents")
            known = {row[0] for row in rows}
            connection.execute("CREATE TEMP TABLE gone (document_id TEXT PRIMARY KEY)")
            gone = [(document,) for document in known - set(documents)]
            connection.executemany("INSERT INTO gone VALUES (?)", gone)
            chosen = (
                "question_id IN (SELECT question_id FROM question_documents JOIN gone USING (document_id))"
            )
            return self._erase(connection, chosen, [])

    def _erase(self, connection: sqlite3.Connection, chosen: str, values: list[Any]) -> int:
        connection.execute("PRAGMA secure_delete = ON")
        done = connection.execute(f"DELETE FROM questions WHERE {chosen}", values)
        connection.execute(
            "DELETE FROM question_documents WHERE question_id NOT IN (SELECT question_id FROM questions)"
        )
        connection.commit()
        if done.rowcount:
            connection.execute("VACUUM")
        return done.rowcount

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as connection:
                if create:
                    # No journal stays beside the file: what is erased is nowhere else.
                    connection.executescript(_TABLES)
                    self._path.chmod(0o600)
                with connection:
                    yield connection
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self._path}: {error}") from error


def _entry(row: dict[str, Any]) -> Asked:
    return Asked(**row | {"cited": tuple(json.loads(row["cited"]))})


def probes_of(entries: Sequence[Asked]) -> list[dict[str, Any]]:
    """The form that `gates.probes` reads: each question once, as it stands alone, with its cited documents.

    The newest answer to a question counts. Entries that cite nothing cannot be probes and are left out.
    """
    newest: dict[str, Asked] = {}
    for entry in entries:
        newest.setdefault(entry.standalone, entry)
    return [
        {"question": entry.standalone, "documents": list(dict.fromkeys(entry.cited))}
        for entry in newest.values()
        if entry.cited
    ]
