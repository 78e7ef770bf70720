"""Personalised PageRank near a few seeds, at a cost that does not grow with the graph.

The solution of x = v + a Wᵀ x is the sum over walks from the seeds, x = Σ_k (a Wᵀ)^k v (Neumann). What
matters to a question lies within a few steps, and most of the graph holds next to nothing: so the series is
added up step by step over the nodes that still hold something, and a node passes on what it holds only if
each neighbour would get at least ε of it (the threshold of Andersen, Chung and Lang 2006, in synchronous
rounds). A round then touches at most 1/ε edges, whatever the degrees. ``ranking.personalised_pagerank`` is
the exact one, for any number of queries over the whole graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.indexing import Indices, index_array


@dataclass(frozen=True)
class WalkGraph:
    """A weighted graph in compressed sparse rows, ready for walks from any seeds."""

    indptr: NDArray[np.int64]
    """[n+1]"""
    indices: NDArray[np.int32]
    """[E] neighbours"""
    weights: NDArray[np.float32]
    """[E] probability of the step: the weights of a node's edges sum to 1."""

    @property
    def n(self) -> int:
        return len(self.indptr) - 1


def walk_graph(sources: Any, targets: Any, n: int, weights: Any | None = None) -> WalkGraph:
    """The undirected graph of T edges over n nodes, its rows normalised.

    ``sources``, ``targets`` integers [T]; ``weights`` [T] > 0 (None: all 1). Parallel edges add up; a
    self-loop counts once. O(T log T) time; 8 bytes an edge end and 8 a node. Raises ``ValueError`` on an
    index outside 0..n−1 or arrays of unequal length.
    """
    from scipy.sparse import csr_matrix

    s, t = index_array(sources, n, "sources"), index_array(targets, n, "targets")
    w = np.ones(len(s)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(s) == len(t) == len(w):
        raise ValueError(f"sources, targets and weights differ in length: {len(s)}, {len(t)}, {len(w)}")
    back = s != t
    rows, columns = np.concatenate((s, t[back])), np.concatenate((t, s[back]))
    matrix = csr_matrix((np.concatenate((w, w[back])), (rows, columns)), shape=(n, n))
    matrix.sum_duplicates()
    degree = np.diff(matrix.indptr)
    total = np.repeat(np.asarray(matrix.sum(axis=1)).ravel(), degree)
    return WalkGraph(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        (matrix.data / total).astype(np.float32),
    )


def local_pagerank(
    graph: WalkGraph,
    seeds: Any,
    seed_weights: Any,
    *,
    damping: float = 0.5,
    epsilon: float = 1e-5,
    tolerance: float = 1e-2,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nodes that a walk from the seeds meets, ascending int64 [m], and their PageRank float64 [m], sum 1.

    ``seeds`` nodes [s], each once, with ``seed_weights`` [s] ≥ 0, not all 0. ``epsilon`` is the least part of
    the whole mass that is worth passing to one neighbour (0: everything); rounds end when less than
    ``tolerance`` of the mass is still on the way, after log(tolerance) / log(damping) of them at most. Before
    it is brought to sum 1, no value is above the exact x, and with ε = 0 all of them together are
    ``tolerance`` short of it. A dangling node keeps what it holds.

    Time O(1/ε log 1/ε) and memory O(1/ε) a round. Raises ``ValueError`` on a seed out of range or named
    twice, weights that are no such numbers, damping outside [0, 1), ε < 0 or tolerance ≤ 0.
    """
    if not 0.0 <= damping < 1.0 or epsilon < 0.0 or not tolerance > 0.0:
        raise ValueError("damping must lie in [0, 1), epsilon be ≥ 0 and tolerance > 0")
    nodes = index_array(seeds, graph.n, "seeds")
    mass = np.asarray(seed_weights, dtype=np.float64)
    if len(nodes) != len(mass) or len(np.unique(nodes)) != len(nodes):
        raise ValueError("seeds must be different nodes, each with a weight")
    if not len(nodes) or not np.isfinite(mass).all() or mass.min() < 0 or not mass.sum() > 0:
        raise ValueError("seed weights must be finite and ≥ 0, and one of them > 0")
    mass = mass / mass.sum()
    met, held = [nodes], [mass]
    while mass.sum() * damping >= tolerance:
        degree = graph.indptr[nodes + 1] - graph.indptr[nodes]
        worth = (degree > 0) & (damping * mass >= epsilon * degree)
        if not worth.any():
            break
        places, owner = _edges(graph.indptr[nodes[worth]], degree[worth])
        passed = damping * mass[worth][owner] * graph.weights[places]
        nodes, mass = _added_up(graph.indices[places].astype(np.int64), passed)
        met.append(nodes)
        held.append(mass)
    nodes, mass = _added_up(np.concatenate(met), np.concatenate(held))
    return nodes, mass / mass.sum()


def _added_up(nodes: Indices, mass: NDArray[np.float64]) -> tuple[Indices, NDArray[np.float64]]:
    # Each node once, ascending, with all of its mass; without those that hold none.
    distinct, which = np.unique(nodes, return_inverse=True)
    total = np.bincount(which.reshape(-1), mass, minlength=len(distinct)).astype(np.float64)
    return distinct[total > 0], total[total > 0]


def _edges(starts: Indices, counts: Indices) -> tuple[Indices, Indices]:
    # Places starts[i] … starts[i] + counts[i] − 1 for every i, one after another, and the i of each.
    owner = np.repeat(np.arange(len(starts)), counts)
    before = np.cumsum(counts) - counts
    return np.arange(len(owner)) + (starts - before)[owner], owner
