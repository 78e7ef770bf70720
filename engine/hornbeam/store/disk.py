"""What it takes until a file survives a loss of power."""

from __future__ import annotations

import os
from pathlib import Path


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
