"""Communities found against communities known: the dual method beside what a user would take otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.evaluate.community_files import labelled_graphs
from hornbeam.evaluate.planted import Planting, planted_graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hornbeam_kernels.communities import Graph

DIMENSION = 384
MEASURES = ("ari", "nmi", "modularity", "coherence")

#: What `planted` means where nothing else is asked for: which of the two signals says something.
PLANTINGS = {
    "both speak": Planting(mixing=0.2, noise=1.0),
    "both speak, faintly": Planting(mixing=0.4, noise=2.0),
    "vectors say nothing": Planting(mixing=0.2, noise=float("inf")),
    "edges say nothing": Planting(mixing=1.0, noise=1.0),
    "edges say nothing, vectors little": Planting(mixing=1.0, noise=2.0),
    "vectors tell of kinds": Planting(mixing=0.1, noise=1.0, kinds=8, topic_weight=0.5, between_kinds=True),
    "vectors tell of kinds alone": Planting(
        mixing=0.1, noise=1.0, kinds=8, topic_weight=0.0, between_kinds=True
    ),
    "few edges": Planting(mixing=0.05, noise=float("inf"), degree=3),
    "relation types speak too": Planting(mixing=0.4, noise=2.0, relation_mixing=0.2),
}


@dataclass(frozen=True, slots=True)
class KnownGraph:
    name: str
    graph: Graph
    labels: NDArray[np.integer[Any]]  # [n] the communities that are known


@dataclass(frozen=True, slots=True)
class Found:
    """What one method found on one graph."""

    graph: str
    method: str
    labels: NDArray[np.int32]
    seconds: float
    scores: dict[str, float]


def graphs_from(path: Path, seed: int) -> Iterator[KnownGraph]:
    """Graphs of files have no texts: their entities get random vectors, their edges one type."""
    import numpy as np

    from hornbeam_kernels.communities import Graph

    for found in labelled_graphs(path):
        rng = np.random.default_rng(seed)
        n = len(found.labels)
        vectors = rng.standard_normal((n + 1, DIMENSION), np.float32)
        types = np.zeros(len(found.heads), dtype=np.int64)
        yield KnownGraph(
            found.name, Graph(vectors[:n], vectors[n:], found.heads, types, found.tails), found.labels
        )


def planted_graphs(n: int, plantings: dict[str, Planting], seeds: Sequence[int]) -> Iterator[KnownGraph]:
    from hornbeam_kernels.communities import Graph

    for name, planting in plantings.items():
        for seed in seeds:
            made = planted_graph(n, planting, seed=seed)
            graph = Graph(made.entity_vectors, made.relation_vectors, made.heads, made.relations, made.tails)
            yield KnownGraph(f"planted: {name}", graph, made.labels)


def methods(max_size: int, seed: int) -> dict[str, Callable[[KnownGraph], NDArray[np.int32]]]:
    """Method → labels [n]. `max_size` bounds all but Leiden's and K-means' own forms."""
    from hornbeam_kernels.clustering import kmeans, split_to_size
    from hornbeam_kernels.communities import Method, community_tree
    from hornbeam_kernels.partition import leiden
    from hornbeam_kernels.propagation import unit_rows

    def tree(**options: Any) -> Callable[[KnownGraph], NDArray[np.int32]]:
        method = Method(max_size=max_size, seed=seed, **options)
        return lambda known: community_tree(known.graph, method).levels[0]

    def leiden_with(size: int | None) -> Callable[[KnownGraph], NDArray[np.int32]]:
        def run(known: KnownGraph) -> NDArray[np.int32]:
            n = len(known.labels)
            return leiden(
                known.graph.heads, known.graph.tails, None, n, max_size=size or max(n, 1), seed=seed
            )

        return run

    def kmeans_alone(known: KnownGraph) -> NDArray[np.int32]:
        import numpy as np

        count = len(np.unique(known.labels))
        return kmeans(unit_rows(known.graph.entity_vectors, np), count, seed=seed)

    def kmeans_by_rule(known: KnownGraph) -> NDArray[np.int32]:
        import numpy as np

        return split_to_size(unit_rows(known.graph.entity_vectors, np), max_size=max_size, seed=seed)

    return {
        "dual": tree(),
        "dual, as the paper": tree(representation="paper", merging="centres", threshold=0.35, refinements=0),
        "leiden": leiden_with(None),
        f"leiden, ≤ {max_size}": leiden_with(max_size),
        "k-means, k known": kmeans_alone,
        "k-means, split": kmeans_by_rule,
    }


def score(known: KnownGraph, labels: NDArray[np.int32]) -> dict[str, float]:
    """ARI and NMI against what is known, modularity of the edges, coherence of the vectors.

    Coherence is the mean cosine of two members of one community, vectors centred, over all such pairs: 0
    where communities are no more alike than any two entities.
    """
    import numpy as np
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    from hornbeam_kernels.partition import modularity
    from hornbeam_kernels.propagation import unit_rows

    vectors = np.asarray(known.graph.entity_vectors, dtype=np.float32)
    rows = unit_rows(vectors - vectors.mean(axis=0, keepdims=True), np)
    sums = np.zeros((int(labels.max(initial=-1)) + 1, rows.shape[1]))
    np.add.at(sums, labels, rows)
    size = np.bincount(labels)
    pairs = float((size * (size - 1.0)).sum())
    inner = float((sums**2).sum() - (rows.astype(np.float64) ** 2).sum())
    return {
        "ari": float(adjusted_rand_score(known.labels, labels)),
        "nmi": float(normalized_mutual_info_score(known.labels, labels)),
        "modularity": modularity(known.graph.heads, known.graph.tails, None, labels),
        "coherence": inner / pairs if pairs else 0.0,
        "communities": float(len(size)),
    }


def evaluate_communities(
    graphs: Iterator[KnownGraph], *, max_size: int, seed: int, on_found: Callable[[Found], None]
) -> list[dict[str, Any]]:
    """Every method on every graph; graphs of one name are draws of one setting, of which means are given.

    Returns one row per graph and method: graph, method, draws, seconds and the means of `MEASURES`, with the
    standard deviation of the ARI between draws.
    """
    import numpy as np

    collected: dict[tuple[str, str], list[Found]] = {}
    for known in graphs:
        for name, method in methods(max_size, seed).items():
            started = time.perf_counter()
            labels = method(known)
            seconds = time.perf_counter() - started
            found = Found(known.name, name, labels, seconds, score(known, labels))
            on_found(found)
            collected.setdefault((known.name, name), []).append(found)
    rows = []
    for (graph, name), draws in collected.items():
        means = {
            measure: float(np.mean([draw.scores[measure] for draw in draws])) for measure in draws[0].scores
        }
        spread = float(np.std([draw.scores["ari"] for draw in draws]))
        rows.append(
            {
                "graph": graph,
                "method": name,
                "draws": len(draws),
                "seconds": float(np.mean([draw.seconds for draw in draws])),
                **means,
                "ari_deviation": spread,
            }
        )
    return rows


def settings_of(plantings: dict[str, Planting]) -> dict[str, dict[str, Any]]:
    """For the report: infinity, which JSON does not know, as text."""
    return {
        name: {key: "inf" if value == float("inf") else value for key, value in asdict(planting).items()}
        for name, planting in plantings.items()
    }
