"""Amounts of bytes: on disks, of files, and as people read them."""

from __future__ import annotations

import shutil
from pathlib import Path

GIB = 1 << 30


def readable_size(amount: int) -> str:
    return f"{amount / GIB:.1f} GiB" if amount >= GIB else f"{amount / (1 << 20):.0f} MiB"


def size_of(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def free_bytes(path: Path) -> int:
    """On the disk that the path lies on, or would: of the nearest folder above that is there."""
    # The cache is made at first use.
    existing = next(place for place in (path.absolute(), *path.absolute().parents) if place.is_dir())
    return shutil.disk_usage(existing).free
