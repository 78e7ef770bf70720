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
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Backend, row_blocks
from hornbeam_kernels.indexing import Indices, Labels, members_by_community, renumber

SKLEARN_MAX_ROWS = 100_000
SKLEARN_MAX_PAIRS = 5_000_000
"""scikit-learn (k-means++) up to this many rows and rows × clusters; faiss beyond."""
SEEDING_ROWS = 10
SEEDING_DIMENSIONS = 64
"""k-means++ chooses its seeds among this many rows a cluster, projected to this many dimensions."""
SEEDING_CLUSTERS = 512
"""For more clusters than this, seeds are drawn at random: k-means++ takes k² time."""
DEVICE_MIN_ROWS = 20_000
"""Fewer rows are clustered on the host: starting the device's kernels would cost more."""
ITERATIONS = 30
"""Of scikit-learn at most; what they leave is within what refining moves."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def initial_cluster_count(n: int, members_per_cluster: int = 10, max_clusters: int = 200) -> int:
    """k = min(max(2, ⌊n/β⌋), η), and never more than n; β = ``members_per_cluster``, η = ``max_clusters``.

    Youtu-GraphRAG, arXiv 2508.19855 (β = 10, η = 200). Raises ``ValueError`` on n < 0, β < 1 or η < 1.
    """
    if n < 0 or members_per_cluster < 1 or max_clusters < 1:
        raise ValueError("n must be ≥ 0, members_per_cluster and max_clusters ≥ 1")
    return min(max(2, n // members_per_cluster), max_clusters, n)


def kmeans(x: Any, k: int, *, restarts: int = 5, seed: int = 42, backend: Backend | None = None) -> Labels:
    """K-means labels int32 [n] of the rows of ``x`` [n, d], numbered by first occurrence.

    Minimises Σ_i ‖x_i − c(i)‖²; on unit rows ‖x − c‖² = 2 − 2 cos for unit c. scikit-learn up to
    ``SKLEARN_MAX_ROWS`` rows and ``SKLEARN_MAX_PAIRS`` rows × clusters; beyond that faiss (spherical, trained
    on at most 256 rows a cluster). Either starts from the cheapest of ``restarts`` draws of seeds. With a
    ``backend`` on a CUDA device, more than ``DEVICE_MIN_ROWS`` rows go to ``cuda_libraries.kmeans``. At most
    min(k, distinct rows) clusters come back: with k or fewer distinct rows each is its own cluster, which is
    the optimum.

    Deterministic: the same rows in the same order, k, restarts and seed give the same labels whatever the
    number of threads (not on a device). Time O(iterations · n k d). Memory: ``x`` in float32, O(n), and the
    seeding's sample.
    Raises ``ValueError`` when ``x`` is not two-dimensional or holds NaN or infinity, or k < 1 with n > 0.
    """
    rows = _rows(x)
    if len(rows) == 0:
        return np.zeros(0, dtype=np.int32)
    fit = _Fit(restarts, seed, backend)
    return _side_by_side(lambda worker: fit(rows, k, worker))


def split_to_size(
    x: Any,
    *,
    max_size: int,
    members_per_cluster: int = 10,
    max_clusters: int = 200,
    restarts: int = 5,
    seed: int = 42,
    backend: Backend | None = None,
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

    fit = _Fit(restarts, seed, backend)

    def split(members: Indices, worker: _Worker) -> Labels:
        k = initial_cluster_count(len(members), members_per_cluster, max_clusters)
        part = fit(rows if len(members) == len(rows) else rows[members], max(2, k), worker)
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


@dataclass(frozen=True)
class _Fit:
    """One K-means fit with its settings: rows [n, d] and k to labels."""

    restarts: int
    seed: int
    backend: Backend | None

    def __call__(self, x: NDArray[np.float32], k: int, worker: _Worker) -> Labels:
        if k < 1 or self.restarts < 1:
            raise ValueError(f"k and restarts must be ≥ 1, not {k} and {self.restarts}")
        if k == 1:
            return np.zeros(len(x), dtype=np.int32)
        if len(x) <= SKLEARN_MAX_ROWS:  # beyond, more than k distinct rows are taken for granted
            _, distinct = np.unique(row_hashes(x), return_inverse=True)
            if distinct.max() < k:
                return renumber(distinct)
        if self.backend is not None and self.backend.on_device and len(x) >= DEVICE_MIN_ROWS:
            from hornbeam_kernels.cuda_libraries import kmeans as on_device

            return on_device(x, k, backend=self.backend, seed=self.seed, restarts=self.restarts)[0]
        start = _seeds(x, k, self.restarts, self.seed)
        if len(x) <= SKLEARN_MAX_ROWS and len(x) * k <= SKLEARN_MAX_PAIRS:
            return renumber(_sklearn(x, start))
        index = _faiss(x, start, self.seed)
        nearest = worker(lambda rows: index.search(x[rows], 1)[1][:, 0], row_blocks(len(x), 8 * x.shape[1]))
        return renumber(np.concatenate(nearest))


def row_hashes(x: NDArray[Any]) -> NDArray[np.uint64]:
    """A 64-bit hash of each row of ``x`` [n, d], taken as float32: uint64 [n]. O(n d), blocks of rows.

    Equal rows have equal hashes, whatever their place; unlike rows collide with probability 2⁻⁶⁴ a pair.
    """
    odd = np.random.default_rng(0).integers(0, 2**63, x.shape[1], dtype=np.uint64) * 2 + 1
    hashes = np.empty(len(x), dtype=np.uint64)
    for rows in row_blocks(len(x), 24 * x.shape[1]):
        # + 0 makes −0 and 0 the same bits; integers: exact anywhere.
        bits = (np.ascontiguousarray(x[rows], dtype=np.float32) + np.float32(0.0)).view(np.uint32)
        hashes[rows] = (bits * odd).sum(axis=1, dtype=np.uint64)
    return hashes


def _seeds(x: NDArray[np.float32], k: int, restarts: int, seed: int) -> NDArray[np.float32]:
    # The best of `restarts` draws of k rows [k, d] to start from, by their cost on a sample. To run every
    # draw to its end and keep the best fit costs `restarts` times as much and ends within 1 % (measured at
    # 12,782 × 1,152, k = 200). k-means++ (Arthur and Vassilvitskii 2007) draws among ten rows a cluster and
    # by a random projection's distances (Johnson and Lindenstrauss): over all rows and dimensions it costs
    # more than the iterations after it. Where even that is much, rows are drawn at random.
    from sklearn.cluster import kmeans_plusplus

    best: NDArray[np.float32] = x[:k]
    least = np.inf
    for attempt in range(restarts):
        rng = np.random.default_rng(seed + attempt)
        among = np.arange(len(x))
        if len(x) > SEEDING_ROWS * k:
            among = np.sort(rng.choice(len(x), SEEDING_ROWS * k, replace=False))
        sample = x[among]  # [s, d]
        if k > SEEDING_CLUSTERS:
            chosen = np.sort(rng.choice(len(sample), k, replace=False))
        else:
            sketch = sample
            if x.shape[1] > SEEDING_DIMENSIONS:
                sketch = sample @ rng.standard_normal((x.shape[1], SEEDING_DIMENSIONS), dtype=np.float32)
            chosen = kmeans_plusplus(sketch, k, random_state=seed + attempt)[1]
        start: NDArray[np.float32] = sample[chosen]
        if restarts == 1:
            return start
        half = 0.5 * (start * start).sum(axis=1)
        nearest = np.concatenate(
            [(sample[rows] @ start.T - half).max(axis=1) for rows in row_blocks(len(sample), 8 * k)]
        )
        cost = float((0.5 * (sample * sample).sum(axis=1) - nearest).mean())
        if cost < least:
            best, least = start, cost
    return best


def _sklearn(x: NDArray[np.float32], start: NDArray[np.float32]) -> Labels:
    from sklearn.cluster import KMeans

    fit: Labels = KMeans(len(start), init=start, n_init=1, max_iter=ITERATIONS).fit(x).labels_
    return fit


def _faiss(x: NDArray[np.float32], start: NDArray[np.float32], seed: int) -> Any:
    # The index of centroids.
    import faiss

    fit = faiss.Kmeans(
        x.shape[1],
        len(start),
        niter=20,
        seed=seed,
        spherical=True,
        min_points_per_centroid=1,  # below 39 faiss only prints a warning
        max_points_per_centroid=256,
    )
    fit.train(x, init_centroids=start)
    return fit.index
