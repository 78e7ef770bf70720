"""K-means on unit rows, and clusters split until none is too large.

One seed gives one result, whatever the number of threads: every fit runs on one thread (several
fits run side by side), because parallel sums depend on how rows are dealt out. It is also the faster way:
OpenMP threads that wait for one another lose to one thread on a busy machine (6,000 × 384 rows, k = 200: 3 s
on one thread, 17 to 41 s on two while another process ran).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import row_blocks
from hornbeam_kernels.indexing import Indices, Labels, members_by_community, renumber

SKLEARN_MAX_ROWS = 100_000
SKLEARN_MAX_PAIRS = 5_000_000
"""scikit-learn (k-means++) up to this many rows and rows × clusters; faiss beyond."""
SEEDING_ROWS = 10
SEEDING_DIMENSIONS = 64
"""k-means++ chooses its seeds among this many rows a cluster, projected to this many dimensions."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def initial_cluster_count(n: int, members_per_cluster: int = 10, max_clusters: int = 200) -> int:
    """k = min(max(2, ⌊n/β⌋), η), and never more than n; β = ``members_per_cluster``, η = ``max_clusters``.

    Youtu-GraphRAG, arXiv 2508.19855 (β = 10, η = 200). Raises ``ValueError`` on n < 0, β < 1 or η < 1.
    """
    if n < 0 or members_per_cluster < 1 or max_clusters < 1:
        raise ValueError("n must be ≥ 0, members_per_cluster and max_clusters ≥ 1")
    return min(max(2, n // members_per_cluster), max_clusters, n)


def kmeans(x: Any, k: int, *, restarts: int = 5, seed: int = 42) -> Labels:
    """K-means labels int32 [n] of the rows of ``x`` [n, d], numbered by first occurrence.

    Minimises Σ_i ‖x_i − c(i)‖²; on unit rows ‖x − c‖² = 2 − 2 cos for unit c. scikit-learn with k-means++
    (the best of ``restarts``) up to ``SKLEARN_MAX_ROWS`` rows and ``SKLEARN_MAX_PAIRS`` rows × clusters;
    beyond that faiss (spherical, trained on at most 256 rows a cluster). At most min(k, distinct rows)
    clusters come back: with k or fewer distinct rows each is its own cluster, which is the optimum.

    Deterministic: the same rows in the same order, k, restarts and seed give the same labels whatever the
    number of threads. Time O(restarts · iterations · n k d). Memory: ``x`` in float32 plus O(n) per parallel
    restart.
    Raises ``ValueError`` when ``x`` is not two-dimensional or holds NaN or infinity, or k < 1 with n > 0.
    """
    rows = _rows(x)
    if len(rows) == 0:
        return np.zeros(0, dtype=np.int32)
    return _side_by_side(lambda worker: _kmeans(rows, k, restarts, seed, worker))


def split_to_size(
    x: Any,
    *,
    max_size: int,
    members_per_cluster: int = 10,
    max_clusters: int = 200,
    restarts: int = 5,
    seed: int = 42,
) -> Labels:
    """Clusters of at most ``max_size`` rows: labels int32 [n], numbered by first occurrence.

    K-means with ``initial_cluster_count`` clusters; every cluster above ``max_size`` is split the same way,
    until none is left. Every row has a cluster: no cap drops any. Rows that K-means cannot tell apart are cut
    by index into equal runs, so this always ends. Deterministic like ``kmeans``.

    Time O(restarts · iterations · n k d) for the first split, less for each further one. Memory: ``x`` in
    float32 and one copy of the rows being split. Raises ``ValueError`` when ``max_size`` < 1 or ``x`` is not
    [n, d] of finite numbers.
    """
    if max_size < 1:
        raise ValueError(f"max_size must be ≥ 1, not {max_size}")
    rows = _rows(x)
    labels = np.zeros(len(rows), dtype=np.int32)
    if len(rows) <= 1:
        return labels

    def split(members: Indices, worker: _Worker) -> Labels:
        k = initial_cluster_count(len(members), members_per_cluster, max_clusters)
        part = _kmeans(
            rows if len(members) == len(rows) else rows[members], max(2, k), restarts, seed, worker
        )
        if part.max() == 0:  # nothing tells these rows apart
            pieces = -(-len(members) // max_size)
            part = (np.arange(len(members)) * pieces // len(members)).astype(np.int32)
        return part

    def all_levels(worker: _Worker) -> Labels:
        labels[:] = split(np.arange(len(rows)), worker)
        while True:
            large = [c for c in members_by_community(labels) if len(c) > max_size]
            if not large:
                return renumber(labels)
            fresh = int(labels.max()) + 1
            for members, part in zip(large, worker(lambda c: split(c, _in_turn), large), strict=True):
                labels[members] = part + fresh
                fresh += int(part.max()) + 1
            labels[:] = renumber(labels)

    return _side_by_side(all_levels)


def _rows(x: Any) -> NDArray[np.float32]:
    rows = np.ascontiguousarray(x, dtype=np.float32)
    if rows.ndim != 2:
        raise ValueError(f"x must be [n, d], not of shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("x holds NaN or infinity")
    return rows


_Worker = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Applies a function to each item and returns the results in order, in turn or side by side."""


def _in_turn(function: Callable[[_Job], _Result], jobs: Sequence[_Job]) -> list[_Result]:
    return [function(job) for job in jobs]


def _side_by_side(run: Callable[[_Worker], Labels]) -> Labels:
    # `run` gets a worker whose threads each use one BLAS and one OpenMP thread. OpenMP keeps its limit per
    # calling thread, so every pool thread sets its own; BLAS keeps one for the process.
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController()

    def one_thread() -> None:
        libraries.limit(limits=1, user_api="openmp")

    with (
        warnings.catch_warnings(),
        libraries.limit(limits=1),
        ThreadPoolExecutor(os.cpu_count(), initializer=one_thread) as pool,
    ):
        # Near-duplicates may leave fewer clusters than k; that is no news to the caller.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run(lambda function, jobs: list(pool.map(function, jobs)))


def _kmeans(x: NDArray[np.float32], k: int, restarts: int, seed: int, worker: _Worker) -> Labels:
    if k < 1 or restarts < 1:
        raise ValueError(f"k and restarts must be ≥ 1, not {k} and {restarts}")
    if k == 1:
        return np.zeros(len(x), dtype=np.int32)
    if len(x) <= SKLEARN_MAX_ROWS:  # beyond, more than k distinct rows are taken for granted
        _, distinct = np.unique(_row_hashes(x), return_inverse=True)
        if distinct.max() < k:
            return renumber(distinct)
    if len(x) <= SKLEARN_MAX_ROWS and len(x) * k <= SKLEARN_MAX_PAIRS:
        fits = worker(lambda attempt: _sklearn(x, k, seed + attempt), range(restarts))
        return renumber(min(fits, key=lambda fit: fit[0])[1])  # the first of equals
    trained = worker(lambda attempt: _faiss(x, k, seed + attempt), range(restarts))
    index = min(trained, key=lambda fit: fit[0])[1]
    nearest = worker(lambda rows: index.search(x[rows], 1)[1][:, 0], row_blocks(len(x), 8 * x.shape[1]))
    return renumber(np.concatenate(nearest))


def _row_hashes(x: NDArray[np.float32]) -> NDArray[np.uint64]:
    # Equal rows have equal hashes; unlike rows collide with probability 2⁻⁶⁴ a pair. Integers: exact
    # anywhere.
    odd = np.random.default_rng(0).integers(0, 2**63, x.shape[1], dtype=np.uint64) * 2 + 1
    hashes = np.empty(len(x), dtype=np.uint64)
    for rows in row_blocks(len(x), 24 * x.shape[1]):
        bits = (x[rows] + np.float32(0.0)).view(np.uint32)  # + 0 makes −0 and 0 the same bits
        hashes[rows] = (bits * odd).sum(axis=1, dtype=np.uint64)
    return hashes


def _sklearn(x: NDArray[np.float32], k: int, seed: int) -> tuple[float, NDArray[np.int32]]:
    # k-means++ over all rows and dimensions costs more than the iterations after it (12,782 × 1,152, k = 200:
    # 5 s of 6). Seeds chosen among ten rows a cluster, by a random projection's distances (Johnson and
    # Lindenstrauss), cost 0.1 s and end at the same cost within 1 %.
    from sklearn.cluster import KMeans, kmeans_plusplus

    rng = np.random.default_rng(seed)
    among = np.arange(len(x))
    if len(x) > SEEDING_ROWS * k:
        among = np.sort(rng.choice(len(x), SEEDING_ROWS * k, replace=False))
    sketch = x[among]  # [s, d]
    if x.shape[1] > SEEDING_DIMENSIONS:
        sketch = sketch @ rng.standard_normal((x.shape[1], SEEDING_DIMENSIONS), dtype=np.float32)
    start = x[among[kmeans_plusplus(sketch, k, random_state=seed)[1]]]  # [k, d]
    fit = KMeans(k, init=start, n_init=1, max_iter=100).fit(x)
    return float(fit.inertia_), fit.labels_


def _faiss(x: NDArray[np.float32], k: int, seed: int) -> tuple[float, Any]:
    # Cost (lower is better) and the index of centroids.
    import faiss

    fit = faiss.Kmeans(
        x.shape[1],
        k,
        niter=20,
        seed=seed,
        spherical=True,
        min_points_per_centroid=1,  # below 39 faiss only prints a warning
        max_points_per_centroid=256,
    )
    fit.train(x)
    return -float(np.asarray(fit.obj)[-1]), fit.index  # spherical: the objective is a sum of cosines
