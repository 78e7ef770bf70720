"""One ranking out of many routes: one formula, traceable for every item.

    rrf         fused(x) = Σ_r w_r · c_r(x) / (k + rank_r(x))     over the routes r that found x; ranks from 1
    weighted    fused(x) = Σ_r w_r · score_r(x) / Σ_r w_r         below: over all routes that found anything

with c_r = 1, except for votes.

The graph votes for text. What a graph route found supports the chunks that state it; that gives one more
ranking per graph route, "<route>→chunks", with

    vote_r(c) = 1 − Π_g (1 − score_r(g) / |E(g)|)             over the g that c supports, E(g): chunks of g

so evidence adds up, stays in [0, 1], and an entity that stands everywhere says little about where to look
(node specificity, as in HippoRAG). Most of such a ranking are votes near zero, in an order that means
nothing, and ranks alone would make them count: so a vote's c_r(x) is the vote itself. Measured on 1,890
MuSiQue passages with a crude graph of their titles, recall@5 of dense + BM25 alone .595, with votes by rank
.543, with votes so weighted .606 (weighted sum: .610, .585, .643).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import Candidate, Kind

VOTES = "→chunks"
#: w_r; 1 unless named here. The graph leads to text that the question does not resemble, and to much else:
#: all its votes together weigh less than one text route.
WEIGHTS: dict[str, float] = {
    f"entity{VOTES}": 0.2,
    f"triple{VOTES}": 0.2,
    f"path{VOTES}": 0.2,
    f"community{VOTES}": 0.1,
}
#: A thing that stands in more chunks than this has a vote of under a hundredth: not worth listing them.
MAX_VOTED_CHUNKS = 100


@dataclass(frozen=True, slots=True)
class RouteScore:
    rank: int  # from 1
    score: float  # on the route's scale, in [0, 1]


@dataclass(frozen=True, slots=True)
class Fused:
    kind: Kind
    rows: tuple[int, ...]
    score: float
    routes: dict[str, RouteScore] = field(default_factory=dict)
    nodes: tuple[int, ...] = ()  # of a path


def fuse(
    ranked: Mapping[str, Sequence[Candidate]], method: Literal["rrf", "weighted"], rrf_k: int
) -> list[Fused]:
    """Items by falling fused score; equals by kind and rows.

    Args:
        ranked: route → its candidates, best first, none twice.
    """
    routes: dict[tuple[Kind, tuple[int, ...]], dict[str, RouteScore]] = {}
    nodes: dict[tuple[Kind, tuple[int, ...]], tuple[int, ...]] = {}
    for route, candidates in ranked.items():
        for rank, candidate in enumerate(candidates, start=1):
            key = (candidate.kind, candidate.rows)
            routes.setdefault(key, {})[route] = RouteScore(rank, candidate.score)
            nodes.setdefault(key, candidate.nodes)
    total = sum(_weight(route) for route, candidates in ranked.items() if candidates)
    fused = []
    for (kind, rows), found in routes.items():
        if method == "rrf":
            score = sum(
                _weight(route) * (place.score if route.endswith(VOTES) else 1.0) / (rrf_k + place.rank)
                for route, place in found.items()
            )
        else:
            score = sum(_weight(route) * place.score for route, place in found.items()) / total
        fused.append(Fused(kind, rows, score, found, nodes[kind, rows]))
    return sorted(fused, key=lambda item: (-item.score, item.kind, item.rows))


def chunk_votes(kb: KnowledgeBase, route: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The chunks that a graph route's candidates support, best first, on the route "<route>→chunks"."""
    against: dict[int, float] = {}  # chunk → Π (1 − vote)
    for candidate in candidates:
        for chunks in _evidence(kb, candidate):
            if 0 < len(chunks) <= MAX_VOTED_CHUNKS:
                for chunk in chunks:
                    against[chunk] = against.get(chunk, 1.0) * (1 - candidate.score / len(chunks))
    votes = {chunk: 1 - product for chunk, product in against.items() if product < 1}
    name = f"{route}{VOTES}"
    best = sorted(votes, key=lambda chunk: (-votes[chunk], chunk))
    return [Candidate("chunk", (chunk,), votes[chunk], name) for chunk in best]


def drop_contained(ranking: Sequence[Fused]) -> list[Fused]:
    """Leave out what a better-ranked item already says.

    That is a triple or path whose relations are all part of one path above it. A path whose relations all
    stand above it as triples stays: it says how they connect.
    """
    kept: list[Fused] = []
    paths: list[set[int]] = []
    for item in ranking:
        if item.kind in ("triple", "path"):
            relations = set(item.rows)
            if any(relations <= path for path in paths):
                continue
            if item.kind == "path":
                paths.append(relations)
        kept.append(item)
    return kept


def _weight(route: str) -> float:
    return WEIGHTS.get(route, 1.0)


def _evidence(kb: KnowledgeBase, candidate: Candidate) -> list[list[int]]:
    """Chunk rows behind a candidate, one list per relation of a path. A community votes by its facts."""
    if candidate.kind == "entity":
        if kb.mentions.count(candidate.rows[0]) > 16 * MAX_VOTED_CHUNKS:
            return []  # a hub: not even worth counting its chunks
        return [np.unique(kb.mentions.of(candidate.rows[0])).tolist()]
    if candidate.kind in ("triple", "path"):
        return [kb.relation_chunks.of(relation).tolist() for relation in candidate.rows]
    return []
