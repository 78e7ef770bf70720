"""The kernels, each as one measurement. A function reads its inputs and returns the work; see `KERNELS`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from kernel_growth.work import Inputs, Work

COMMUNITIES_COMPARED = 100
"""Communities that every entity's structure is compared with."""
RANKED_QUERIES = 64
SEEDS = 5
PATH_QUERIES = 200
PATH_SEEDS = 10
DEPTH = 5
HUB = 100_000
NEIGHBOURS = 10


@dataclass(frozen=True)
class Kernel:
    prepare: Callable[[Inputs], Work]
    about: str
    """What the seconds are for."""
    after: tuple[str, ...] = ()
    """Measurements whose results this one reads."""


def _representation(inputs: Inputs) -> Work:
    from hornbeam_kernels.communities import ALL_DIMENSIONS_BELOW, DIMENSIONS
    from hornbeam_kernels.representation import entity_representation

    vectors, types = inputs.load("vectors"), inputs.load("relation_vectors")
    heads, relations, tails = inputs.triples
    dimensions = DIMENSIONS if inputs.n >= ALL_DIMENSIONS_BELOW else None

    def report(x: Any) -> dict[str, Any]:
        inputs.save("x", x)
        return {"shape": list(x.shape)}

    return Work(
        lambda: entity_representation(vectors, types, heads, relations, tails, dimensions=dimensions), report
    )


def _split(inputs: Inputs) -> Work:
    from hornbeam_kernels.clustering import split_to_size

    x, size = inputs.load("x"), _method().max_size

    def report(labels: Any) -> dict[str, Any]:
        inputs.save("split", labels)
        return _partition(labels, inputs)

    return Work(lambda: split_to_size(x, max_size=size), report)


def _merge(inputs: Inputs) -> Work:
    from hornbeam_kernels.merging import merge_communities

    x, split, counts = inputs.load("x"), inputs.load("split"), _counts(inputs)
    method = _method()

    def report(labels: Any) -> dict[str, Any]:
        inputs.save("leaves", labels)
        return _partition(labels, inputs)

    return Work(
        lambda: merge_communities(x, counts, split, threshold=method.threshold, max_size=method.max_size),
        report,
    )


def _refine(inputs: Inputs) -> Work:
    from hornbeam_kernels.refining import refine_communities

    x, leaves, size = inputs.load("x"), inputs.load("leaves"), _method().max_size
    return Work(
        lambda: refine_communities(x, leaves, max_size=size), lambda labels: _partition(labels, inputs)
    )


def _levels(inputs: Inputs) -> Work:
    from hornbeam_kernels.tree import community_levels

    x, leaves = inputs.load("x"), inputs.load("leaves")
    return Work(lambda: community_levels(x, leaves), lambda levels: _hierarchy(levels, inputs))


def _communities(inputs: Inputs) -> Work:
    from hornbeam_kernels.communities import dual_communities
    from hornbeam_kernels.tree import community_levels

    x, counts, method = inputs.load("x"), _counts(inputs), _method()
    return Work(
        lambda: community_levels(x, dual_communities(x, counts, method)),
        lambda levels: _hierarchy(levels, inputs),
    )


def _tree(inputs: Inputs) -> Work:
    from hornbeam_kernels.communities import Graph, community_tree

    graph = Graph(inputs.load("vectors"), inputs.load("relation_vectors"), *inputs.triples)
    method = _method()
    return Work(lambda: community_tree(graph, method), lambda tree: _hierarchy(tree.levels, inputs))


def _structural_similarity(inputs: Inputs) -> Work:
    from hornbeam_kernels.dual_perception import community_counts, structural_similarity

    counts, leaves = _counts(inputs), inputs.load("leaves")
    few = community_counts(counts, leaves)[:COMMUNITIES_COMPARED]
    return Work(
        lambda: structural_similarity(counts, few),
        lambda s: {"shape": list(s.shape), "mean": float(s.mean())},
    )


def _leiden(inputs: Inputs) -> Work:
    from hornbeam_kernels.partition import leiden

    heads, _, tails = inputs.triples
    size = _method().max_size
    return Work(
        lambda: leiden(heads, tails, None, inputs.n, max_size=size),
        lambda labels: _partition(labels, inputs),
    )


def _components(inputs: Inputs) -> Work:
    from hornbeam_kernels.partition import connected_components

    heads, _, tails = inputs.triples
    n = inputs.n
    return Work(
        lambda: connected_components(heads, tails, n),
        lambda labels: {"components": int(labels.max()) + 1, "coverage": _coverage(labels, n)},
    )


