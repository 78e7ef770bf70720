"""What it takes until a file survives a loss of power, and what a disk's errors mean."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hornbeam.errors import HornbeamError, StoreError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: The second and third by SQLite, which calls a file that is too large an I/O error.
_SAID_WHEN_FULL = (*(os.strerror(code) for code in sorted(_FULL)), "disk is full", "disk I/O error")
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


def sync_file(path: Path) -> None:
    """Force a written file to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Force a folder's entries (new names, renames) to the disk."""
    sync_file(path)


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def explained(index: Path) -> Iterator[None]:
    """Errors of the disk and of memory inside, as one line about the index that says what to do.

    Raises:
        StoreError: no space is left, the directory cannot be written, or memory has run out.
    """
    try:
        yield
    except HornbeamError:
        raise
    except MemoryError as error:
        raise StoreError(_out_of_memory(index)) from error
    except Exception as error:
        # Libraries wrap the system's errors in classes of their own, with its text in them.
        if said := _explain(index, error):
            raise StoreError(said) from error
        raise


def is_disk_full(error: Exception) -> bool:
    """Whether no space was left, whichever library raised it."""
    return getattr(error, "errno", None) in _FULL or any(said in str(error) for said in _SAID_WHEN_FULL)


def explain_disk_error(index: Path, error: Exception) -> str | None:
    """One line for an error of the disk, whichever library raised it; None for any other."""
    text = str(error)
    number = getattr(error, "errno", None)
    if is_disk_full(error):
        return (
            f"{index}: no space left ({' '.join(text.split())}); "
            "what was finished is kept: make room and run the same command again to go on"
        )
    if number in _REFUSED or any(os.strerror(code) in text for code in _REFUSED) or "readonly" in text:
        return f"{index} cannot be written: {' '.join(text.split())}"
    return None


def _explain(index: Path, error: Exception) -> str | None:
    if "Out of Memory Error" in str(error) or "bad_alloc" in str(error):
        return _out_of_memory(index)
    return explain_disk_error(index, error)


def _out_of_memory(index: Path) -> str:
    return (
        f"{index}: memory has run out; what was finished is kept: set memory_limit_mib or extract.window "
        "lower and run the same command again to go on"
    )
