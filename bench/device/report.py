"""The table of a device check, and its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    outcome: str
    """pass, fail or skip"""
    detail: str
    seconds: float | None = None
    floor_seconds: float | None = None
    cpu_seconds: float | None = None


def table(rows: Sequence[Row], heading: str) -> str:
    """The rows as text."""
    lines = [heading, ""]
    lines.append(f"{'check':36} {'':5} {'device s':>9} {'floor s':>9} {'×':>7} {'cpu s':>8}  detail")
    for row in rows:
        ratio = row.seconds / row.floor_seconds if row.seconds and row.floor_seconds else None
        cells = (number(row.seconds, 9, 5), number(row.floor_seconds, 9, 6), number(ratio, 7, 0))
        lines.append(
            f"{row.name:36} {row.outcome.upper():5} {' '.join(cells)} {number(row.cpu_seconds, 8, 3)}"
            f"  {row.detail}"
        )
    outcomes = [row.outcome for row in rows]
    lines += ["", ", ".join(f"{outcomes.count(word)} {word}" for word in ("pass", "fail", "skip"))]
    return "\n".join(lines)


def number(value: float | None, width: int, decimals: int) -> str:
    """Right-aligned, or a dash."""
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.{decimals}f}"


def exit_code(rows: Sequence[Row]) -> int:
    """0 when something passed and nothing failed; a table of skips has shown nothing, and is 1."""
    outcomes = {row.outcome for row in rows}
    return 0 if "pass" in outcomes and "fail" not in outcomes else 1
