"""One writer per index. Readers need no lock: what they open is never changed.

The lock is the kernel's (`flock`), so it ends with its holder, however that ends. The file's text only tells
who holds it; a text without a lock behind it is what a killed run left.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from hornbeam.errors import StoreError

_SAME_START_S = 2.0  # clocks that were set between writing and asking


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that wrote itself into the lock file."""

    pid: int
    started: float  # of the process, Unix seconds
    host: str
    command: str

    def __str__(self) -> str:
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started))
        here = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"pid {self.pid}{here}, '{self.command}', started {started}"

    def runs(self) -> bool | None:
        """None: it is another machine's, nobody here can tell. A process that only has its pid is another."""
        import psutil

        if self.host != socket.gethostname():
            return None
        try:
            started = float(psutil.Process(self.pid).create_time())
        except psutil.Error:
            return False
        return abs(started - self.started) < _SAME_START_S


@contextmanager
def write_lock(index: Path) -> Iterator[Holder | None]:
    """Hold the index directory (made if need be) for writing.

    Yields:
        who held it last and ended without letting go; None after an orderly end.

    Raises:
        StoreError: another process holds it, or the directory cannot be written.
    """
    try:
        index.mkdir(parents=True, exist_ok=True)
        file = (index / ".lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{index} cannot be written: {error.strerror or error}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(_refusal(index, _read(file))) from error
        left = _read(file)
        _write(file, json.dumps(asdict(_this_process()), ensure_ascii=False))
        try:
            yield left
        finally:
            _write(file, "")


def _refusal(index: Path, holder: Holder | None) -> str:
    if holder is None:
        return f"{index} is being written by another process; wait for it to end"
    if holder.runs() is False:
        return (
            f"{index} was being written by {holder}; that process has ended, but one that it started still "
            f"holds the index: end it ('fuser {index / '.lock'}' names it)"
        )
    return f"{index} is being written by another process ({holder}); wait for it to end"


def _this_process() -> Holder:
    import psutil

    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    return Holder(os.getpid(), psutil.Process().create_time(), socket.gethostname(), command)


def _read(file: IO[str]) -> Holder | None:
    file.seek(0)
    try:
        return Holder(**json.loads(file.read()))
    except (ValueError, TypeError):  # empty, or cut off by the end of its writer
        return None


def _write(file: IO[str], text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()
