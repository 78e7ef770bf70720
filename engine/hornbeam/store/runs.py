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

    def last_report(self) -> str | None:
        """Of the last run that finished."""
        rows = self._execute("SELECT report FROM runs WHERE report IS NOT NULL ORDER BY run DESC LIMIT 1", ())
        return str(rows[0][0]) if rows else None
