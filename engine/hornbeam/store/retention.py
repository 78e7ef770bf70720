"""Which versions stay: the newest, the promoted one and those that somebody reads. And which segments."""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from hornbeam.errors import StoreError
from hornbeam.store.disk import sync_directory
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import current_version_id, list_versions


@dataclass(slots=True)
class Pruned:
    versions: list[str] = field(default_factory=list)  # removed
    in_use: list[str] = field(default_factory=list)  # old, kept for their readers
    segments: list[str] = field(default_factory=list)  # removed
    bytes: int = 0  # freed


def prune(index: Path, ledger: Ledger, keep: int) -> Pruned:
    """Remove versions beyond the newest `keep`, never the promoted one or one that is read, and segments
    that no result lies in. The caller holds the index's `write_lock`.

    Raises:
        StoreError: a folder cannot be removed.
    """
    pruned = Pruned()
    current = current_version_id(index)
    old = list_versions(index)[:-keep]
    try:
        for version in old:
            if version.version_id != current:
                remove_version(version.directory, pruned)
        remove_segments(index / "segments", ledger.segments(), pruned)
    except OSError as error:
        raise StoreError(f"{index} cannot be pruned: {error}") from error
    return pruned


def is_in_use(directory: Path) -> bool:
    """Whether some process has the version open."""
    with (directory / "manifest.json").open("rb") as file:
        return not _locked(file.fileno())


def remove_version(directory: Path, pruned: Pruned) -> None:
    """Unless somebody reads it; `pruned` says which it was."""
    with (directory / "manifest.json").open("rb") as file:
        if not _locked(file.fileno()):
            pruned.in_use.append(directory.name)
            return
        pruned.bytes += sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
        # Out of sight at once; should the process die now, the next build clears it away.
        leaving = directory.with_name(f".building-pruned-{directory.name}-{os.getpid()}")
        directory.rename(leaving)
        sync_directory(directory.parent)
    shutil.rmtree(leaving)
    pruned.versions.append(directory.name)


def _locked(descriptor: int) -> bool:
    """An exclusive lock, unless somebody holds a shared one."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_segments(folder: Path, used: set[str], pruned: Pruned) -> None:
    """What a killed run left, and segments whose results have all been replaced or let go of."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_file() and path.name not in used:
            pruned.bytes += path.stat().st_size
            path.unlink()
            pruned.segments.append(path.name)
