"""Retrieval without a language model: routes, fusion, provenance."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hornbeam.errors import UsageError
from hornbeam.index.tokens import normalise
from hornbeam.retrieve.fusion import Fused, RouteScore, drop_contained, fuse
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.pagerank_route import pagerank_route
from hornbeam.retrieve.path_route import path_route
from hornbeam.retrieve.provenance import Provenance, provenance_of
from hornbeam.retrieve.query import AS_WRITTEN, NAME, Candidate, EncodedQuery, Kind, encode_query
from hornbeam.retrieve.relevance import relevance
from hornbeam.retrieve.reranking import rerank
from hornbeam.retrieve.routes import (
    attribute_route,
    chunk_bm25_route,
    chunk_dense_route,
    community_route,
    entity_route,
    triple_route,
)
from hornbeam.settings import RetrieveSettings

#: The routes that start from the question alone, in the order in which they run.
_FIRST: dict[str, Callable[[KnowledgeBase, EncodedQuery, RetrieveSettings], list[Candidate]]] = {
    "entity": entity_route,
    "triple": triple_route,
    "community": community_route,
    "chunk_dense": chunk_dense_route,
    "chunk_bm25": chunk_bm25_route,
}
#: All routes by name. Attributes and paths start from the entities that were found, PageRank from the facts
#: and chunks.
ROUTES = (*_FIRST, "attribute", "path", "pagerank")

_TABLE_OF: dict[Kind, tuple[str, str]] = {
    "entity": ("entities", "entity_id"),
    "triple": ("relations", "relation_id"),
    "attribute": ("attributes", "attribute_id"),
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
    same_text: tuple[str, ...] = ()  # identifiers of worse ones of its kind that read the same

    def to_json(self) -> dict[str, Any]:
        where = self.provenance
        return {
            "kind": self.kind,
            "ids": self.ids,
            "text": self.text,
            "score": self.score,
            "routes": {
                route: {"rank": place.rank, "score": place.score, "part": place.part}
                | ({"detail": place.detail} if place.detail else {})
                for route, place in self.routes.items()
            },
            "same_text": list(self.same_text),
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
    relevance: float  # of the index to the question, see relevance.py
    milliseconds: dict[str, float]  # by step: "encode", each route, "complete", "fuse", "describe", "total"
    dropped: dict[str, int] = field(default_factory=dict)  # found, but said already by something better

    def to_json(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "items": [item.to_json() for item in self.items],
            "chunks": [item.to_json() for item in self.chunks],
            "relevance": self.relevance,
            "found": len(self.ranking),
            "dropped": self.dropped,
            "milliseconds": self.milliseconds,
        }


def search(
    kb: KnowledgeBase,
    question: str,
    settings: RetrieveSettings,
    top_k: int | None = None,
    *,
    routes: frozenset[str] = frozenset(ROUTES),
    types: frozenset[str] = frozenset(),
) -> SearchResult:
    """The best `top_k` (default `settings.top_k`) items and the best `top_k` chunks for a question.

    Args:
        routes: names of the routes that run; `{"chunk_dense", "chunk_bm25"}` is retrieval without a graph.
            Only where all of them run can a question be told to have nothing to do with the index: below
            `settings.floor` nothing is returned.
        types: entity types that are looked for beside those that the question names: a hint, no filter.
    """
    top_k = settings.top_k if top_k is None else top_k
    routes = routes - _left_out(settings)
    judged = set(ROUTES) - _left_out(settings) <= routes
    clock = _Clock()
    query = replace(encode_query(kb.embedder, question), types=types)
    clock.lap("encode")
    ranked: dict[str, list[Candidate]] = {}
    for name, route in _FIRST.items():
        if name in routes:
            ranked[name] = _visible(kb, route(kb, query, settings))
            clock.lap(name)
    strength = relevance(ranked)
    if strength < settings.floor and judged:
        return SearchResult(question, [], [], [], query, strength, clock.milliseconds())
    if "attribute" in routes:
        ranked["attribute"] = _visible(kb, attribute_route(kb, query, settings, ranked.get("entity", ())))
        clock.lap("attribute")
    if "path" in routes:
        ranked["path"] = _visible(kb, path_route(kb, query, settings, ranked.get("entity")))
        clock.lap("path")
    complete_scores(kb, query, ranked)
    clock.lap("complete")
    if "pagerank" in routes:
        facts = ranked.get("triple") or [c for c in ranked.get("community", ()) if c.kind == "triple"]
        named = [c for c in ranked.get("entity", ()) if c.detail in (NAME, AS_WRITTEN)]
        walked = pagerank_route(kb, settings, facts, _text_scores(ranked, kb.embedder.meaning), named)
        ranked["pagerank"] = _visible(kb, walked)
        clock.lap("pagerank")
        complete_scores(kb, query, ranked)
        clock.lap("complete")
    fused = fuse(ranked, settings.fusion, settings.rrf_k, kb.embedder.meaning)
    clock.lap("fuse")
    if settings.rerank != "off":
        if kb.reranker is None:
            raise UsageError(
                f"retrieve.rerank={settings.rerank}: nothing that reranks is open here; a language model is "
                "with `hornbeam query`, a cross-encoder where retrieve.cross_encoder names its directory"
            )
        read_again = settings.rerank_candidates
        fused = rerank(fused, question, kb.reranker, lambda item: text_of(kb, item), read_again)
        clock.lap("rerank")
    ranking = drop_contained(fused)
    items = described(kb, ranking, top_k)
    chunks = described(kb, of_kind(ranking, "chunk"), top_k)
    clock.lap("describe")
    dropped = {"contained": len(fused) - len(ranking)}
    return SearchResult(question, items, chunks, ranking, query, strength, clock.milliseconds(), dropped)


def _left_out(settings: RetrieveSettings) -> frozenset[str]:
    unknown = [route for route in settings.without if route not in ROUTES]
    if unknown:
        raise UsageError(f"retrieve.without: no route '{unknown[0]}': choose among {', '.join(ROUTES)}")
    return frozenset(settings.without)


def _visible(kb: KnowledgeBase, candidates: list[Candidate]) -> list[Candidate]:
    hidden = kb.hidden
    return candidates if hidden is None else [one for one in candidates if hidden.shows(kb, one)]


def complete_scores(kb: KnowledgeBase, query: EncodedQuery, ranked: dict[str, list[Candidate]]) -> None:
    """Give every chunk that any route found its score on the chunk routes that run, below what they found.

    A route keeps its best few dozen. Without this, a chunk that only PageRank found would count as one that
    does not read like the question at all.
    """
    rows = {c.rows[0] for found in ranked.values() for c in found if c.kind == "chunk"}
    for route in ("chunk_dense", "chunk_bm25"):
        if route not in ranked or query.blank:
            continue
        missing = np.array(sorted(rows - {c.rows[0] for c in ranked[route]}), dtype=np.int64)
        if route == "chunk_dense":
            scores = kb.vectors["chunks"].similarities(query.vector, missing)
        else:
            scores = kb.lexical["chunks"].scores_of(query.tokens, missing)
        order = np.lexsort((missing, -scores))
        ranked[route] += [
            Candidate("chunk", (int(missing[at]),), min(1.0, float(scores[at])), route)
            for at in order
            if scores[at] > 0
        ]


def _text_scores(ranked: dict[str, list[Candidate]], meaning: float) -> dict[int, float]:
    """Chunk row → mean of its scores on the chunk routes that ran, its cosine weighed by `meaning`."""
    weights = {
        route: weight for route, weight in (("chunk_dense", meaning), ("chunk_bm25", 1.0)) if route in ranked
    }
    total = sum(weights.values())
    scores: dict[int, float] = {}
    for route, weight in weights.items():
        for candidate in ranked[route]:
            row = candidate.rows[0]
            scores[row] = scores.get(row, 0.0) + candidate.score * weight / total
    return scores


def of_kind(ranking: list[Fused], kind: Kind) -> list[Fused]:
    return [item for item in ranking if item.kind == kind]


def described(kb: KnowledgeBase, ranking: Sequence[Fused], top_k: int) -> list[Item]:
    """The first `top_k` of different texts; of those that read the same the best stands for the others."""
    items: dict[tuple[Kind, str], Item] = {}
    for one in ranking:
        if len(items) == top_k:
            break
        item = describe(kb, one)
        key = (item.kind, normalise(" ".join(item.text.split())))
        known = items.setdefault(key, item)
        if known is not item:
            items[key] = replace(known, same_text=(*known.same_text, *item.ids))
    return list(items.values())


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
        case "attribute":
            return kb.attribute_text(row)
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
        self._steps[step] = self._steps.get(step, 0.0) + (now - self._last) * 1000
        self._last = now

    def milliseconds(self) -> dict[str, float]:
        total = (time.perf_counter() - self._started) * 1000
        return {name: round(spent, 3) for name, spent in {**self._steps, "total": total}.items()}
