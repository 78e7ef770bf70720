"""A version's graph in other systems' formats. Every writer streams; names and ids stand as in the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hornbeam.errors import UsageError
from hornbeam.exchange.graphml import write_graphml
from hornbeam.exchange.graphrag_tables import write_graphrag
from hornbeam.exchange.json_lines import write_json_lines
from hornbeam.exchange.neo4j_csv import write_neo4j
from hornbeam.exchange.parquet_tables import write_parquet

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

    Raises:
        UsageError: there is something at `target`, or it cannot be written.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"'{target}' exists; give a new file or an empty folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return WRITERS[form](directory, target)
    except OSError as error:
        raise UsageError(f"'{target}' cannot be written: {error.strerror or error}") from error
