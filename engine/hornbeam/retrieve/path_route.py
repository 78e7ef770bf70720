"""Paths through the graph from the entities that the question is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.index.adjacency import Adjacency
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import Candidate, EncodedQuery
from hornbeam.retrieve.routes import entity_route
from hornbeam.settings import RetrieveSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Entities that paths start from.
SEEDS = 8
#: Relations whose similarity to the question is computed, at most. A relation costs 4 · d bytes to read and
#: its place in the part of the graph that is cut out: 2,000 of dimension 384 some 2 ms. In a smaller
#: graph that is all of them.
MAX_EDGES = 2_000


def path_route(
    kb: KnowledgeBase,
    query: EncodedQuery,
    settings: RetrieveSettings,
    seeds: Sequence[Candidate] | None = None,
) -> list[Candidate]:
    """Best-first paths of up to `settings.depth` hops; one of a single hop is a triple.

    Args:
        seeds: what `entity_route` found, if that is known already; the best `SEEDS` are used.
    """
    from hornbeam_kernels.paths import best_first_paths

    if query.blank or not len(kb.relations):
        return []
    best = (entity_route(kb, query, settings) if seeds is None else seeds)[:SEEDS]
    if not best:
        return []
    start = np.array([candidate.rows[0] for candidate in best], dtype=np.int64)
    graph = _reachable(kb, query.vector, start, settings.depth)
    paths = best_first_paths(
        graph.adjacency.indptr,
        graph.adjacency.indices,
        graph.adjacency.edge_ids,
        graph.similarity,
        np.searchsorted(graph.entities, start),
        np.array([candidate.score for candidate in best]),
        depth=settings.depth,
        beam=settings.beam,
        gamma=settings.gamma,
        top_k=settings.candidates,
    )
    found: dict[tuple[int, ...], Candidate] = {}
    for path in paths:
        edges = tuple(int(graph.relations[edge]) for edge in path.edges)
        # The same relations walked from the other end, or one relation from both, are one finding.
        key = min(edges, edges[::-1])
        if key not in found:
            score = min(1.0, path.score)
            if len(edges) == 1:
                found[key] = Candidate("triple", edges, score, "path")
            else:
                nodes = tuple(int(graph.entities[node]) for node in path.nodes)
                found[key] = Candidate("path", edges, score, "path", nodes=nodes)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Reachable:
    """The part of the graph that paths may use, numbered by itself."""

    adjacency: Adjacency
    similarity: NDArray[np.float32]  # [its relations] cosine with the question
    entities: NDArray[np.int64]  # its entity → row, ascending
    relations: NDArray[np.int64]  # its relation → row


def _reachable(
    kb: KnowledgeBase, query: NDArray[np.float32], seeds: NDArray[np.int64], depth: int
) -> _Reachable:
    """All of a small graph; of a larger one the `MAX_EDGES` relations nearest to the seeds.

    Cut out, not masked: to choose among the relations of a hub with 400,000 of them costs 20 ms each time
    that the search comes by.
    """
    from hornbeam_kernels.adjacency import adjacency

    triples = kb.vectors["triples"]
    if len(triples) <= MAX_EDGES:
        entities, relations = np.arange(len(kb.entities)), np.arange(len(kb.relations))
        return _Reachable(kb.adjacency, triples.similarities(query), entities, relations)
    relations = edges_within_reach(kb, seeds, depth, MAX_EDGES)
    heads, tails = kb.heads[relations].astype(np.int64), kb.tails[relations].astype(np.int64)
    entities = np.unique(np.concatenate((heads, tails, seeds)))
    ends = (np.searchsorted(entities, heads), np.searchsorted(entities, tails))
    cut_out = Adjacency(*adjacency(*ends, len(entities)))
    return _Reachable(cut_out, triples.similarities(query, relations), entities, relations)


def edges_within_reach(
    kb: KnowledgeBase, seeds: NDArray[np.int64], depth: int, limit: int
) -> NDArray[np.int64]:
    """Relation rows at most `depth` hops from the seeds, the nearest first, at most `limit`.

    When the limit is reached within a hop, the entities with the fewest relations come first: a hub would
    use it up alone. No more than twice the limit is looked at in a hop, however large the hub.
    """
    graph = kb.adjacency
    frontier = np.unique(seeds)
    met, found = frontier, np.zeros(0, np.int64)  # entities and relations so far, ascending
    for _ in range(depth):
        degrees = graph.indptr[frontier + 1] - graph.indptr[frontier]
        frontier, degrees = (array[np.lexsort((frontier, degrees))] for array in (frontier, degrees))
        before = np.cumsum(degrees) - degrees
        degrees = np.minimum(degrees, np.maximum(0, 2 * (limit - len(found)) - before))
        # Places of all relations of the frontier in the CSR arrays, entity by entity.
        offsets = np.repeat(graph.indptr[frontier] - before, degrees)
        places = np.arange(int(degrees.sum())) + offsets
        edges, first = np.unique(graph.edge_ids[places], return_index=True)
        first = np.sort(first[~_among(edges, found)])[: limit - len(found)]
        found = np.union1d(found, graph.edge_ids[places[first]])
        neighbours = np.unique(graph.indices[places[first]])
        frontier = neighbours[~_among(neighbours, met)]
        met = np.union1d(met, frontier)
        if len(found) >= limit or not len(frontier):
            break
    return found


def _among(values: NDArray[np.int64], sorted_values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of `values` are in an ascending array."""
    if not len(sorted_values):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    same: NDArray[np.bool_] = sorted_values[places] == values
    return same
