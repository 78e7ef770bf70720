"""A version's graph in other systems' formats. Every writer streams; names and ids stand as in the tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hornbeam.errors import StoreError, UsageError
from hornbeam.exchange.graphml import write_graphml
from hornbeam.exchange.graphrag_tables import write_graphrag
from hornbeam.exchange.json_lines import write_json_lines
from hornbeam.exchange.neo4j_csv import write_neo4j
from hornbeam.exchange.parquet_tables import write_parquet
from hornbeam.store.damage import index_of
from hornbeam.store.disk import is_disk_full

#: (directory of the version, where to write) → the files written
Writer = Callable[[Path, Path], list[Path]]

WRITERS: dict[str, Writer] = {
    "parquet": write_parquet,
    "graphml": write_graphml,
    "neo4j-csv": write_neo4j,
    "jsonl": write_json_lines,
    "graphrag": write_graphrag,
}


def export_version(directory: Path, form: str, target: Path) -> list[Path]:
    """Write a version as `form` to `target`: a file for graphml and jsonl, a new folder for the others.

    It appears there when it is whole; nothing is left of an export that failed or was stopped.

    Raises:
        UsageError: there is something at `target`, it is inside the index, or it cannot be written.
        StoreError: no space is left.
    """
    index = index_of(directory / "tables")
    if target.resolve().is_relative_to(index.resolve()):
        raise UsageError(f"'{target}' is inside the index {index}; give a place outside of it")
    there = next(place for place in target.absolute().parents if os.path.lexists(place))
    if not there.is_dir():
        raise UsageError(f"'{target}' cannot be written: '{there}' is no folder")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"'{target}' exists; give a new file or an empty folder")
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        written = WRITERS[form](directory, partial)
        partial.replace(target)
    except BaseException as error:
        _remove(partial)
        if isinstance(error, Exception) and is_disk_full(error):
            raise StoreError(f"'{target}': no space left; nothing was written") from error
        if isinstance(error, OSError):
            raise UsageError(f"'{target}' cannot be written: {error.strerror or error}") from error
        raise
    return [target if path == partial else target / path.relative_to(partial) for path in written]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
