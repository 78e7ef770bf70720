"""Which version readers open, and which they opened before: INDEX/CURRENT and INDEX/promotions.jsonl."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from hornbeam.errors import GateRefused, StoreError
from hornbeam.store.disk import sync_directory, sync_file
from hornbeam.store.versions import Version, current_version_id, read_version

_HISTORY = "promotions.jsonl"


def promote(index: Path, version_id: str, *, back: bool = False) -> None:
    """Make a version the one that readers open; atomic.

    Args:
        back: it was promoted before, and the later ones are given up.

    Raises:
        StoreError: there is no such version.
    """
    read_version(index, version_id)
    before = current_version_id(index)
    temporary = index / f".CURRENT-{os.getpid()}"
    temporary.write_text(version_id + "\n", "utf-8")
    sync_file(temporary)
    temporary.replace(index / "CURRENT")
    sync_directory(index)
    if before != version_id:
        _remember({"version": version_id, "at": time.time(), "back": back}, index / _HISTORY)


def promote_passed(index: Path, version_id: str, *, force: bool = False) -> Version:
    """`promote`, for a person: a version that a gate refused needs `force`.

    Raises:
        GateRefused: with the gates and their figures.
    """
    version = read_version(index, version_id)
    refused = [
        f"{name} {gate['value']:.4f} (threshold {gate['threshold']})"
        for name, gate in version.manifest["gates"].items()
        if not gate["passed"]
    ]
    if refused and not force:
        raise GateRefused(
            f"{version_id} did not pass its gates: {', '.join(refused)}; --force promotes it all the same"
        )
    promote(index, version_id)
    return version


def rollback(index: Path) -> Version:
    """Promote the version that was promoted before the current one; again, the one before that.

    Raises:
        StoreError: there is none, or none that can still be read.
    """
    current = current_version_id(index)
    for version_id in reversed(_stack(index)):
        if version_id == current:
            continue
        try:
            version = read_version(index, version_id)
        except StoreError:
            continue  # pruned
        promote(index, version_id, back=True)
        return version
    raise StoreError(f"{index} has no earlier promoted version to go back to; 'hornbeam versions' lists them")


def promote_last(index: Path) -> str | None:
    """Promote the last promoted version that can be read: for an index that lost CURRENT."""
    for version_id in reversed(_stack(index)):
        try:
            promote(index, version_id)
        except StoreError:
            continue
        return version_id
    return None


def _stack(index: Path) -> list[str]:
    """The promoted versions, the current one last; what was rolled back is off it."""
    stack: list[str] = []
    for entry in _history(index / _HISTORY):
        if entry["back"] and entry["version"] in stack:
            del stack[stack.index(entry["version"]) :]
        elif entry["version"] in stack:
            stack.remove(entry["version"])
        stack.append(entry["version"])
    return stack


def _history(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
            entries.append({"version": str(entry["version"]), "back": bool(entry["back"])})
        except (ValueError, TypeError, KeyError):
            continue  # cut short by a loss of power, or damaged: the promotion itself is in CURRENT
    return entries


def _remember(entry: dict[str, Any], path: Path) -> None:
    cut_short = path.exists() and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut_short else "") + json.dumps(entry) + "\n")
    sync_file(path)
