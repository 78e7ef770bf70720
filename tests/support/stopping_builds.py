"""Builds in child processes, stopped by a signal at a moment of their own."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

from support.interrupted_build import run_and_stop


@dataclass(frozen=True)
class Stopped:
    exit_code: int | None
    calls: int
    peak: int
    moments: int


def stop_build(
    forks: ForkServerContext,
    index: Path,
    corpus: Path | None,
    moment: str | None,
    when: str,
    number: int,
    stop_signal: signal.Signals = signal.SIGKILL,
) -> Stopped:
    """Args: corpus: to build from; None: update the index. The others: see `run_and_stop`."""
    counters = [forks.Value("i", 0) for _ in range(3)]
    process = forks.Process(
        target=run_and_stop,
        args=(index, [corpus] if corpus else [], moment, when, number, stop_signal, *counters),
    )
    process.start()
    process.join(600)
    return Stopped(process.exitcode, *(counter.value for counter in counters))
