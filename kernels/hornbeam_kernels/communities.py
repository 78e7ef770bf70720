"""A graph to its hierarchy of communities: the steps of the knowledge tree in their order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Backend, Sparse, row_blocks, select_backend
from hornbeam_kernels.clustering import row_hashes, split_to_size
from hornbeam_kernels.dual_perception import relation_type_counts
from hornbeam_kernels.indexing import Indices, Labels, renumber, triple_arrays
from hornbeam_kernels.merging import merge_communities
from hornbeam_kernels.partition import leiden, modularity
from hornbeam_kernels.propagation import finite_matrix, unit_rows
from hornbeam_kernels.refining import refine_communities
from hornbeam_kernels.representation import entity_representation
from hornbeam_kernels.signals import Signals, measure_signals
from hornbeam_kernels.tree import community_levels

ALL_DIMENSIONS_BELOW = 100_000
"""From this many entities on, rows keep the ``DIMENSIONS`` principal axes of the vectors."""
DIMENSIONS = 128
CLEARLY = 1.02
"""Leiden's modularity over the dual method's from which its communities are taken: silent vectors."""
TREE_LIKE = 4.0
"""Edge ends an entity up to which they are: on more edges propagation sees enough, and a higher modularity is
no evidence (it joins small communities, Fortunato and Barthélemy 2007)."""
RELIABLE = 0.8
"""Reliability that the centroid of an initial cluster should have."""
FEWEST_MEMBERS = 3
"""of an initial cluster, however clear the vectors are"""
MOST_REFINEMENTS = 64
"""Rounds of colour refinement at most: only graphs of many equal vectors take more than two."""


@dataclass(frozen=True)
class Graph:
    """Entities, their vectors and the triples between them; checked by the kernels that take it."""

    entity_vectors: Any
    """[n, d]"""
    relation_vectors: Any
    """[R, d]"""
    heads: Any
    """integers [T]"""
    relations: Any
    """integers [T]"""
    tails: Any
    """integers [T]"""
    weights: Any = None
    """[T] ≥ 0, or None for all 1; only Leiden looks at them"""


@dataclass(frozen=True)
class Method:
    """How communities are found; the defaults are what ``bench/RESULTS.md`` recommends."""

    partitioner: Literal["dual", "leiden"] = "dual"
    representation: Literal["propagated", "paper"] = "propagated"
    merging: Literal["calibrated", "centres"] = "calibrated"
    threshold: float = 0.45
    """ε: communities less dissimilar than this may merge"""
    max_size: int = 60
    """Entities of a community at most. (Those smaller than the first clusters are seldom told apart.)"""
    structure_weight: float = 0.3
    """w of the dual perception"""
    refinements: int = 2
    """times that entities move to the community they fit best and merging goes on; 0 in the paper"""
    members_per_cluster: int = 10
    max_clusters: int = 200
    restarts: int = 5
    seed: int = 42

    def __post_init__(self) -> None:
        if self.partitioner not in ("dual", "leiden") or self.representation not in ("propagated", "paper"):
            raise ValueError(
                f"no such partitioner or representation: {self.partitioner}, {self.representation}"
            )
        if not self.threshold >= 0 or self.refinements < 0:
            raise ValueError(f"threshold and refinements must be ≥ 0: {self.threshold}, {self.refinements}")


@dataclass(frozen=True)
class CommunityTree:
    """Communities of n entities, level 0 = leaves."""

    levels: list[Labels]
    """int32 [n] each; every level is a partition and each community lies in one of the next level"""
    rows: NDArray[np.float32]
    """[n, D] the representation"""
    counts: Sparse
    """CSR [n, 2R] incident relation types"""
    signals: Signals | None = field(default=None)
    """what vectors and edges were found to say; None for the paper's representation"""