def _pagerank_graph(inputs: Inputs) -> Work:
    from hornbeam_kernels.ranking import ranking_graph

    heads, _, tails = inputs.triples
    return Work(lambda: ranking_graph(heads, tails, inputs.n))


def _pagerank(inputs: Inputs) -> Work:
    from hornbeam_kernels.ranking import personalised_pagerank, ranking_graph

    heads, _, tails = inputs.triples
    graph = ranking_graph(heads, tails, inputs.n)
    seeds = ranked_seeds(inputs.n)
    numbers = itertools.cycle(range(RANKED_QUERIES))

    def report(_p: Any) -> dict[str, Any]:
        inputs.save("pagerank", personalised_pagerank(graph, seeds[:, [0]])[:, 0])
        return {}

    return Work(lambda: personalised_pagerank(graph, seeds[:, [next(numbers)]]), report)


def _pagerank_batch(inputs: Inputs) -> Work:
    from hornbeam_kernels.ranking import personalised_pagerank, ranking_graph

    heads, _, tails = inputs.triples
    graph = ranking_graph(heads, tails, inputs.n)
    seeds = ranked_seeds(inputs.n)

    def report(batch: Any) -> dict[str, Any]:
        # One after another against all at once, by turns in this process: (one by one, batch) seconds.
        pairs: list[tuple[float, float]] = []
        began = time.perf_counter()
        while len(pairs) < 5 and (not pairs or time.perf_counter() - began < 20):
            start = time.perf_counter()
            alone = [personalised_pagerank(graph, seeds[:, [q]]) for q in range(RANKED_QUERIES)]
            middle = time.perf_counter()
            personalised_pagerank(graph, seeds)
            pairs.append((middle - start, time.perf_counter() - middle))
        one_by_one, at_once = (median(column) for column in zip(*pairs, strict=True))
        return {
            "one_after_another_seconds": one_by_one,
            "batch_seconds": at_once,
            "times_faster_than_one_after_another": one_by_one / at_once,
            "largest_difference": max(
                float(np.abs(p[:, 0] - batch[:, q]).max()) for q, p in enumerate(alone)
            ),
        }

    return Work(lambda: personalised_pagerank(graph, seeds), report)


def _paths(inputs: Inputs) -> Work:
    heads, _, tails = inputs.triples
    return _path_queries(heads, tails, inputs.n, hub=None)


def _paths_hub(inputs: Inputs) -> Work:
    heads, _, tails = inputs.triples
    n = inputs.n
    leaves = np.random.default_rng(1).permutation(n)[: min(HUB, n)]
    heads = np.concatenate((heads, np.full(len(leaves), n, dtype=np.int32)))
    return _path_queries(heads, np.concatenate((tails, leaves.astype(np.int32))), n + 1, hub=n)


def _path_queries(heads: Any, tails: Any, n: int, hub: int | None) -> Work:
    from hornbeam_kernels.adjacency import adjacency
    from hornbeam_kernels.paths import best_first_paths

    graph = adjacency(heads, tails, n)
    rng = np.random.default_rng(2)
    similarity = [rng.random(len(heads), dtype=np.float32) for _ in range(4)]
    seeds = [rng.choice(n, min(PATH_SEEDS, n), replace=False) for _ in range(PATH_QUERIES)]
    if hub is not None:
        seeds = [np.unique(np.append(s, hub)) for s in seeds]

    def run() -> list[float]:
        seconds = []
        for number, nodes in enumerate(seeds):
            start = time.perf_counter()
            best_first_paths(*graph, similarity[number % 4], nodes, np.ones(len(nodes)), depth=DEPTH)
            seconds.append(time.perf_counter() - start)
        return seconds

    def report(seconds: list[float]) -> dict[str, Any]:
        milliseconds = np.sort(seconds) * 1000
        degrees = np.diff(graph[0])
        return {
            "p50_ms": float(np.percentile(milliseconds, 50)),
            "p95_ms": float(np.percentile(milliseconds, 95)),
            "largest_degree": int(degrees.max()),
        }

    return Work(run, report, operations=PATH_QUERIES)


def _neighbours_build(inputs: Inputs) -> Work:
    from hornbeam_kernels.search import build_index

    vectors = inputs.load("vectors")

    def report(index: Any) -> dict[str, Any]:
        import faiss

        faiss.write_index(index, str(inputs.folder / "index.faiss"))
        return {"index": type(index).__name__}

    return Work(lambda: build_index(vectors), report)


