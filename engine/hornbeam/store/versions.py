"""Immutable versions of a graph: written aside and published by one rename.

INDEX/versions/.building-<pid>/   being written; never read
INDEX/versions/<id>/              complete; never changed
INDEX/CURRENT                     id of the version that readers open (`promotions`)
"""

from __future__ import annotations

import difflib
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from hornbeam.errors import StoreError, UnknownVersion
from hornbeam.store.damage import repair_hint
from hornbeam.store.disk import file_checksum, sync_directory, sync_file
from hornbeam.store.ledger import FORMAT_VERSION

_VERSION_ID = re.compile(r"v[0-9a-f]{16}")
#: Versions that a refusal names, at most.
_NAMED = 3


class Pin:
    """A shared lock on a version's manifest: while it is held, by any process, the version is not pruned."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def release(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class Version:
    version_id: str
    directory: Path
    manifest: dict[str, Any]
    pin: Pin | None = field(default=None, compare=False, repr=False)  # keeps it from being pruned


class _Manifest(dict[str, Any]):
    """A manifest as it was read: a field that is not there is a damage to it."""

    def __init__(self, fields: dict[str, Any], index: Path, path: Path) -> None:
        super().__init__(fields)
        self._index, self._path = index, path

    def __missing__(self, field: str) -> Any:
        raise StoreError(_lost_manifest(self._index, self._path, f"damaged (it has no '{field}')"))


def begin_version(index: Path) -> Path:
    """An empty folder to write a version into. What a killed build left is removed: the caller holds the
    index's `write_lock`, so nobody else is building."""
    versions = index / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    for left in versions.glob(".building-*"):
        shutil.rmtree(left)
    building = versions / f".building-{os.getpid()}"
    (building / "tables").mkdir(parents=True)
    return building


def version_identity(building: Path, *, inputs: str) -> str:
    """The id: a hash of the tables and of everything else that readers can observe through `inputs`."""
    digest = hashlib.sha256(inputs.encode())
    for path in sorted((building / "tables").iterdir()):
        digest.update(f"{path.name}:{file_checksum(path)}".encode())
    return f"v{digest.hexdigest()[:16]}"


def publish_version(index: Path, building: Path, version_id: str, manifest: dict[str, Any]) -> Version:
    """Write the manifest, force everything to disk and give the folder its name.

    A version of the same id has the same content, so it is kept and the new copy dropped; unless it cannot be
    read, when the new one takes its place.
    """
    files = {
        str(path.relative_to(building)): {"bytes": path.stat().st_size, "sha256": file_checksum(path)}
        for path in sorted(building.rglob("*"))
        if path.is_file()
    }
    manifest = {"format": FORMAT_VERSION, "version": version_id, **manifest, "files": files}
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (building / "manifest.json").write_text(text, "utf-8")
    for path in building.rglob("*"):
        sync_file(path)
    sync_file(building)
    target = index / "versions" / version_id
    if target.exists() and _is_readable(index, version_id):
        shutil.rmtree(building)
    else:
        if target.exists():
            # Under a name that the next build clears away, should this one not come to it.
            damaged = building.with_name(f".building-damaged-{os.getpid()}")
            target.rename(damaged)
            building.rename(target)
            shutil.rmtree(damaged)
        else:
            building.rename(target)
    sync_directory(index / "versions")
    return read_version(index, version_id)


def rewrite_files(version: Version, names: Iterable[str]) -> None:
    """Renew what the manifest says of files that were made again; atomic."""
    files = dict(version.manifest["files"])
    for name in names:
        path = version.directory / name
        if path.is_file():
            files[name] = {"bytes": path.stat().st_size, "sha256": file_checksum(path)}
    manifest = version.manifest | {"files": files}
    temporary = version.directory / f".manifest-{os.getpid()}"
    temporary.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", "utf-8")
    sync_file(temporary)
    temporary.replace(version.directory / "manifest.json")
    sync_directory(version.directory)


def _is_readable(index: Path, version_id: str) -> bool:
    try:
        read_version(index, version_id)
    except StoreError:
        return False
    return True


