"""One writer per index. Readers need no lock: what they open is never changed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hornbeam.errors import StoreError


@contextmanager
def write_lock(index: Path) -> Iterator[None]:
    """Hold the index directory (made if need be) for writing; a process that ends, however it ends, lets go.

    Raises:
        StoreError: another process holds it, or the directory cannot be written.
    """
    try:
        index.mkdir(parents=True, exist_ok=True)
        file = (index / ".lock").open("a+")
    except OSError as error:
        raise StoreError(f"{index} cannot be written: {error.strerror or error}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise StoreError(
                f"{index} is being written by another process (pid {holder}); wait for it to end"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
