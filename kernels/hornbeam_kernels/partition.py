"""Partitions of the graph alone: hierarchical Leiden, modularity, connected components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Backend
from hornbeam_kernels.indexing import (
    Indices,
    Labels,
    edge_arrays,
    label_array,
    members_by_community,
    renumber,
)


def leiden(
    heads: Any,
    tails: Any,
    weights: Any | None,
    n: int,
    *,
    max_size: int = 100,
    seed: int = 42,
    backend: Backend | None = None,
) -> Labels:
    """Communities of at most ``max_size`` nodes by hierarchical Leiden: labels int32 [n] in normal form.

    ``heads``, ``tails`` integers [T], ``weights`` [T] ≥ 0 (None: all 1), taken as undirected; parallel edges
    add up, edges of weight 0 and self-loops (which pull a node to nowhere) are left out. Maximises modularity
    at resolution 1 with graspologic-native; communities above ``max_size`` are partitioned again as graphs of
    their own. What Leiden cannot cut any further (a star, a clique) is cut along a breadth-first walk. A node
    without edges is its own community. Deterministic for a seed (one thread).

    With a ``backend`` on a CUDA device the flat partitions are pylibcugraph's, one call for the graph and one
    for each community above ``max_size``, and the result is not repeatable: modularity within a band is what
    to expect.

    About 5 s at 100,000 nodes and 1,000,000 edges; O(n + T) memory, some 600 bytes an edge.
    Raises ``ValueError`` on an index out of range, a negative or non-finite weight, or ``max_size`` < 1, and
    ``BackendUnavailableError`` where the device's library is not installed.
    """
    if max_size < 1:
        raise ValueError(f"max_size must be ≥ 1, not {max_size}")
    a, b, w = edge_arrays(heads, tails, weights, n)
    proper = (a != b) & (w > 0)
    graph = _symmetric(a[proper], b[proper], w[proper], n)  # CSR [n, n]
    labels = np.arange(n, dtype=np.int64)  # lonely nodes keep this
    if graph.nnz and backend is not None and backend.on_device:
        from hornbeam_kernels import cuda_libraries

        labels = _partition_again(
            graph,
            max_size,
            lambda a, b, w, nodes: cuda_libraries.leiden(a, b, w, nodes, backend=backend, seed=seed),
        )
    elif graph.nnz:
        labels = labels + n  # out of the way of cluster numbers
        for node, cluster in _hierarchical_leiden(graph, max_size, seed):
            labels[node] = cluster
    found = renumber(labels)
    fresh = n
    parts = found.astype(np.int64)
    for members in members_by_community(found):
        if len(members) > max_size:
            walk = members[_breadth_first(graph[members][:, members])]
            pieces = -(-len(members) // max_size)
            parts[walk] = fresh + np.arange(len(walk)) * pieces // len(walk)
            fresh += pieces
    return renumber(parts)


def modularity(heads: Any, tails: Any, weights: Any | None, labels: Any) -> float:
    """Q = Σ_c [ w_c / W − (k_c / 2W)² ] (Newman and Girvan 2004), weighted, undirected; 0.0 without edges.

    w_c is the weight inside community c, k_c the weighted degree of its nodes (a self-loop counts twice), W
    the total weight. ``labels`` [n]. O(T + n) time and memory. Raises ``ValueError`` like ``leiden``.
    """
    own = label_array(labels, len(np.asarray(labels)))
    a, b, w = edge_arrays(heads, tails, weights, len(own))
    total = float(w.sum())
    if total <= 0:
        return 0.0
    m = int(own.max()) + 1
    inside = own[a] == own[b]
    within = np.bincount(own[a][inside], weights=w[inside], minlength=m)  # [m]
    degree = np.bincount(own[a], weights=w, minlength=m) + np.bincount(own[b], weights=w, minlength=m)  # [m]
    return float((within / total - (degree / (2.0 * total)) ** 2).sum())


def connected_components(heads: Any, tails: Any, n: int, *, backend: Backend | None = None) -> Labels:
    """Weakly connected components of n nodes: labels int32 [n] in normal form. O(n + T) time and memory.

    SciPy, or pylibcugraph with a ``backend`` on a CUDA device. Raises ``ValueError`` on an index out of
    range, ``BackendUnavailableError`` where the device's library is not installed.
    """
    a, b, w = edge_arrays(heads, tails, None, n)
    if n == 0:
        return np.zeros(0, dtype=np.int32)
    if backend is not None and backend.on_device:
        from hornbeam_kernels import cuda_libraries

        # Loops and parallel edges join nothing; the graph that the library gets has neither.
        graph = _symmetric(a[a != b], b[a != b], w[a != b], n).tocoo()
        return cuda_libraries.connected_components(graph.row, graph.col, n, backend=backend)
    from scipy.sparse.csgraph import connected_components as components

    return renumber(components(_symmetric(a, b, w, n), directed=False)[1])


def _symmetric(a: Indices, b: Indices, w: NDArray[np.float64], n: int) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(
        (np.concatenate((w, w)), (np.concatenate((a, b)), np.concatenate((b, a)))), shape=(n, n)
    )


def _partition_again(
    graph: Any, max_size: int, flat: Callable[[Indices, Indices, NDArray[np.float64], int], Labels]
) -> Indices:
    # Communities of a flat partitioner (sources, targets, weights, number of nodes → labels); those above
    # max_size are partitioned again as induced subgraphs, until none is above or none falls apart. Nodes
    # without edges are left out: each is its own community.
    fresh = graph.shape[0]
    labels = np.arange(fresh, dtype=np.int64)
    large = [np.flatnonzero(np.diff(graph.indptr))]
    while large:
        members = large.pop()
        part = graph[members][:, members].tocoo()
        found = flat(part.row, part.col, part.data, len(members))
        labels[members] = fresh + found
        fresh += int(found.max()) + 1
        if found.max() > 0:
            large += [members[group] for group in members_by_community(found) if len(group) > max_size]
    return labels


def _hierarchical_leiden(graph: Any, max_size: int, seed: int) -> list[tuple[int, int]]:
    # graspologic-native takes edges as (str, str, float) and splits clusters of more than max_cluster_size
    # nodes.
    import graspologic_native

    upper = graph.tocoo()
    once = upper.row < upper.col
    edges = [
        (str(i), str(j), w)
        for i, j, w in zip(
            upper.row[once].tolist(), upper.col[once].tolist(), upper.data[once].tolist(), strict=True
        )
    ]
    found = graspologic_native.hierarchical_leiden(
        edges,
        resolution=1.0,
        randomness=0.001,
        iterations=2,
        use_modularity=True,
        max_cluster_size=max_size,
        seed=seed,
    )
    return [(int(row.node), int(row.cluster)) for row in found if row.is_final_cluster]


def _breadth_first(graph: Any) -> Indices:
    # Nodes of a subgraph, each component walked from its lowest node.
    from scipy.sparse.csgraph import breadth_first_order
    from scipy.sparse.csgraph import connected_components as components

    _, component = components(graph, directed=False)
    starts = np.unique(component, return_index=True)[1]
    walks = [
        breadth_first_order(graph, s, directed=False, return_predecessors=False) for s in np.sort(starts)
    ]
    order: Indices = np.concatenate(walks).astype(np.int64)
    return order
