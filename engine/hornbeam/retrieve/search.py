"""Retrieval without a language model: routes, votes, fusion, provenance."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hornbeam.retrieve.fusion import Fused, RouteScore, chunk_votes, drop_contained, fuse
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.path_route import path_route
from hornbeam.retrieve.provenance import Provenance, provenance_of
from hornbeam.retrieve.query import Candidate, EncodedQuery, Kind, encode_query
from hornbeam.retrieve.routes import (
    chunk_bm25_route,
    chunk_dense_route,
    community_route,
    entity_route,
    triple_route,
)
from hornbeam.settings import RetrieveSettings

#: All routes by name, in the order in which they run.
ROUTES: dict[str, Callable[[KnowledgeBase, EncodedQuery, RetrieveSettings], list[Candidate]]] = {
    "entity": entity_route,
    "triple": triple_route,
    "community": community_route,
    "path": path_route,
    "chunk_dense": chunk_dense_route,
    "chunk_bm25": chunk_bm25_route,
}
GRAPH_ROUTES = frozenset({"entity", "triple", "community", "path"})

_TABLE_OF: dict[Kind, tuple[str, str]] = {
    "entity": ("entities", "entity_id"),
    "triple": ("relations", "relation_id"),
    "path": ("relations", "relation_id"),
    "community": ("communities", "community_id"),
    "chunk": ("chunks", "chunk_id"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """A found thing as a person or a program reads it."""

    kind: Kind
    ids: list[str]  # identifiers in the kind's table; of a path its relations
    text: str
    score: float  # fused
    routes: dict[str, RouteScore]
    provenance: Provenance | None  # None: no chunk states it

    def to_json(self) -> dict[str, Any]:
        where = self.provenance
        return {
            "kind": self.kind,
            "ids": self.ids,
            "text": self.text,
            "score": self.score,
            "routes": {
                route: {"rank": place.rank, "score": place.score} for route, place in self.routes.items()
            },
            "provenance": where
            and {
                "chunk_id": where.chunk_id,
                "document_id": where.document_id,
                "source": where.source,
                "title": where.title,
                "start": where.start,
                "end": where.end,
            },
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    question: str
    items: list[Item]  # the best of all kinds
    chunks: list[Item]  # the best chunks: the fused ranking of the text alone
    ranking: list[Fused]  # everything that was found, for packing evidence
    query: EncodedQuery
    milliseconds: dict[str, float]  # by step: "encode", each route, "votes", "fuse", "describe", "total"

    def to_json(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "items": [item.to_json() for item in self.items],
            "chunks": [item.to_json() for item in self.chunks],
            "milliseconds": self.milliseconds,
        }


def search(
    kb: KnowledgeBase,
    question: str,
    settings: RetrieveSettings,
    top_k: int | None = None,
    *,
    routes: frozenset[str] = frozenset(ROUTES),
) -> SearchResult:
    """The best `top_k` (default `settings.top_k`) items and the best `top_k` chunks for a question.

    Args:
        routes: names of the routes that run; `{"chunk_dense", "chunk_bm25"}` is retrieval without a graph.
    """
    top_k = settings.top_k if top_k is None else top_k
    clock = _Clock()
    query = encode_query(kb.embedder, question)
    clock.lap("encode")
    ranked: dict[str, list[Candidate]] = {}
    for name, route in ROUTES.items():
        if name not in routes:
            continue
        if name == "path" and "entity" in ranked:
            ranked[name] = path_route(kb, query, settings, ranked["entity"])
        else:
            ranked[name] = route(kb, query, settings)
        clock.lap(name)
    for name in [name for name in ranked if name in GRAPH_ROUTES]:
        votes = chunk_votes(kb, name, ranked[name])
        if votes:
            ranked[votes[0].route] = votes
    clock.lap("votes")
    ranking = drop_contained(fuse(ranked, settings.fusion, settings.rrf_k))
    clock.lap("fuse")
    items = [describe(kb, item) for item in ranking[:top_k]]
    chunks = [describe(kb, item) for item in of_kind(ranking, "chunk")[:top_k]]
    clock.lap("describe")
    return SearchResult(question, items, chunks, ranking, query, clock.milliseconds())


def of_kind(ranking: list[Fused], kind: Kind) -> list[Fused]:
    return [item for item in ranking if item.kind == kind]


def describe(kb: KnowledgeBase, item: Fused) -> Item:
    table, identifier = _TABLE_OF[item.kind]
    return Item(
        kind=item.kind,
        ids=[getattr(kb, table).text(identifier, row) for row in item.rows],
        text=text_of(kb, item),
        score=item.score,
        routes=item.routes,
        provenance=provenance_of(kb, item.kind, item.rows),
    )


def text_of(kb: KnowledgeBase, item: Fused) -> str:
    row = item.rows[0]
    match item.kind:
        case "entity":
            return kb.entity_text(row)
        case "triple":
            return kb.triple_text(row)
        case "path":
            return kb.path_text(item.nodes, item.rows)
        case "community":
            return kb.community_text(row)
        case "chunk":
            return kb.chunks.text("text", row)


class _Clock:
    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self._steps: dict[str, float] = {}

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self._steps[step], self._last = (now - self._last) * 1000, now

    def milliseconds(self) -> dict[str, float]:
        total = (time.perf_counter() - self._started) * 1000
        return {name: round(spent, 3) for name, spent in {**self._steps, "total": total}.items()}
