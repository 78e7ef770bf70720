"""Progress as JSON lines in a file, for another program that watches a run.

    {"time": …, "stage": "extract", "unit": "chunks", "done": 120, "total": 400, "rate": 3.2, "left_s": 87.5,
     "elapsed_s": 40.1, "tokens": {…}, "cost": {…}}                        how far a stage has come
    {"time": …, "said": "extract: reusing 120 of 400 chunks"}              a remark
    {"time": …, "end": "done", "message": "", "version": "v…", …}          always the last

The last line is there however the run ended, unless it was killed.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

#: Between two lines of one stage.
_SECONDS_BETWEEN_LINES = 0.5
#: Lines of one run stay some ten thousand: the longer it has run, the longer between two, up to this.
_MOST_SECONDS_BETWEEN_LINES = 5.0
_LINES_PER_RUN_TIME = 200
#: The rate is that of so long before: what is reused goes by in a moment and says nothing of what is to come.
_RATE_SECONDS = 30.0


class ProgressRecord:
    """Use as a context manager.

    Attributes:
        spent: what the run has cost so far, e.g. tokens; asked with every line, in the run's own thread.
    """

    def __init__(self, path: Path) -> None:
        # A file name that is no text must not end the run that tells of it.
        self._file = path.open("a", encoding="utf-8", errors="replace")
        self._started = time.monotonic()
        self.spent: Callable[[], dict[str, Any]] = dict

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def stage(self, name: str, total: int | None, unit: str) -> RecordedStage:
        return RecordedStage(self, name, total, unit)

    def say(self, line: str) -> None:
        self.write({"said": line})

    def end(self, outcome: str, message: str = "", **more: Any) -> None:
        """Args: outcome: done, refused (by a gate), stopped or failed."""
        self.write({"end": outcome, "message": message, **self._costs(), **more})

    def write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps({"time": round(time.time(), 3), **line}, ensure_ascii=False) + "\n")
        self._file.flush()

    def come(self, line: dict[str, Any]) -> None:
        """A stage's line, with what the run has cost."""
        self.write(line | self._costs())

    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def _costs(self) -> dict[str, Any]:
        return {"elapsed_s": round(self.elapsed_s(), 1), **self.spent()}


class RecordedStage:
    def __init__(self, record: ProgressRecord, name: str, total: int | None, unit: str) -> None:
        self._record = record
        self._told = {"stage": name, "unit": unit}
        self._total = total
        self._done = 0
        now = time.monotonic()
        self._started = self._written = now
        self._seen: deque[tuple[float, int]] = deque([(now, 0)])
        self._write(now)

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        now = time.monotonic()
        pause = min(_MOST_SECONDS_BETWEEN_LINES, self._record.elapsed_s() / _LINES_PER_RUN_TIME)
        if now - self._written >= max(_SECONDS_BETWEEN_LINES, pause):
            self._write(now)

    def expect(self, total: int) -> None:
        """As many there are, now that it is known."""
        self._total = total

    def finish(self) -> None:
        self._write(time.monotonic(), ended=True)

    def _write(self, now: float, *, ended: bool = False) -> None:
        self._written = now
        self._seen.append((now, self._done))
        while now - self._seen[0][0] > _RATE_SECONDS and len(self._seen) > 2:
            self._seen.popleft()
        since, done = self._seen[0]
        rate = (self._done - done) / (now - since) if now > since else 0.0
        left = None
        if self._total is not None and rate > 0:
            left = round(max(0, self._total - self._done) / rate, 1)
        self._record.come(
            self._told
            | {"total": self._total, "done": self._done, "rate": round(rate, 3), "left_s": left}
            | ({"ended": True, "seconds": round(now - self._started, 1)} if ended else {})
        )
