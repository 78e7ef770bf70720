"""What a user would otherwise call, each as one measurement beside the kernel that does the same.

None of these is needed to run: what is not importable says so. igraph is under the GPL, which is why it is in
no requirement.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_growth.kernels import ranked_seeds
from kernel_growth.work import Inputs, NotInstalledError, Work

DAMPING = 0.85
TOLERANCE = 1e-6
"""Of the sum of absolute errors, as the kernel promises it."""


@dataclass(frozen=True)
class Peer:
    prepare: Callable[[Inputs], Work]
    beside: str
    """The kernel that does the same."""
    about: str
    after: tuple[str, ...] = ()


def _networkx_pagerank(inputs: Inputs) -> Work:
    networkx = _library("networkx")
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(inputs.n))
    heads, _, tails = inputs.triples
    graph.add_edges_from(zip(heads.tolist(), tails.tolist(), strict=True))
    seeds = ranked_seeds(inputs.n)[:, [0]].tocoo()
    wanted = dict(zip(seeds.row.tolist(), seeds.data.tolist(), strict=True))
    # It stops at a change of n · tol; what is left then is up to a / (1 − a) times that.
    tol = TOLERANCE * (1 - DAMPING) / DAMPING / inputs.n

    def run() -> Any:
        return networkx.pagerank(graph, alpha=DAMPING, personalization=wanted, tol=tol, max_iter=1000)

    return Work(run, lambda p: _against_ours([p[i] for i in range(inputs.n)], inputs))


def _igraph_pagerank(inputs: Inputs) -> Work:
    igraph = _library("igraph")
    heads, _, tails = inputs.triples
    graph = igraph.Graph(n=inputs.n, edges=np.stack((heads, tails), axis=1), directed=False)
    weights = np.where(heads == tails, 0.5, 1.0).tolist()  # igraph counts a self-loop at both its ends
    wanted = ranked_seeds(inputs.n)[:, [0]].toarray()[:, 0].tolist()

    def run() -> Any:
        return graph.personalized_pagerank(damping=DAMPING, reset=wanted, weights=weights)

    return Work(run, lambda p: _against_ours(p, inputs))


def _sklearn_kmeans(inputs: Inputs) -> Work:
    cluster = _library("sklearn.cluster", "scikit-learn")
    x = np.ascontiguousarray(inputs.load("x"))
    k = min(max(2, inputs.n // 10), 200)  # the count and the starts of Youtu-GraphRAG

    def report(fit: Any) -> dict[str, Any]:
        return {"communities": k, "largest": int(np.bincount(fit.labels_).max())}

    return Work(lambda: cluster.KMeans(k, n_init=5, random_state=42).fit(x), report)


def _graspologic_leiden(inputs: Inputs) -> Work:
    native = _library("graspologic_native", "graspologic-native")
    heads, _, tails = inputs.triples

    def run() -> Any:
        names = [(str(h), str(t), 1.0) for h, t in zip(heads.tolist(), tails.tolist(), strict=True)]
        return native.leiden(
            names, resolution=1.0, randomness=0.001, iterations=2, use_modularity=True, trials=1, seed=42
        )

    def report(found: Any) -> dict[str, Any]:
        quality, partition = found
        sizes = np.bincount(list(partition.values()))
        return {
            "modularity": float(quality),
            "communities": int((sizes > 0).sum()),
            "largest": int(sizes.max()),
            "coverage": len(partition) / inputs.n,  # entities without a triple are in no edge list
        }

    return Work(run, report)


def _library(module: str, package: str | None = None) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotInstalledError(f"not installed: pip install {package or module}") from error


def _against_ours(p: Any, inputs: Inputs) -> dict[str, Any]:
    return {"largest_difference_from_ours": float(np.abs(np.asarray(p) - inputs.load("pagerank")).max())}


PEERS: dict[str, Peer] = {
    "networkx_pagerank": Peer(
        _networkx_pagerank, "pagerank", "networkx.pagerank to the same error", ("pagerank",)
    ),
    "igraph_pagerank": Peer(
        _igraph_pagerank, "pagerank", "igraph's personalized_pagerank (PRPACK)", ("pagerank",)
    ),
    "sklearn_kmeans": Peer(
        _sklearn_kmeans,
        "split",
        "scikit-learn's KMeans alone, min(n/10, 200) clusters, 5 starts",
        ("representation",),
    ),
    "graspologic_leiden": Peer(
        _graspologic_leiden,
        "leiden",
        "graspologic_native.leiden called directly, names made as it wants them",
    ),
}
