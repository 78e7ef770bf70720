"""One ranking out of many routes: one formula, traceable for every item.

    weighted    fused(x) = Σ_r w_r · c(score_r(x)) / Σ_r w_r    over the routes r that found x's kind
    rrf         fused(x) = Σ_r w_r / (k + rank_r(x))            over the routes r that found x; ranks from 1

w_r of a route that goes by vectors alone is multiplied by how far the embedder's cosines tell meaning
(`TextEmbedder.meaning`): without a model the words lead.

A path's score is a product over its hops, so c takes their geometric mean; every other score is taken as it
is. A route that found nothing of a kind does not count against it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hornbeam.retrieve.query import Candidate, Kind

#: w_r; 1 unless named here. PageRank starts from the texts' own ranking and adds what the graph knows. At 2
#: it leads where the graph is good and costs nothing against the texts alone where it is poor. At 5 it was a
#: bit better on the recorded triples of MuSiQue, and worse than the texts on HotpotQA with a graph that no
#: model made. Chosen on the first halves of these and 2Wiki: see bench/RESULTS.md.
WEIGHTS: dict[str, float] = {"pagerank": 2.0, "chunk_dense": 0.5, "chunk_bm25": 0.5, "community": 0.5}

_BY_VECTORS = frozenset({"chunk_dense", "community"})


@dataclass(frozen=True, slots=True)
class RouteScore:
    rank: int  # from 1
    score: float  # on the route's scale, in [0, 1]
    detail: str = ""  # why, where the score alone does not say
    part: float = field(default=0.0, compare=False)  # of the fused score; the parts add up to it


@dataclass(frozen=True, slots=True)
class Fused:
    kind: Kind
    rows: tuple[int, ...]
    score: float
    routes: dict[str, RouteScore] = field(default_factory=dict)
    nodes: tuple[int, ...] = ()  # of a path


def fuse(
    ranked: Mapping[str, Sequence[Candidate]],
    method: Literal["rrf", "weighted"],
    rrf_k: int,
    meaning: float = 1.0,
) -> list[Fused]:
    """Items by falling fused score; equals by kind and rows.

    Args:
        ranked: route → its candidates, best first, none twice.
        meaning: of the embedder's cosines, above 0, at most 1.
    """
    finders: dict[Kind, set[str]] = defaultdict(set)
    for route, candidates in ranked.items():
        for candidate in candidates:
            finders[candidate.kind].add(route)
    weights = {route: _weight(route, meaning) for route in ranked}
    total = {kind: sum(weights[route] for route in found) for kind, found in finders.items()}
    routes: dict[tuple[Kind, tuple[int, ...]], dict[str, RouteScore]] = {}
    nodes: dict[tuple[Kind, tuple[int, ...]], tuple[int, ...]] = {}
    for route, candidates in ranked.items():
        weight = weights[route]
        ranks: dict[Kind, int] = defaultdict(int)
        for one in candidates:
            ranks[one.kind] += 1
            if method == "rrf":
                part = weight / (rrf_k + ranks[one.kind])
            else:
                part = weight * _calibrated(one) / total[one.kind]
            place = RouteScore(ranks[one.kind], one.score, one.detail, part)
            routes.setdefault((one.kind, one.rows), {})[route] = place
            if one.nodes:
                nodes.setdefault((one.kind, one.rows), one.nodes)
    fused = [
        Fused(kind, rows, sum(place.part for place in found.values()), found, nodes.get((kind, rows), ()))
        for (kind, rows), found in routes.items()
    ]
    return sorted(fused, key=lambda item: (-item.score, item.kind, item.rows))


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


def _weight(route: str, meaning: float) -> float:
    return WEIGHTS.get(route, 1.0) * (meaning if route in _BY_VECTORS else 1.0)


def _calibrated(candidate: Candidate) -> float:
    if candidate.kind != "path":
        return candidate.score
    return float(candidate.score ** (1 / len(candidate.rows)))
