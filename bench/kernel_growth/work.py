"""What a measurement works on and what it is: shared by the kernels and by what they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Inputs:
    """The arrays of one size, mapped from disk."""

    folder: Path

    def load(self, name: str) -> Any:
        """The array of that name, mapped read-only; `FileNotFoundError` where nothing has written it."""
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    def save(self, name: str, array: Any) -> None:
        np.save(self.folder / f"{name}.npy", array)

    @property
    def n(self) -> int:
        return len(self.load("labels"))

    @property
    def triples(self) -> tuple[Any, Any, Any]:
        return self.load("heads"), self.load("relations"), self.load("tails")


@dataclass(frozen=True)
class Work:
    """One measurement, ready to start: what it reads is at hand, its libraries are loaded."""

    run: Callable[[], Any]
    """What is timed."""
    report: Callable[[Any], dict[str, Any]] = lambda _result: {}
    """More about the result, and what later measurements need of it written to disk; not timed."""
    operations: int = 1
    """`run` does this many of what the time is given for."""


class NotInstalledError(Exception):
    """A library that is compared with is not importable; the message says how to get it."""
