"""The tables themselves, with their schema."""

from __future__ import annotations

import shutil
from pathlib import Path


def write_parquet(directory: Path, target: Path) -> list[Path]:
    """`tables/*.parquet` and `schema.json` of the version."""
    target.mkdir(exist_ok=True)
    sources = [*sorted((directory / "tables").glob("*.parquet")), directory / "schema.json"]
    return [Path(shutil.copyfile(source, target / source.name)) for source in sources]
