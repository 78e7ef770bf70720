"""Progress of long work on standard error: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self

from hornbeam.printing import printable, say
from hornbeam.progress_record import ProgressRecord, RecordedStage

_SECONDS_BETWEEN_LINES = 5.0


class Stage(Protocol):
    """One stage of the work, counted in its own unit."""

    def advance(self, steps: int = 1) -> None: ...

    def expect(self, total: int) -> None:
        """How many there are, where that was not known at first."""
        ...


class Progress:
    """Open as a context manager; `stage` may be entered any number of times, one after another.

    Args:
        record: told the same; the caller's to close.
    """

    def __init__(self, *, quiet: bool = False, record: ProgressRecord | None = None) -> None:
        self._quiet = quiet
        self.record = record
        self._live: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Live

            self._live = Live(
                TextColumn("{task.description:<24}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]:>12}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        """Args: total: None when it is not known beforehand."""
        if self._live is not None:
            shown: _LiveStage | _LineStage = _LiveStage(self._live, name, total, unit)
        else:
            shown = _LineStage(name, total, unit, quiet=self._quiet)
        stage: _LiveStage | _LineStage | _BothStages = shown
        if self.record is not None:
            stage = _BothStages(shown, self.record.stage(name, total, unit))
        yield stage
        stage.finish()

    def say(self, line: str) -> None:
        if self.record is not None:
            self.record.say(line)
        if self._quiet:
            return
        if self._live is not None:
            self._live.console.print(printable(line), highlight=False, markup=False)
        else:
            say(line, file=sys.stderr, flush=True)


class _BothStages:
    def __init__(self, shown: _LiveStage | _LineStage, recorded: RecordedStage) -> None:
        self._shown, self._recorded = shown, recorded

    def advance(self, steps: int = 1) -> None:
        self._shown.advance(steps)
        self._recorded.advance(steps)

    def expect(self, total: int) -> None:
        self._shown.expect(total)
        self._recorded.expect(total)

    def finish(self) -> None:
        self._shown.finish()
        self._recorded.finish()


class _LiveStage:
    def __init__(self, live: Any, name: str, total: int | None, unit: str) -> None:
        self._live = live
        self._unit = unit
        self._started = time.monotonic()
        self._done = 0
        self._task = live.add_task(name, total=total, rate="")

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        rate = self._done / max(1e-9, time.monotonic() - self._started)
        self._live.update(self._task, advance=steps, rate=f"{rate:.1f} {self._unit}/s")

    def expect(self, total: int) -> None:
        self._live.update(self._task, total=total)

    def finish(self) -> None:
        self._live.update(self._task, total=self._done, completed=self._done)


class _LineStage:
    def __init__(self, name: str, total: int | None, unit: str, *, quiet: bool) -> None:
        self._name = name
        self._total = total
        self._unit = unit
        self._quiet = quiet
        self._done = 0
        self._started = self._printed = time.monotonic()
        if total and not quiet:
            say(f"{name}: {total} {unit} to do", file=sys.stderr, flush=True)

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        now = time.monotonic()
        if now - self._printed >= _SECONDS_BETWEEN_LINES:
            self._printed = now
            self._print(now)

    def expect(self, total: int) -> None:
        self._total = total

    def finish(self) -> None:
        self._print(time.monotonic())

    def _print(self, now: float) -> None:
        if self._quiet:
            return
        elapsed = max(1e-9, now - self._started)
        rate = self._done / elapsed
        line = f"{self._name}: {self._done}"
        if self._total is not None:
            line += f" of {self._total}"
        line += f" {self._unit}, {rate:.1f}/s, {elapsed:.0f} s"
        if self._total is not None and rate > 0 and self._done < self._total:
            line += f", {(self._total - self._done) / rate:.0f} s left"
        say(line, file=sys.stderr, flush=True)
