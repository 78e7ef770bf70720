"""The kernels that a device check runs, on a graph with planted topics and unit vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from device.comparison import Comparison, neighbours_found, no_worse, relative_error, same_labels
from hornbeam_kernels import cuda_libraries
from hornbeam_kernels.backend import Backend
from hornbeam_kernels.clustering import kmeans
from hornbeam_kernels.density import dbscan
from hornbeam_kernels.dual_perception import (
    centroids,
    community_counts,
    own_scores,
    relation_type_counts,
    structural_similarity,
)
from hornbeam_kernels.indexing import renumber
from hornbeam_kernels.merging import merge_communities
from hornbeam_kernels.partition import connected_components, leiden, modularity
from hornbeam_kernels.ranking import personalised_pagerank, ranking_graph
from hornbeam_kernels.refining import refine_communities
from hornbeam_kernels.representation import entity_representation
from hornbeam_kernels.search import build_index, search
from hornbeam_kernels.signals import Signals, measure_signals

DIMENSION = 384
RELATION_TYPES = 40
TRIPLES_AN_ENTITY = 3
SIGNALS = Signals(hops=2, neighbour_weight=0.4, relation_weight=0.5)
"""Given to the propagated representation, whose time would be that of measuring them."""


@dataclass(frozen=True)
class Check:
    """One kernel: the same call on both backends."""

    name: str
    run: Callable[[Backend], Any]
    compare: Callable[[Any, Any], Comparison]
    """(the device's result, the CPU's)"""
    bytes_moved: int
    """Each input read once, each output written once."""
    part: str | None = None
    """The part of ``cuda_libraries`` that it needs on a device."""


class Graph:
    """``size`` entities in topics of 50, degree 6, four triples in five inside a topic; unit vectors."""

    def __init__(self, size: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        n, t, d = size, TRIPLES_AN_ENTITY * size, DIMENSION
        self.n, self.topic = n, rng.permutation(np.arange(n) // 50)
        members = np.argsort(self.topic, kind="stable")  # topic c: places 50 c to 50 c + 49
        self.heads, self.relations = rng.integers(0, n, t), rng.integers(0, RELATION_TYPES, t)
        beside = np.minimum(50 * self.topic[self.heads] + rng.integers(0, 50, t), n - 1)
        self.tails = np.where(rng.random(t) < 0.8, members[beside], rng.integers(0, n, t))
        centres = rng.standard_normal((int(self.topic.max()) + 1, d), dtype=np.float32)
        self.x = unit(centres[self.topic] + 0.7 * rng.standard_normal((n, d), dtype=np.float32))
        self.types = unit(rng.standard_normal((RELATION_TYPES, d), dtype=np.float32))
        self.queries = unit(rng.standard_normal((256, d), dtype=np.float32))
        self.between = unit(self.x[rng.integers(0, n, 256)] + self.x[rng.integers(0, n, 256)])
        self.seeds = np.zeros((n, 64))
        self.seeds[rng.integers(0, n, (8, 64)), np.arange(64)] = 1.0

    def counts(self, backend: Backend, rows: int) -> Any:
        """Relation types of the first ``rows`` entities, of the triples among them."""
        kept = (self.heads < rows) & (self.tails < rows)
        columns = (self.heads[kept], self.relations[kept], self.tails[kept])
        return relation_type_counts(*columns, rows, RELATION_TYPES, backend=backend)


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows at length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def checks(size: int) -> list[Check]:
    """Every kernel, on one graph of ``size`` entities; what grows faster gets a part of it."""
    g = Graph(size)
    part, few, d = min(size, 20_000), min(size, 6_000), DIMENSION
    clustered, k = g.x[:part], min(200, max(2, part // 10))
    start = renumber(g.topic[:few] * 4 + np.arange(few) % 4)
    vectors, edges, counted = 4 * size * d, 24 * len(g.heads), 16 * len(g.heads)

    # What a kernel is given lies where it runs before the time starts; what it answers with on the host
    # counts.
    @cache
    def vectors_on(backend: Backend) -> Any:
        return backend.asarray(g.x)

    @cache
    def counts_on(backend: Backend, rows: int = size) -> Any:
        return g.counts(backend, rows)

    @cache
    def index_on(backend: Backend, exact: bool) -> Any:
        return build_index(g.x, exact_below=size + 1 if exact else 0, backend=backend)

    @cache
    def walks_on(backend: Backend) -> Any:
        return ranking_graph(g.heads, g.tails, size, backend=backend)

    def represent(backend: Backend, form: Any) -> Any:
        columns = (g.heads, g.relations, g.tails)
        return entity_representation(
            vectors_on(backend), g.types, *columns, form=form, signals=SIGNALS, backend=backend
        )

    def signals(backend: Backend) -> Any:
        columns = (g.heads, g.relations, g.tails)
        found = measure_signals(vectors_on(backend), g.types, *columns, backend=backend)
        return [found.similarity, found.agreement, found.neighbour_weight, found.relation_weight]

    def refine(backend: Backend) -> Any:
        # Every fifth entity starts in another topic's community, and has to find its own.
        strayed = renumber(np.where(np.arange(few) % 5 == 0, np.roll(g.topic[:few], 1), g.topic[:few]))
        return refine_communities(vectors_on(backend)[:few], strayed, max_size=100, backend=backend)

    def similarity(backend: Backend) -> Any:
        counts = counts_on(backend)
        psi = community_counts(counts, g.topic, backend=backend)[:1000]
        return backend.to_numpy(structural_similarity(counts[:part], psi, backend=backend))

    def merge(backend: Backend) -> Any:
        options = {"threshold": 0.5, "max_size": 100, "backend": backend}
        return merge_communities(vectors_on(backend)[:few], counts_on(backend, few), start, **options)

    def clusters(backend: Backend) -> Any:
        if backend.on_device:
            return cuda_libraries.kmeans(vectors_on(backend)[:part], k, backend=backend)[0]
        return kmeans(clustered, k)

    def dense(backend: Backend) -> Any:
        return dbscan(g.x[:part], eps=0.4, min_samples=4, backend=backend)

    def tightness(labels: Any) -> float:
        sums = np.zeros((int(labels.max()) + 1, d))
        np.add.at(sums, labels, clustered)
        middles = sums / np.bincount(labels)[:, None]
        return -float(((clustered - middles[labels]) ** 2).sum()) / len(clustered)

    def approximate(backend: Backend) -> Any:
        # The CPU gives the truth. Between stored vectors: far from all, every neighbour is as good as any.
        return search(index_on(backend, exact=not backend.on_device), g.between, 10)

    return [
        Check(
            "representation, propagated",
            lambda b: represent(b, "propagated"),
            relative_error(1e-3),
            2 * vectors + edges + 4 * size * RELATION_TYPES,
        ),
        Check(
            "representation, paper",
            lambda b: represent(b, "paper"),
            relative_error(1e-4),
            4 * vectors + edges,
        ),
        Check(
            "relation type counts",
            lambda b: b.to_numpy(g.counts(b, size)[:part].toarray()),
            relative_error(0.0),
            edges + counted,
        ),
        Check(
            "centroids",
            lambda b: b.to_numpy(centroids(vectors_on(b), g.topic, backend=b)),
            relative_error(1e-4),
            vectors + 4 * size + vectors // 50,
        ),
        Check("structural similarity", similarity, relative_error(1e-4), counted + 4 * part * 1000),
        Check(
            "own scores",
            lambda b: own_scores(vectors_on(b), counts_on(b), g.topic, backend=b),
            relative_error(1e-4),
            vectors + edges + counted + 4 * size,
        ),
        Check("signals", signals, relative_error(1e-2), vectors + edges, "neighbours"),
        Check("merging", merge, same_labels(0.99), 4 * few * d, "neighbours"),
        Check("refining", refine, same_labels(0.99), 4 * few * d, "neighbours"),
        Check("K-means", clusters, no_worse(tightness, 0.02, "−inertia/n"), 4 * clustered.size, "kmeans"),
        Check("DBSCAN", dense, same_labels(0.99), 4 * part * d),
        Check(
            "Leiden",
            lambda b: leiden(g.heads, g.tails, None, size, backend=b),
            no_worse(lambda labels: modularity(g.heads, g.tails, None, labels), 0.02, "modularity"),
            edges,
            "leiden",
        ),
        Check(
            "components",
            lambda b: connected_components(g.heads[: size // 2], g.tails[: size // 2], size, backend=b),
            same_labels(1.0),
            8 * size,
            "components",
        ),
        Check(
            "personalised PageRank, 64 queries",
            lambda b: personalised_pagerank(walks_on(b), g.seeds),
            relative_error(1e-5),
            edges + 2 * 8 * size * 64,
        ),
        Check(
            "nearest neighbours, exact",
            lambda b: search(index_on(b, exact=True), g.queries, 10),
            neighbours_found(0.9999),
            vectors,
            "neighbours",
        ),
        Check(
            "nearest neighbours, approximate",
            approximate,
            neighbours_found(0.93),
            vectors,
            "neighbours",
        ),
    ]
