"""The schema versions of an index: files that the user may read and edit, and which of them is accepted.

INDEX/schemas/<name>-v<N>.json   one version; never overwritten
INDEX/schemas/CURRENT            file name of the accepted one
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hornbeam.errors import StoreError
from hornbeam.schema.load import load_schema
from hornbeam.schema.model import GraphSchema
from hornbeam.store.disk import sync_directory, sync_file

_NOT_OF_A_FILE_NAME = re.compile(r"[^\w.-]+")


def accepted_schema(index: Path) -> GraphSchema | None:
    """The schema that builds of this index use; None: none was accepted.

    Raises:
        SchemaError: its file cannot be used any more.
    """
    path = accepted_file(index)
    return load_schema(str(path)) if path else None


def accepted_file(index: Path) -> Path | None:
    folder = index / "schemas"
    try:
        return folder / (folder / "CURRENT").read_text("utf-8").strip()
    except FileNotFoundError:
        return None


def accept_schema(index: Path, base: GraphSchema, schema: GraphSchema) -> Path:
    """Write a new version and make it the accepted one; the base, too, has its file from then on.

    A version that was undone and is accepted again is found and not written twice.
    """
    folder = index / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    if _file_of(index, base.hash()) is None:
        _write(folder, base)
    path = _undone_before(index, schema) or _write(folder, schema)
    _point_to(folder, path)
    return path


def _undone_before(index: Path, schema: GraphSchema) -> Path | None:
    for path, known in _files(index):
        same = known.model_copy(update={"version": schema.version})
        if same.hash() == schema.hash() and known.parent == schema.parent:
            return path
    return None


def undo_schema(index: Path) -> tuple[GraphSchema, GraphSchema]:
    """Make the accepted schema's parent the accepted one; both, the accepted one first. No file is removed.

    Raises:
        StoreError: there is nothing to undo.
    """
    schema = accepted_schema(index)
    if schema is None:
        raise StoreError(f"nothing to undo: no schema was accepted in {index}")
    if schema.parent is None:
        raise StoreError(f"nothing to undo: '{schema.name}' version {schema.version} is the first one")
    path = _file_of(index, schema.parent)
    if path is None:
        raise StoreError(
            f"the version before '{schema.name}' version {schema.version} is not in {index / 'schemas'} any "
            f"more (was it edited?); give the schema to use with 'hornbeam index --schema FILE'"
        )
    _point_to(index / "schemas", path)
    return schema, load_schema(str(path))


def next_version(index: Path, base: GraphSchema) -> int:
    """One more than the highest that the index has of that name."""
    versions = [known.version for _, known in _files(index) if known.name == base.name]
    return max([base.version, *versions]) + 1


def ancestors(index: Path, schema: GraphSchema) -> list[GraphSchema]:
    """The versions that the schema came from, its parent first, as far back as the index has them."""
    known = {each.hash(): each for _, each in _files(index)} if schema.parent else {}
    found: list[GraphSchema] = []
    parent = schema.parent
    while parent in known and known[parent] not in found:
        found.append(known[parent])
        parent = known[parent].parent
    return found


def _file_of(index: Path, schema_hash: str) -> Path | None:
    return next((path for path, known in _files(index) if known.hash() == schema_hash), None)


def _files(index: Path) -> list[tuple[Path, GraphSchema]]:
    paths = sorted((index / "schemas").glob("*.json"))
    return [(path, load_schema(str(path))) for path in paths]


def _write(folder: Path, schema: GraphSchema) -> Path:
    stem = f"{_NOT_OF_A_FILE_NAME.sub('-', schema.name).strip('-.') or 'schema'}-v{schema.version}"
    path, number = folder / f"{stem}.json", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.json"
    _replace(path, schema.to_json())
    return path


def _point_to(folder: Path, path: Path) -> None:
    _replace(folder / "CURRENT", path.name + "\n")


def _replace(path: Path, text: str) -> None:
    """All at once, and durable on return."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, "utf-8")
    sync_file(temporary)
    temporary.replace(path)
    sync_directory(path.parent)
