"""Proposed types in the ledger: what was proposed, and in which texts each was seen."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hornbeam.store.ledger_part import LedgerPart

EVIDENCE_TABLES = """
CREATE TABLE IF NOT EXISTS type_traces (
    kind TEXT NOT NULL, name TEXT NOT NULL, names TEXT NOT NULL, surfaces TEXT NOT NULL,
    PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS type_evidence (
    kind TEXT NOT NULL, name TEXT NOT NULL, text_hash TEXT NOT NULL,
    PRIMARY KEY (kind, name, text_hash)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS proposals (schema TEXT NOT NULL, proposal TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class TypeTraces:
    """By what a type may be recognised in a text."""

    kind: str
    name: str
    names: tuple[str, ...]  # all that it was called
    surfaces: tuple[str, ...]  # what was said to be of it, the most frequent


class TypeEvidence(LedgerPart):
    """The proposals in an open ledger."""

    def replace_proposals(self, schema: str, proposals: Iterable[str]) -> None:
        """What is proposed to a schema now; both as JSON."""
        self._execute("DELETE FROM proposals", ())
        self._execute_many("INSERT INTO proposals VALUES (?, ?)", ((schema, text) for text in proposals))

    def proposals(self) -> tuple[str, list[str]] | None:
        """The schema and the proposals, in the order in which they came; None: nothing is proposed."""
        rows = self._execute("SELECT schema, proposal FROM proposals ORDER BY rowid", ())
        return (str(rows[0][0]), [str(proposal) for _, proposal in rows]) if rows else None

    def keep(self, traces: TypeTraces, text_hashes: Iterable[str]) -> None:
        """In place of what was known of that type. Types that are not proposed again keep theirs: an accepted
        one is asked for by the next build."""
        key = (traces.kind, traces.name)
        self._execute(
            "INSERT OR REPLACE INTO type_traces VALUES (?, ?, ?, ?)",
            (*key, _as_json(traces.names), _as_json(traces.surfaces)),
        )
        self._execute("DELETE FROM type_evidence WHERE kind = ? AND name = ?", key)
        self._execute_many(
            "INSERT INTO type_evidence VALUES (?, ?, ?)", ((*key, text_hash) for text_hash in text_hashes)
        )

    def traces(self, kind: str, name: str) -> TypeTraces:
        """Of a type that was never proposed: its own name alone."""
        rows = self._execute(
            "SELECT names, surfaces FROM type_traces WHERE kind = ? AND name = ?", (kind, name)
        )
        names, surfaces = rows[0] if rows else ("[]", "[]")
        return TypeTraces(
            kind, name, tuple(dict.fromkeys((name, *json.loads(names)))), tuple(json.loads(surfaces))
        )

    def text_hashes(self, kind: str, name: str, most: int) -> list[str]:
        """Of texts in which the type was seen, the lowest."""
        rows = self._execute(
            "SELECT text_hash FROM type_evidence WHERE kind = ? AND name = ? ORDER BY text_hash LIMIT ?",
            (kind, name, most),
        )
        return [str(text_hash) for (text_hash,) in rows]

    def seen_in(self, kind: str, name: str, text_hashes: Collection[str]) -> set[str]:
        """Those of the texts in which the type was seen. At most some hundred at once."""
        marks = ",".join("?" * len(text_hashes))
        rows = self._execute(
            f"SELECT text_hash FROM type_evidence WHERE kind = ? AND name = ? AND text_hash IN ({marks})",
            (kind, name, *text_hashes),
        )
        return {str(text_hash) for (text_hash,) in rows}


def _as_json(names: Sequence[str]) -> str:
    return json.dumps(list(names), ensure_ascii=False)
