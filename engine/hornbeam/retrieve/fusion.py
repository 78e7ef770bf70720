"""One ranking out of many routes: one formula, traceable for every item.

    rrf         fused(x) = Σ_r w_r · c_r(x) / (k + rank_r(x))     over the routes r that found x; ranks from 1
    weighted    fused(x) = Σ_r w_r · score_r(x) / Σ_r w_r         below: over all routes that found anything

with c_r = 1, except for votes.

The graph votes for text. The best few things that a graph route found support the chunks that state them;
that gives one more ranking per graph route, "<route>→chunks", with

    vote_r(c) = 1 − Π_g (1 − s_r(g) / |E(g)|)             over the voters g that c supports, E(g): chunks of g
    s_r(g)    = score_r(g) · (score_r(g) − min_r) / (max_r − min_r)

so evidence adds up and stays in [0, 1], and an entity that stands everywhere says little about where to look
(node specificity, as in HippoRAG). The second factor takes away what is no finding at all: cosines of texts
that have nothing to do with a question lie around .3, and forty of those would add up to certainty.
Ranks alone would make votes near zero count like any other: so a vote's c_r(x) is the vote itself.
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
#: all its votes together weigh less than one text route. Chosen, with `VOTERS`, on 100 questions each of
#: MuSiQue and HotpotQA (train) over a crude graph of passage titles. Recall@5 without → with votes there:
#: rrf .595 → .616 and .815 → .805, weighted sum .610 → .645 and .810 → .815; on 100 questions of 2Wiki that
#: had no part in the choice: .708 → .713 and .703 → .723. With 100 questions, ±.03 is noise.
WEIGHTS: dict[str, float] = {
    f"entity{VOTES}": 0.2,
    f"triple{VOTES}": 0.2,
    f"path{VOTES}": 0.2,
    f"community{VOTES}": 0.1,
}
#: A thing that stands in more chunks than this has a vote of under a hundredth: not worth listing them.
MAX_VOTED_CHUNKS = 100
#: Findings of one route that vote, and chunks that their votes count for.
VOTERS = 5
VOTED_CHUNKS = 10


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
    if not candidates:
        return []
    scores = [candidate.score for candidate in candidates]
    least, most = min(scores), max(scores)
    against: dict[int, float] = {}  # chunk → Π (1 − vote)
    for candidate in candidates[:VOTERS]:
        contrast = (candidate.score - least) / (most - least) if most > least else 1.0
        for chunks in _evidence(kb, candidate):
            if 0 < len(chunks) <= MAX_VOTED_CHUNKS:
                for chunk in chunks:
                    vote = candidate.score * contrast / len(chunks)
                    against[chunk] = against.get(chunk, 1.0) * (1 - vote)
    votes = {chunk: 1 - product for chunk, product in against.items() if product < 1}
    name = f"{route}{VOTES}"
    best = sorted(votes, key=lambda chunk: (-votes[chunk], chunk))[:VOTED_CHUNKS]
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
