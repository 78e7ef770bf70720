"""The versions of an index, as a list for people and programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hornbeam.errors import StoreError
from hornbeam.store.retention import is_in_use
from hornbeam.store.versions import current_version_id, read_version


def catalogue(index: Path) -> dict[str, Any]:
    """Every version, oldest first, with what its manifest says of it; and those that cannot be read, why."""
    current = current_version_id(index)
    versions: list[dict[str, Any]] = []
    unreadable: list[dict[str, str]] = []
    for folder in sorted((index / "versions").glob("v*")):
        try:
            manifest = read_version(index, folder.name).manifest
        except StoreError as error:
            unreadable.append({"version": folder.name, "reason": str(error)})
            continue
        versions.append(
            {
                "version": folder.name,
                "current": folder.name == current,
                "created": manifest["created"],
                "parent": manifest.get("parent"),
                "counts": manifest["counts"],
                "communities": manifest["communities"]["leaf"],
                "schema": manifest["schema"],
                "model": manifest["model"]["name"],
                "embedder": manifest["embedder"]["name"],
                "refused": [name for name, gate in manifest["gates"].items() if not gate["passed"]],
                "in_use": is_in_use(folder),
                "bytes": sum(file["bytes"] for file in manifest["files"].values()),
            }
        )
    versions.sort(key=lambda entry: (entry["created"], entry["version"]))
    return {"index": str(index), "current": current, "versions": versions, "unreadable": unreadable}