def _neighbours_query(inputs: Inputs) -> Work:
    import faiss

    from hornbeam_kernels.search import search

    index = faiss.read_index(str(inputs.folder / "index.faiss"))
    queries = np.ascontiguousarray(inputs.load("queries"))

    def report(found: Any) -> dict[str, Any]:
        k = min(NEIGHBOURS, inputs.n)
        # Scores, not numbers: of equals one is as good as the other.
        exact = faiss.knn(queries, inputs.load("vectors"), k, metric=faiss.METRIC_INNER_PRODUCT)[0]
        alone = []
        for query in queries[:50]:
            start = time.perf_counter()
            search(index, query[None], NEIGHBOURS)
            alone.append((time.perf_counter() - start) * 1000)
        return {
            "recall_at_10": float((found[0][:, :k] >= exact[:, -1:] - 1e-5).mean()),
            "one_query_p50_ms": median(alone),
        }

    return Work(lambda: search(index, queries, NEIGHBOURS), report, operations=len(queries))


def ranked_seeds(n: int) -> Any:
    """The personalisations of the ranked queries: sparse [n, 64] with 5 seeds each, the same for a size."""
    from scipy.sparse import csc_matrix

    rng = np.random.default_rng(3)
    few = min(SEEDS, n)
    nodes = np.concatenate([rng.choice(n, few, replace=False) for _ in range(RANKED_QUERIES)])
    columns = np.repeat(np.arange(RANKED_QUERIES), few)
    return csc_matrix((rng.random(len(nodes)) + 0.1, (nodes, columns)), shape=(n, RANKED_QUERIES))


def _method() -> Any:
    from hornbeam.organise.communities import method
    from hornbeam.settings import OrganiseSettings

    return method(OrganiseSettings())


def _counts(inputs: Inputs) -> Any:
    from hornbeam_kernels.dual_perception import relation_type_counts

    return relation_type_counts(*inputs.triples, inputs.n, len(inputs.load("relation_vectors")))


def _coverage(labels: Any, n: int) -> float:
    """The share of n entities that have a community; a community without members would make it wrong."""
    if len(labels) != n or (n and np.bincount(labels[labels >= 0]).min() == 0):
        raise AssertionError("labels must give each entity a community, numbered without gaps")
    return float((labels >= 0).mean()) if n else 1.0


def _partition(labels: Any, inputs: Inputs) -> dict[str, Any]:
    from sklearn.metrics import adjusted_rand_score

    sizes = np.bincount(labels)
    return {
        "coverage": _coverage(labels, inputs.n),
        "communities": len(sizes),
        "largest": int(sizes.max()),
        "adjusted_rand_index": float(adjusted_rand_score(inputs.load("labels"), labels)),
    }


def _hierarchy(levels: list[Any], inputs: Inputs) -> dict[str, Any]:
    coverage = min(_coverage(labels, inputs.n) for labels in levels)
    return _partition(levels[0], inputs) | {
        "coverage": coverage,
        "levels": [int(labels.max()) + 1 for labels in levels],
    }


KERNELS: dict[str, Kernel] = {
    "representation": Kernel(
        _representation, "what vectors and edges say, and the entity representation, the default form"
    ),
    "split": Kernel(_split, "K-means, split until none is too large", ("representation",)),
    "merge": Kernel(_merge, "mutual-best merging", ("representation", "split")),
    "levels": Kernel(_levels, "levels above the leaves", ("representation", "merge")),
    "refine": Kernel(_refine, "entities to the community that they fit best", ("merge",)),
    "communities": Kernel(
        _communities, "all steps from the representation to the levels", ("representation",)
    ),
    "tree": Kernel(_tree, "all steps from vectors and triples to the levels"),
    "structural_similarity": Kernel(
        _structural_similarity, f"every entity with {COMMUNITIES_COMPARED} communities", ("merge",)
    ),
    "leiden": Kernel(_leiden, "hierarchical Leiden down to the maximal size"),
    "components": Kernel(_components, "connected components"),
    "pagerank_graph": Kernel(_pagerank_graph, "preparing a graph for ranking, once a graph"),
    "pagerank": Kernel(_pagerank, "one personalised PageRank query"),
    "pagerank_batch": Kernel(_pagerank_batch, f"{RANKED_QUERIES} queries in one batch"),
    "paths": Kernel(_paths, f"a best-first search to depth {DEPTH}"),
    "paths_hub": Kernel(_paths_hub, f"the same from a hub of up to {HUB:,} neighbours"),
    "neighbours_build": Kernel(_neighbours_build, "the index of nearest neighbours"),
    "neighbours_query": Kernel(
        _neighbours_query, "one of a batch of held-out queries, k = 10", ("neighbours_build",)
    ),
}