def community_tree(
    graph: Graph,
    method: Method | None = None,
    *,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> CommunityTree:
    """Representation, clusters, merging and refining (or Leiden), then levels above the leaves.

    Every entity is in exactly one community of each level: no size and no shape of a graph drops any. The
    result does not depend on the order of entities or triples nor on the number of threads: all steps run in
    ``canonical_order``, whose caveat is about entities that nothing tells apart. The relation types keep
    their order. Vectors are brought to length 1 first. Where vectors say nothing and edges are few, Leiden's
    communities are taken if their modularity is clearly higher.

    Time O(n^1.2) or better as measured from 10³ to 10⁶ entities, see ``bench/RESULTS.md``. Memory: the rows
    [n, D] three times, D ≤ ``DIMENSIONS`` + R from ``ALL_DIMENSIONS_BELOW`` entities on, O(T), and blocks
    within ``memory_limit`` bytes. Raises ``ValueError`` on shapes that do not fit or an index out of range.
    """
    method = method or Method()
    backend = backend or select_backend("cpu")
    ordered = represent(graph, method, backend=backend, memory_limit=memory_limit)
    return grown_tree(ordered, method, backend, memory_limit)


def grown_tree(
    ordered: OrderedGraph, method: Method, backend: Backend, memory_limit: int | None
) -> CommunityTree:
    """The tree of a graph of which no communities are known."""
    leaves = find_leaves(ordered, method, backend=backend, memory_limit=memory_limit)
    levels = community_levels(
        ordered.rows,
        leaves,
        members_per_cluster=method.members_per_cluster,
        restarts=method.restarts,
        seed=method.seed,
        backend=backend,
    )
    return ordered.tree(levels, backend)


@dataclass(frozen=True)
class OrderedGraph:
    """A graph in its canonical order, with what communities are found from."""

    place: Indices
    """int64 [n] where each entity of the graph as given lies in this order"""
    heads: Indices
    relations: Indices
    tails: Indices
    weights: NDArray[np.float64]
    rows: NDArray[np.float32]
    """[n, D] the representation"""
    counts: Sparse
    """CSR [n, 2R] incident relation types"""
    signals: Signals | None

    def tree(self, levels: list[Labels], backend: Backend) -> CommunityTree:
        """In the order of the graph as given."""
        return CommunityTree(
            [renumber(level[self.place]) for level in levels],
            self.rows[self.place],
            self.counts[backend.asarray(self.place)],
            self.signals,
        )

    def part(self, inside: NDArray[np.bool_], backend: Backend) -> OrderedGraph:
        """The entities of a mask [n] and the triples among them; rows and signals are the whole graph's."""
        kept = np.flatnonzero(inside)
        number = np.full(len(inside), -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        among = inside[self.heads] & inside[self.tails]
        return OrderedGraph(
            np.arange(len(kept)),
            number[self.heads[among]],
            self.relations[among],
            number[self.tails[among]],
            self.weights[among],
            self.rows[kept],
            self.counts[backend.asarray(kept)],
            self.signals,
        )


def represent(
    graph: Graph,
    method: Method,
    *,
    signals: Signals | None = None,
    backend: Backend,
    memory_limit: int | None = None,
) -> OrderedGraph:
    """The first half of ``community_tree``: canonical order, signals unless given, representation, relation
    types."""
    vectors, types, weights = _checked(graph)
    n, n_types = len(vectors), len(types)
    h, r, t = triple_arrays(graph.heads, graph.relations, graph.tails, n, n_types)
    order = canonical_order(vectors, types, h, r, t, weights)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    triples = np.lexsort((weights, place[t], r, place[h]))
    weights = weights[triples]
    h, r, t = place[h[triples]], r[triples], place[t[triples]]
    vectors = _unit_in_order(vectors, order)
    if method.representation != "propagated":
        signals = None
    elif signals is None:
        signals = measure_signals(
            vectors,
            graph.relation_vectors,
            h,
            r,
            t,
            seed=method.seed,
            backend=backend,
            memory_limit=memory_limit,
        )
    rows = entity_representation(
        vectors,
        types,
        h,
        r,
        t,
        form=method.representation,
        signals=signals,
        dimensions=DIMENSIONS if n >= ALL_DIMENSIONS_BELOW else None,
        backend=backend,
        memory_limit=memory_limit,
    )
    counts = relation_type_counts(h, r, t, n, n_types, backend=backend)
    return OrderedGraph(place, h, r, t, weights, rows, counts, signals)


def find_leaves(
    graph: OrderedGraph, method: Method, *, backend: Backend, memory_limit: int | None = None
) -> Labels:
    """The leaves of the tree by the method's partitioner: labels int32 [n], in canonical order."""
    n, signals = len(graph.rows), graph.signals
    h, t, weights = graph.heads, graph.tails, graph.weights
    if method.partitioner == "leiden":
        return leiden(h, t, weights, n, max_size=method.max_size, seed=method.seed, backend=backend)
    leaves = dual_communities(
        graph.rows, graph.counts, method, signals, backend=backend, memory_limit=memory_limit
    )
    if signals is not None and signals.similarity == 0.0 and 2.0 * len(h) <= TREE_LIKE * n:
        # Only the edges speak, and there are few. Modularity alone would join small communities; where it is
        # clearly higher (trees, whose communities are wide), Leiden saw what propagation did not reach.
        by_edges = leiden(h, t, weights, n, max_size=method.max_size, seed=method.seed, backend=backend)
        if modularity(h, t, weights, by_edges) > CLEARLY * modularity(h, t, weights, leaves):
            leaves = by_edges
    return leaves


def dual_communities(
    rows: Any,
    counts: Sparse,
    method: Method | None = None,
    signals: Signals | None = None,
    *,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> Labels:
    """Leaves of the tree from representation ``rows`` [n, D] and ``counts`` CSR [n, 2R]: labels int32 [n].

    K-means until no cluster is above ``max_size``, merging by dual perception, then ``refinements`` times:
    every entity to the community it fits best, and merging again. With calibrated merging the structural
    share w counts as far as ``signals`` found relation types to tell topics apart (None: fully), and the
    clearer they found the vectors, the smaller the first clusters (``initial_members``): merging only joins.
    """
    method = method or Method()
    labels = split_to_size(
        rows,
        max_size=method.max_size,
        members_per_cluster=(
            initial_members(signals.similarity, method.members_per_cluster)
            if signals is not None and method.merging == "calibrated"
            else method.members_per_cluster
        ),
        max_clusters=method.max_clusters,
        restarts=method.restarts,
        seed=method.seed,
        backend=backend,
    )
    weight = method.structure_weight
    if signals is not None and method.merging == "calibrated":
        weight *= min(1.0, signals.relation_weight)

    def merged(labels: Labels) -> Labels:
        return merge_communities(
            rows,
            counts,
            labels,
            threshold=method.threshold,
            max_size=method.max_size,
            form=method.merging,
            structure_weight=weight,
            backend=backend,
            memory_limit=memory_limit,
        )

    labels = merged(labels)
    for _ in range(method.refinements):
        before = labels
        labels = refine_communities(
            rows, labels, max_size=method.max_size, backend=backend, memory_limit=memory_limit
        )
        labels = merged(labels)
        if np.array_equal(labels, before):
            break
    return labels


def initial_members(similarity: float, most: int) -> int:
    """Entities of an initial cluster, ``FEWEST_MEMBERS`` to ``most``, for vectors of this mean similarity q.

    So many that the mean of their vectors tells the topic with reliability ρ = ``RELIABLE``: by the formula
    of Spearman (1910) and Brown (1910), ρ = s q / (1 + (s − 1) q), s = ρ (1 − q) / (q (1 − ρ)). Silent
    vectors: ``most``.
    """
    if similarity <= 0.0:
        return most
    enough = RELIABLE * (1.0 - similarity) / (similarity * (1.0 - RELIABLE))
    return min(most, max(FEWEST_MEMBERS, math.ceil(round(enough, 6))))


def canonical_order(
    entity_vectors: Any,
    relation_vectors: Any,
    heads: Any,
    relations: Any,
    tails: Any,
    weights: Any | None = None,
) -> Indices:
    """An order of the n entities that does not depend on the order they come in: int64 [n].

    Entities are sorted by a 64-bit hash of their own vector (whatever power of two it is multiplied by),
    refined by the hashes across each of their triples (colour refinement, Weisfeiler and Leman 1968) until
    that tells no more of them apart, at most ``MOST_REFINEMENTS`` times: sums of integers, exact in any
    order. Entities that keep one colour, alike in their vectors and in all that is around them as far as
    refinement sees, keep the order given. O(n d) time
    and O((n + T) log n) a round, one or two where vectors differ; memory O(n + T).
    """
    n = len(entity_vectors)
    h, r, t = triple_arrays(heads, relations, tails, n, len(relation_vectors))
    colour = _direction_hashes(np.asarray(entity_vectors))
    kind = row_hashes(np.asarray(relation_vectors))[r]
    if weights is not None:
        kind = kind + _mixed(np.asarray(weights, dtype=np.float64).view(np.uint64))
    colours = len(np.unique(colour))
    for _ in range(MOST_REFINEMENTS):
        if colours == n:
            break
        around = np.zeros(n, dtype=np.uint64)
        np.add.at(around, h, _mixed(colour[t] ^ _mixed(kind)))
        np.add.at(around, t, _mixed(colour[h] + _mixed(kind)))
        colour = _mixed(colour + around)
        before, colours = colours, len(np.unique(colour))
        if colours == before:
            break
    return np.argsort(colour, kind="stable")


def _checked(graph: Graph) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    # Entity vectors, relation vectors, weights of the triples.
    host = select_backend("cpu")
    vectors = finite_matrix(graph.entity_vectors, "entity_vectors", host)
    types = finite_matrix(graph.relation_vectors, "relation_vectors", host)
    count = len(np.asarray(graph.heads))
    weights = np.ones(count) if graph.weights is None else np.asarray(graph.weights, dtype=np.float64)
    if weights.shape != (count,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"weights must be {count} finite numbers ≥ 0, one a triple")
    return vectors, types, weights


def _direction_hashes(vectors: NDArray[Any]) -> NDArray[np.uint64]:
    # Hashes of the rows [n], whatever power of two they are multiplied by.
    hashes = np.empty(len(vectors), dtype=np.uint64)
    for rows in row_blocks(len(vectors), 16 * max(1, vectors.shape[1])):
        hashes[rows] = row_hashes(_near_one(vectors[rows]))
    return hashes


def _unit_in_order(vectors: NDArray[Any], order: Indices) -> NDArray[np.float32]:
    # Unit rows of the vectors in that order.
    out = np.empty(vectors.shape, dtype=np.float32)
    for rows in row_blocks(len(order), 16 * max(1, vectors.shape[1])):
        out[rows] = unit_rows(_near_one(vectors[order[rows]]), np)
    return out


def _near_one(block: NDArray[Any]) -> NDArray[np.float32]:
    # Each row times the power of two that brings its largest entry to [.5, 1): exact, and no length is too
    # large or too small to be squared in float32.
    block = np.asarray(block, dtype=np.float32)
    _, exponent = np.frexp(np.abs(block).max(axis=1, keepdims=True, initial=0.0))
    near: NDArray[np.float32] = np.ldexp(block, -exponent)
    return near


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # The finaliser of splitmix64 (Steele, Lea and Flood 2014): every bit of the input moves half the
    # output's.
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
