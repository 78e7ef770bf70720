"""The runs over an index: when, what each stage cost, and the report at the end; part of the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

RUN_TABLES = """
CREATE TABLE IF NOT EXISTS usage (
    run INTEGER NOT NULL, stage TEXT NOT NULL, calls INTEGER NOT NULL, prompt INTEGER NOT NULL,
    cached INTEGER NOT NULL, output INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (run, stage));
CREATE TABLE IF NOT EXISTS document_usage (
    document_id TEXT NOT NULL, stage TEXT NOT NULL, run INTEGER NOT NULL, calls INTEGER NOT NULL,
    prompt INTEGER NOT NULL, cached INTEGER NOT NULL, output INTEGER NOT NULL,
    PRIMARY KEY (document_id, stage, run)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_energy (run INTEGER PRIMARY KEY, joules REAL NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY, started REAL NOT NULL, finished REAL, version TEXT, report TEXT);
"""


class Runs:
    """The runs in an open ledger.

    Args:
        execute: a statement and its values → the rows; the ledger's own, so that its transactions hold.
    """

    def __init__(self, execute: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]) -> None:
        self._execute = execute

    def start(self) -> int:
        """A new run, by its number."""
        ((run,),) = self._execute("INSERT INTO runs (started) VALUES (?) RETURNING run", (time.time(),))
        return int(run)

    def add_usage(
        self,
        run: int,
        stage: str,
        *,
        calls: int = 0,
        prompt: int = 0,
        cached: int = 0,
        output: int = 0,
        seconds: float = 0.0,
    ) -> None:
        self._execute(
            "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, stage) DO UPDATE SET "
            "calls = calls + excluded.calls, prompt = prompt + excluded.prompt, "
            "cached = cached + excluded.cached, output = output + excluded.output, "
            "seconds = seconds + excluded.seconds",
            (run, stage, calls, prompt, cached, output, seconds),
        )

    def add_document_usage(
        self,
        run: int,
        document_id: str,
        stage: str,
        *,
        calls: int = 0,
        prompt: int = 0,
        cached: int = 0,
        output: int = 0,
    ) -> None:
        """Of a document alone; `add_usage` has it among its sums."""
        self._execute(
            "INSERT INTO document_usage VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "calls = calls + excluded.calls, prompt = prompt + excluded.prompt, "
            "cached = cached + excluded.cached, output = output + excluded.output",
            (document_id, stage, run, calls, prompt, cached, output),
        )

    def add_energy(self, run: int, joules: float) -> None:
        self._execute("INSERT OR REPLACE INTO run_energy VALUES (?, ?)", (run, joules))

    def energy(self) -> float | None:
        """Joules of all runs; None: of none it is known."""
        if not self._has("run_energy"):
            return None
        ((joules,),) = self._execute("SELECT sum(joules) FROM run_energy", ())
        return None if joules is None else float(joules)

    def dearest_documents(self, most: int) -> list[dict[str, Any]]:
        """The documents that took most tokens over all runs, with their stages."""
        if not self._has("document_usage"):
            return []
        rows = self._execute(
            "SELECT document_id, stage, sum(calls), sum(prompt), sum(cached), sum(output) "
            "FROM document_usage WHERE document_id IN ("
            "SELECT document_id FROM document_usage GROUP BY document_id "
            "ORDER BY sum(prompt) + sum(output) DESC, document_id LIMIT ?) "
            "GROUP BY document_id, stage ORDER BY document_id, stage",
            (most,),
        )
        found: dict[str, dict[str, Any]] = {}
        for document_id, stage, *values in rows:
            counts = dict(zip(("calls", "prompt", "cached", "output"), values, strict=True))
            entry = found.setdefault(document_id, {"document_id": document_id, "tokens": 0, "stages": {}})
            entry["stages"][stage] = counts
            entry["tokens"] += counts["prompt"] + counts["output"]
        return sorted(found.values(), key=lambda entry: (-entry["tokens"], entry["document_id"]))

    def versions(self) -> list[dict[str, Any]]:
        """What the runs up to each version cost since the one before: runs that were stopped count for the
        version that came of them."""
        rows = self._execute(
            "SELECT version, count(DISTINCT r.run), coalesce(sum(calls), 0), coalesce(sum(prompt), 0), "
            "coalesce(sum(cached), 0), coalesce(sum(output), 0), coalesce(sum(seconds), 0) FROM ("
            "SELECT run, (SELECT l.version FROM runs l WHERE l.run >= o.run AND l.version IS NOT NULL "
            "ORDER BY l.run LIMIT 1) AS version, run AS number FROM runs o) r "
            "LEFT JOIN usage u ON u.run = r.run WHERE version IS NOT NULL "
            "GROUP BY version ORDER BY min(number)",
            (),
        )
        names = ("version", "runs", "calls", "prompt", "cached", "output", "seconds")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _has(self, table: str) -> bool:
        """An older ledger, opened to be read, may lack a table."""
        return bool(self._execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))

    def usage(self, run: int | None = None) -> dict[str, dict[str, Any]]:
        """Calls, tokens and seconds by stage, of one run or of all."""
        rows = self._execute(
            "SELECT stage, sum(calls), sum(prompt), sum(cached), sum(output), sum(seconds) FROM usage "
            "WHERE ?1 IS NULL OR run = ?1 GROUP BY stage ORDER BY stage",
            (run,),
        )
        names = ("calls", "prompt", "cached", "output", "seconds")
        return {stage: dict(zip(names, values, strict=True)) for stage, *values in rows}

    def finish(self, run: int, version: str | None, report: str) -> None:
        self._execute(
            "UPDATE runs SET finished = ?, version = ?, report = ? WHERE run = ?",
            (time.time(), version, report, run),
        )

    def made_last(self, version: str) -> bool:
        """Whether the last run that was started has finished with this version."""
        rows = self._execute("SELECT version FROM runs ORDER BY run DESC LIMIT 1", ())
        return bool(rows) and rows[0][0] == version

    def any(self) -> bool:
        return bool(self._execute("SELECT 1 FROM runs LIMIT 1", ()))

    def last_report(self) -> str | None:
        """Of the last run that finished."""
        rows = self._execute("SELECT report FROM runs WHERE report IS NOT NULL ORDER BY run DESC LIMIT 1", ())
        return str(rows[0][0]) if rows else None