def current_version_id(index: Path) -> str | None:
    try:
        return (index / "CURRENT").read_text("utf-8", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_version(index: Path, version_id: str) -> Version:
    """
    Raises:
        UnknownVersion: there is no such version; those that are likest are named.
        StoreError: its manifest cannot be read, or is of another format.
    """
    directory = index / "versions" / version_id
    if not _VERSION_ID.fullmatch(version_id) or not directory.is_dir():  # a path would lead out of the index
        raise UnknownVersion(_unknown(index, version_id))
    path = directory / "manifest.json"
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except PermissionError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise StoreError(
            _lost_manifest(index, path, "missing" if missing else f"damaged ({error})")
        ) from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise StoreError(_lost_manifest(index, path, "damaged (it is no manifest)"))
    if manifest["format"] != FORMAT_VERSION:
        raise StoreError(
            f"version {version_id} of {index} has format {manifest['format']}, "
            f"this Hornbeam reads format {FORMAT_VERSION}; build it anew "
            "with 'hornbeam index PATH… --index NEW'"
        )
    return Version(version_id, directory, _Manifest(manifest, index, path))


def _unknown(index: Path, version_id: str) -> str:
    known = sorted(path.name for path in (index / "versions").glob("v*"))
    if not known:
        return f"{index} has no version '{version_id}': it has none"
    near = difflib.get_close_matches(version_id, known, _NAMED, cutoff=0.5)
    if near:
        return f"{index} has no version '{version_id}'; did you mean {' or '.join(near)}?"
    shown = f"it has {', '.join(known[:_NAMED])}" + (" and others" if len(known) > _NAMED else "")
    return f"{index} has no version '{version_id}'; {shown} ('hornbeam versions --index {index}' lists them)"


def _lost_manifest(index: Path, path: Path, problem: str) -> str:
    return (
        f"{path} is {problem}: {repair_hint(index)} to go back to the version before, or 'hornbeam index' on "
        "the same documents, which makes this version again from the stored results"
    )


def open_current(index: Path) -> Version:
    """The promoted version.

    Raises:
        StoreError: the index has none.
    """
    version_id = current_version_id(index)
    if version_id is None:
        if list_versions(index):
            raise StoreError(
                f"{index} has no current version: no build passed its gates; run 'hornbeam index' to see them"
            )
        detail = "no build was finished yet" if (index / "ledger.sqlite").is_file() else "it is no index"
        raise StoreError(
            f"{index} has no current version ({detail}); run 'hornbeam index PATH --index {index}'"
        )
    try:
        return read_version(index, version_id)
    except UnknownVersion as error:  # nobody typed it
        raise StoreError(lost_current(index, version_id)) from error


def lost_current(index: Path, version_id: str) -> str:
    """What to say where CURRENT names a version that is not there."""
    is_id = _VERSION_ID.fullmatch(version_id)
    problem = (
        f"names version {version_id}, which is not there" if is_id else "is damaged: it names no version"
    )
    return f"{index / 'CURRENT'} {problem}; {repair_hint(index)} to promote the last one that is there"


def open_pinned(index: Path) -> Version:
    """The promoted version, kept from being pruned for as long as the result or its `pin` lives.

    Raises:
        StoreError: the index has none.
    """
    while True:
        version = open_current(index)
        path = version.directory / "manifest.json"
        try:
            file = path.open("rb")
            fcntl.flock(file, fcntl.LOCK_SH)
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return replace(version, pin=Pin(file))
        except FileNotFoundError:
            pass  # pruned between two steps: another version is promoted by now
        else:
            file.close()


def list_versions(index: Path) -> list[Version]:
    """The complete versions that this Hornbeam can read, oldest first."""
    found = []
    for path in (index / "versions").glob("v*/manifest.json"):
        try:
            found.append(read_version(index, path.parent.name))
        except StoreError:
            continue  # of another format, or damaged
    return sorted(found, key=lambda version: (version.manifest.get("created", 0.0), version.version_id))
