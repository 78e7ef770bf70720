"""The dense code of every array kernel is array API code: it runs on ``array-api-strict``.

The sparse products are SciPy's behind a module that gives and takes strict arrays
(``support.strict_arrays``), so that what the kernels do around them meets nothing but strict arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest

from hornbeam_kernels.backend import Backend, select_backend
from hornbeam_kernels.density import dbscan
from hornbeam_kernels.dual_perception import (
    centroids,
    community_counts,
    jaccard,
    own_scores,
    relation_type_counts,
    structural_similarity,
)
from hornbeam_kernels.merging import merge_communities
from hornbeam_kernels.propagation import principal_axes, unit_rows
from hornbeam_kernels.ranking import personalised_pagerank, ranking_graph
from hornbeam_kernels.refining import refine_communities
from hornbeam_kernels.representation import entity_representation
from hornbeam_kernels.signals import Signals, measure_signals
from support.strict_arrays import strict_backend

RNG = np.random.default_rng(0)
TRIPLES = RNG.integers(0, 50, 200), RNG.integers(0, 4, 200), RNG.integers(0, 50, 200)
VECTORS = RNG.normal(size=(50, 6)), RNG.normal(size=(4, 6))
LABELS = np.arange(50) // 5
SIGNALS = Signals(hops=2, neighbour_weight=0.4, relation_weight=0.7)


def represent(backend: Backend, **options: Any) -> Any:
    return entity_representation(*VECTORS, *TRIPLES, backend=backend, **options)


def counts(backend: Backend) -> Any:
    return relation_type_counts(*TRIPLES, 50, 4, backend=backend)


def merge(backend: Backend) -> Any:
    x = represent(select_backend("cpu"))
    return merge_communities(
        x,
        counts(backend),
        np.arange(50),
        threshold=0.6,
        max_size=9,
        candidates=99,
        backend=backend,
    )


def scores(backend: Backend) -> Any:
    return own_scores(represent(select_backend("cpu")), counts(backend), LABELS, backend=backend)


def rank(backend: Backend) -> Any:
    walks = ranking_graph(TRIPLES[0], TRIPLES[2], 50, backend=backend)
    return personalised_pagerank(walks, backend.asarray(np.eye(50)[:, :5]))


def measure(backend: Backend) -> Any:
    signals = measure_signals(*VECTORS, *TRIPLES, backend=backend)
    return np.array(
        [signals.similarity, signals.agreement, signals.neighbour_weight, signals.relation_weight]
    )


def refine(backend: Backend) -> Any:
    x = represent(select_backend("cpu"))
    return refine_communities(x, LABELS, max_size=9, candidates=99, backend=backend)


def axes(backend: Backend) -> Any:
    x = backend.asarray(VECTORS[0], dtype=backend.xp.float32)
    return principal_axes(x, backend.xp.mean(x, axis=0, keepdims=True), 3, backend)


KERNELS: dict[str, Callable[[Backend], Any]] = {
    "representation, propagated": lambda b: represent(b, signals=SIGNALS),
    "representation, paper": lambda b: represent(b, form="paper"),
    "representation in blocks": lambda b: represent(b, signals=SIGNALS, memory_limit=100),
    "signals": measure,
    "principal axes": axes,
    "refining": refine,
    "structural similarity": lambda b: structural_similarity(counts(b), counts(b), backend=b),
    "centroids": lambda b: centroids(b.asarray(VECTORS[0], dtype=b.xp.float32), LABELS, backend=b),
    "community counts": lambda b: community_counts(counts(b), LABELS, backend=b).toarray(),
    "own scores": scores,
    "ranking": rank,
    "merging": merge,
    "density": lambda b: dbscan(VECTORS[0], eps=0.15, min_samples=3, backend=b),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_kernels_run_on_strict_arrays(kernel: Callable[[Backend], Any]) -> None:
    strict, cpu = strict_backend(), select_backend("cpu")
    found, expected = strict.to_numpy(kernel(strict)), np.asarray(kernel(cpu))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 0


def test_a_numpy_array_among_strict_arrays_is_seen() -> None:
    strict = strict_backend()
    matrix = strict.sparse.csr_matrix(strict.asarray([[1.0, 0.0]]))
    with pytest.raises(TypeError, match="where a strict array belongs"):
        matrix @ np.ones(2)
    with pytest.raises(AttributeError):
        strict.xp.asarray([1.0]).sum()


@pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "array-api-strict"])
def test_unit_rows_leaves_zero_rows(xp: Any) -> None:
    x = xp.asarray([[3.0, 4.0], [0.0, 0.0]], dtype=xp.float32)
    np.testing.assert_allclose(np.asarray(unit_rows(x, xp)), [[0.6, 0.8], [0, 0]], atol=1e-6)


@pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "array-api-strict"])
def test_jaccard_of_two_empty_multisets_is_zero(xp: Any) -> None:
    shared, a, b = (xp.asarray(v, dtype=xp.float32) for v in ([1.0, 0.0], [2.0, 0.0], [3.0, 0.0]))
    np.testing.assert_allclose(np.asarray(jaccard(shared, a, b, xp)), [0.25, 0.0])
