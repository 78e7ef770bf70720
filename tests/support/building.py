"""Builds for tests: a model that walks grammars, an embedder of hashed words, tables to compare."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hornbeam.build import Build, BuildReport
from hornbeam.llm.protocol import LanguageModel
from hornbeam.progress import Progress
from hornbeam.records import Retry
from hornbeam.schema import GraphSchema, load_schema
from hornbeam.settings import Settings
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

#: Everything but the communities and the documents' sources: what extraction and consolidation make.
GRAPH_TABLES = ("entities", "mentions", "relations", "relation_evidence", "attributes", "attribute_evidence")


def walking_settings(**sections: dict[str, Any]) -> Settings:
    """Small chunks and short answers; a walk of chance often runs into its limit, which gates must allow."""
    values: dict[str, dict[str, Any]] = {
        "chunk": {"max_tokens": 48, "overlap_tokens": 8},
        "extract": {"max_output_tokens": 160, "examples": 1},
        "organise": {"summary_tokens": 400},
        "gates": {"max_degraded_chunks": 1.0},
    }
    for name, section in sections.items():
        values[name] = values.get(name, {}) | section
    return Settings.model_validate(values)


def build(
    index: Path,
    paths: Sequence[Path],
    *,
    model: LanguageModel | None = None,
    schema: GraphSchema | None = None,
    settings: Settings | None = None,
    retry: Collection[Retry] = (),
) -> BuildReport:
    """One run. The model is by default a walker of long lists, fresh every time."""
    return _build(index, model, schema, settings).run(paths, retry)


def update(
    index: Path,
    paths: Sequence[Path] = (),
    *,
    model: LanguageModel | None = None,
    settings: Settings | None = None,
    options: dict[str, dict[str, Any]] | None = None,
    full: bool = False,
    allow_empty: bool = False,
) -> BuildReport:
    """Args: options: sections for `walking_settings`, in place of `settings`."""
    chosen = settings or walking_settings(**(options or {}))
    return _build(index, model, None, chosen).update(paths, full=full, allow_empty=allow_empty)


def delete(
    index: Path,
    names: Sequence[str],
    *,
    model: LanguageModel | None = None,
    settings: Settings | None = None,
    full: bool = False,
    allow_empty: bool = False,
) -> BuildReport:
    return _build(index, model, None, settings).delete(names, full=full, allow_empty=allow_empty)


def _build(
    index: Path, model: LanguageModel | None, schema: GraphSchema | None, settings: Settings | None
) -> Build:
    return Build(
        index,
        settings or walking_settings(),
        schema or load_schema("general"),
        model or walker(),
        HashedWords(),
        Progress(quiet=True),
    )


def walker(**options: Any) -> GrammarWalker:
    return GrammarWalker(**{"closing": 0.15} | options)


def table(index: Path, version: str | None, name: str) -> list[dict[str, Any]]:
    assert version is not None
    rows: list[dict[str, Any]] = pq.read_table(
        index / "versions" / version / "tables" / f"{name}.parquet"
    ).to_pylist()
    return rows


def table_bytes(index: Path, version: str | None, names: Sequence[str] = GRAPH_TABLES) -> dict[str, bytes]:
    assert version is not None
    return {
        name: (index / "versions" / version / "tables" / f"{name}.parquet").read_bytes() for name in names
    }
