"""Imports for tests, with vectors that need no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hornbeam.exchange.triples import read_triples
from hornbeam.importing import Import
from hornbeam.progress import Progress
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest

HASHED = Settings.model_validate({"embedder": {"kind": "hashed"}})


def import_triples(
    index: Path, *files: Path, settings: Settings = HASHED, stop: StopRequest | None = None
) -> dict[str, Any]:
    def read(path: Path, reading: Any) -> Any:
        return read_triples(path, {}, reading)

    return Import(index, settings, Progress(quiet=True), stop).run(files, read)
