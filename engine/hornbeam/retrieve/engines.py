"""Retrieval engines: named choices of routes."""

from __future__ import annotations

from hornbeam.errors import UsageError
from hornbeam.retrieve.search import ROUTES

#: The one that everything is compared with: nearest chunks, nothing else.
BASELINE = "dense"

#: engine → its routes
ENGINES: dict[str, frozenset[str]] = {
    BASELINE: frozenset({"chunk_dense"}),
    "bm25": frozenset({"chunk_bm25"}),
    "naive": frozenset({"chunk_dense", "chunk_bm25"}),
    "local": frozenset({"entity", "triple", "attribute", "path", "pagerank"}),
    "global": frozenset({"community", "pagerank"}),
    "mix": frozenset(ROUTES),
}


def routes_of(engine: str) -> frozenset[str]:
    """Raises UsageError, which names the engines, for another name."""
    if engine not in ENGINES:
        raise UsageError(f"no retrieval engine '{engine}': choose one of {', '.join(ENGINES)}")
    return ENGINES[engine]
