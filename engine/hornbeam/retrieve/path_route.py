"""Paths through the graph from the entities that the question is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import Candidate, EncodedQuery
from hornbeam.retrieve.routes import entity_route
from hornbeam.settings import RetrieveSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Entities that paths start from.
SEEDS = 8
#: Relations whose similarity to the question is computed, at most. A relation costs 4 · d bytes of reading:
#: 100,000 of dimension 384 are 150 MB, some 30 ms. In a smaller graph that is all of them.
MAX_EDGES = 100_000


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
    paths = best_first_paths(
        kb.adjacency.indptr,
        kb.adjacency.indices,
        kb.adjacency.edge_ids,
        _edge_similarity(kb, query.vector, start, settings.depth),
        start,
        np.array([candidate.score for candidate in best]),
        depth=settings.depth,
        beam=settings.beam,
        gamma=settings.gamma,
        top_k=settings.candidates,
    )
    found: dict[tuple[int, ...], Candidate] = {}
    for path in paths:
        # The same relations walked from the other end, or one relation from both, are one finding.
        key = min(path.edges, path.edges[::-1])
        if key not in found:
            score = min(1.0, path.score)
            if len(path.edges) == 1:
                found[key] = Candidate("triple", path.edges, score, "path")
            else:
                found[key] = Candidate("path", path.edges, score, "path", nodes=path.nodes)
    return list(found.values())


def _edge_similarity(
    kb: KnowledgeBase, query: NDArray[np.float32], seeds: NDArray[np.int64], depth: int
) -> NDArray[np.float32]:
    """Cosine of every relation within reach with the question, float32 [relations]; 0 for the others."""
    triples = kb.vectors["triples"]
    if len(triples) <= MAX_EDGES:
        return triples.similarities(query)
    within = edges_within_reach(kb, seeds, depth, MAX_EDGES)
    similarity = np.zeros(len(triples), dtype=np.float32)
    similarity[within] = triples.similarities(query, within)
    return similarity


def edges_within_reach(
    kb: KnowledgeBase, seeds: NDArray[np.int64], depth: int, limit: int
) -> NDArray[np.int64]:
    """Relation rows at most `depth` hops from the seeds, the nearest first, at most `limit`.

    When the limit is reached within a hop, the entities with the fewest relations come first: a hub would
    use it up alone.
    """
    graph = kb.adjacency
    seen_entities = np.zeros(len(kb.entities), dtype=bool)
    seen_edges = np.zeros(len(kb.relations), dtype=bool)
    frontier = np.unique(seeds)
    seen_entities[frontier] = True
    total = 0
    for _ in range(depth):
        degrees = graph.indptr[frontier + 1] - graph.indptr[frontier]
        frontier, degrees = (array[np.lexsort((frontier, degrees))] for array in (frontier, degrees))
        # Places of all relations of the frontier in the CSR arrays, entity by entity.
        offsets = np.repeat(graph.indptr[frontier] - np.concatenate(([0], np.cumsum(degrees)[:-1])), degrees)
        places = np.arange(int(degrees.sum())) + offsets
        edges, first = np.unique(graph.edge_ids[places], return_index=True)
        order = np.argsort(first)
        order = order[~seen_edges[edges[order]]][: limit - total]
        seen_edges[edges[order]] = True
        total += len(order)
        neighbours = np.unique(graph.indices[places[first[order]]])
        frontier = neighbours[~seen_entities[neighbours]]
        seen_entities[frontier] = True
        if total >= limit or not len(frontier):
            break
    return np.flatnonzero(seen_edges)
