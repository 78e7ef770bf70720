"""Nearest neighbours by inner product: faiss on the CPU, faiss or cuVS on a CUDA device."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Backend

EXACT_BELOW = 200_000
"""An exact index below this many vectors: under 30 ms a query on two cores."""
EXACT_BELOW_ON_DEVICE = 5_000_000
"""The same on a CUDA device: 7.7 GB at d = 384, some 3 ms a query at 2.5 TB/s, less in a batch."""
APPROXIMATE_FROM_ON_DEVICE = 256
"""Never approximate below this many vectors on a device: CAGRA's graph starts with 128 neighbours each."""
RECALL_TARGET = 0.95
"""Recall@10 that an approximate index must reach on sampled queries, two standard errors allowed for."""
SAMPLED_QUERIES = 256
"""Queries of each kind that an approximate index is measured with."""
SCANNED_FROM = 1024
"""Rows from which on `build_scanned_index` compresses: it learns 16 centres of each part from them."""
TRAINED_ON = 16_384
"""Rows that it learns these centres from."""
LEAST_FACTOR, MOST_FACTOR = 10, 128
"""How many times k it compares exactly. Measured at k = 10; a search for more has more to choose from."""
MAX_LISTS = 2048
"""Inverted lists at most: faiss probes no more on a GPU, and so every list can be probed anywhere."""

_Search: TypeAlias = Callable[[NDArray[np.float32], int], tuple[Any, Any]]
"""(queries [q, d], k) → scores [q, k], ids [q, k]"""


def build_index(
    vectors: Any, *, seed: int = 42, exact_below: int | None = None, backend: Backend | None = None
) -> Any:
    """An index for inner product over ``vectors`` [n, d] (cosine on unit rows); n = 0 is fine.

    On the CPU a faiss index: exact (``IndexFlatIP``) below ``exact_below`` vectors (default ``EXACT_BELOW``);
    above, ``IndexIVFFlat`` with about √n lists (at most ``MAX_LISTS``), trained on at most 64 vectors a list.
    Its ``nprobe`` is the least that reaches recall@10 ≥ ``RECALL_TARGET`` on two samples of
    ``SAMPLED_QUERIES`` queries, each with two standard errors to spare: stored vectors, of which each is left
    out of its own neighbours (it would always be found and flatter the recall by a tenth of what is missing);
    and the middles between two stored vectors, which lie off the data as a question does that speaks of
    several things, and need more lists. The same vectors and seed give the same index, whatever the number of
    threads.

    With a ``backend`` on a CUDA device, a ``cuda_libraries.DeviceIndex``: exact below
    ``EXACT_BELOW_ON_DEVICE``, above the first of ``cuda_libraries.approximate_indexes`` that reaches the same
    recall, its effort chosen in the same way.

    Time O(n d) exact, O(n^1.5 d) approximate (10⁶ × 384 on two cores: about a minute). Memory 4 n d bytes,
    plus 8 n for IVF. Raises ``ValueError`` when ``vectors`` is not [n, d], ``BackendUnavailableError`` where
    the device's library is not installed.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"vectors must be [n, d] with d ≥ 1, not of shape {rows.shape}")
    if backend is not None and backend.on_device:
        return _on_device(rows, seed, EXACT_BELOW_ON_DEVICE if exact_below is None else exact_below, backend)
    import faiss

    n, d = rows.shape
    if n < (EXACT_BELOW if exact_below is None else exact_below) or n < 2:
        exact = faiss.IndexFlatIP(d)
        if n:
            exact.add(rows)
        return exact
    lists = _lists(n)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = seed
    index.cp.min_points_per_centroid = 1  # below 39 faiss only prints a warning
    rng = np.random.default_rng(seed)
    index.train(rows[np.sort(rng.choice(n, min(n, 64 * lists), replace=False))])
    index.add(rows)

    def exact_search(queries: NDArray[np.float32], k: int) -> tuple[Any, Any]:
        found: tuple[Any, Any] = faiss.knn(queries, rows, k, metric=faiss.METRIC_INNER_PRODUCT)
        return found

    probes = []
    for sample in _samples(rows, seed, exact_search):
        order = index.quantizer.search(sample.queries, lists)[1]  # [q, lists]
        home = index.quantizer.search(rows[sample.ids.reshape(-1)], 1)[1]  # as `add` dealt them out
        probes.append(fewest_probes(order, home.reshape(sample.ids.shape)))
    index.nprobe = max(probes)
    return index


def build_scanned_index(vectors: Any, *, seed: int = 42, like: Any = None) -> Any:
    """A faiss index for inner product over ``vectors`` [n, d] that looks at every row in half a byte for four
    values, and compares the best exactly: ``IndexRefineFlat`` over ``IndexPQFastScan`` (André, Kermarrec and
    Le Scouarnec 2015).

    Which rows are near is not guessed from where they lie, as an inverted file does: so it holds for vectors
    of any structure, at 10⁵ rows and 384 dimensions in half a millisecond of one core. ``k_factor``, how many
    times k are compared exactly, is the least that reaches the recall of ``build_index`` on the same samples,
    ``LEAST_FACTOR`` at least.

    Where d is no multiple of 4, or that recall is not reached, what ``build_index`` makes. The same vectors
    and seed give the same index.

    ``like``: an index of nearly the same vectors, of which the new one takes over the centres that codes are
    made of and ``k_factor``, so that nothing is learned and nothing measured: the time of coding n rows. It
    is for the caller to see that the vectors have not drifted apart. Any other kind of index, or one of
    another dimension, is passed over. Memory 4 n d bytes for the exact rows and n d / 8. Raises as
    ``build_index``.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"vectors must be [n, d] with d ≥ 1, not of shape {rows.shape}")
    import faiss

    n, d = rows.shape
    if d % 4 or n < SCANNED_FROM:
        return build_index(rows, seed=seed, exact_below=SCANNED_FROM)
    codes = faiss.IndexPQFastScan(d, d // 4, 4, faiss.METRIC_INNER_PRODUCT)
    codes.pq.cp.seed = seed
    index = faiss.IndexRefineFlat(codes)
    learned = _learned(like, d)
    if learned is not None:
        faiss.copy_array_to_vector(faiss.vector_to_array(learned.pq.centroids), codes.pq.centroids)
        codes.is_trained = index.is_trained = True
        index.add(rows)
        index.k_factor = like.k_factor
        return index
    rng = np.random.default_rng(seed)
    codes.train(rows[np.sort(rng.choice(n, min(n, TRAINED_ON), replace=False))])
    index.is_trained = True
    index.add(rows)

    def exact_search(queries: NDArray[np.float32], k: int) -> tuple[Any, Any]:
        found: tuple[Any, Any] = faiss.knn(queries, rows, k, metric=faiss.METRIC_INNER_PRODUCT)
        return found

    factors = []
    for sample in _samples(rows, seed, exact_search):
        factors.append(least_effort(partial(_recall_of_scan, index, sample), MOST_FACTOR))
    if None in factors:
        return build_index(rows, seed=seed, exact_below=SCANNED_FROM)
    index.k_factor = float(max(LEAST_FACTOR, *(factor for factor in factors if factor is not None)))
    return index


def _learned(index: Any, d: int) -> Any:
    # The codes that an index of ``build_scanned_index`` scans; None of another kind or dimension.
    import faiss

    if not isinstance(index, faiss.IndexRefineFlat) or index.d != d:
        return None
    codes = faiss.downcast_index(index.base_index)
    fits = isinstance(codes, faiss.IndexPQFastScan) and (codes.pq.M, codes.pq.nbits) == (d // 4, 4)
    return codes if fits else None


def search(index: Any, queries: Any, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The ``k`` nearest stored vectors of each query: scores float32 [q, k] descending and ids int64 [q, k].

    ``index`` from ``build_index``, ``queries`` [q, d]. Places that no vector fills (k > n, or lists that an
    IVF index did not visit) hold id −1 and score −inf. Exact index: O(q n d) time. Raises ``ValueError`` on a
    wrong dimension or k < 0.
    """
    rows = np.ascontiguousarray(queries, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != index.d:
        raise ValueError(f"queries must be [q, {index.d}], not of shape {rows.shape}")
    if k < 0:
        raise ValueError(f"k must be ≥ 0, not {k}")
    scores = np.full((len(rows), k), -np.inf, dtype=np.float32)
    ids = np.full((len(rows), k), -1, dtype=np.int64)
    fill = min(k, int(index.ntotal))
    if fill and len(rows):
        found, at = index.search(rows, fill)
        scores[:, :fill] = np.where(at >= 0, found, -np.inf)
        ids[:, :fill] = at
    return scores, ids


def fewest_probes(order: NDArray[np.int64], lists_of_neighbours: NDArray[np.int64]) -> int:
    """The least number of lists to probe for recall ≥ ``RECALL_TARGET`` with two standard errors to spare.

    ``order`` [q, L]: the lists of an inverted file from the nearest to each query on; ``lists_of_neighbours``
    [q, k]: where its true neighbours lie. Probing p lists finds the neighbours in the first p, so one pass
    gives recall at every p: no index is searched. The standard error is over queries, whose neighbours share
    lists. O(q L) time and memory; the result is L at most, where recall is 1.
    """
    q, lists = order.shape
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(lists)[None, :], axis=1)  # [q, L] list → place in the order
    met = np.zeros((q, lists))
    np.add.at(met, (np.arange(q)[:, None], np.take_along_axis(rank, lists_of_neighbours, axis=1)), 1.0)
    recall = np.cumsum(met, axis=1) / lists_of_neighbours.shape[1]  # [q, L]
    enough: NDArray[np.bool_] = _assured(recall) >= RECALL_TARGET  # [L]
    return 1 + int(enough.argmax())


def least_effort(recall_at: Callable[[int], float], most: int) -> int | None:
    """The least effort in 1 … ``most`` with ``recall_at(effort)`` ≥ ``RECALL_TARGET``; None where none is.

    For recall that rises with effort: doubling, then halving the gap, 2 log₂(most) calls.
    """
    missed, effort = 0, 1
    while recall_at(effort) < RECALL_TARGET:
        if effort == most:
            return None
        missed, effort = effort, min(2 * effort, most)
    while effort - missed > 1:
        middle = (missed + effort) // 2
        if recall_at(middle) >= RECALL_TARGET:
            effort = middle
        else:
            missed = middle
    return effort


def _assured(recall: NDArray[Any]) -> Any:
    # Mean over queries (the first axis) less two standard errors: 1 where every query finds all.
    error = recall.std(axis=0) / np.sqrt(max(1, len(recall) - 1))
    return recall.mean(axis=0) - 2.0 * error


def _lists(n: int) -> int:
    return min(MAX_LISTS, max(1, round(math.sqrt(n))))


@dataclass(frozen=True)
class _Sample:
    """Queries with their true neighbours among the stored vectors."""

    queries: NDArray[np.float32]
    """[q, d]"""
    own: NDArray[np.int64]
    """[q] the stored vector that a query is, which counts as no neighbour; −2 where it is none."""
    scores: NDArray[np.float32]
    """[q, k] descending"""
    ids: NDArray[np.int64]
    """[q, k]"""


def _samples(rows: NDArray[np.float32], seed: int, exact_search: _Search) -> list[_Sample]:
    rng = np.random.default_rng((seed, 1))
    n, q, k = len(rows), min(SAMPLED_QUERIES, len(rows)), min(10, len(rows) - 1)
    own = np.sort(rng.choice(n, q, replace=False))
    between = rows[own] + rows[rng.integers(0, n, q)]
    between /= np.maximum(np.linalg.norm(between, axis=1, keepdims=True), np.float32(1e-12))
    samples = []
    for queries, itself in ((rows[own], own), (between, np.full(q, -2))):
        scores, ids = _without(itself, *exact_search(queries, k + 1))
        samples.append(_Sample(queries, itself, scores, ids))
    return samples


def _without(
    own: NDArray[np.int64], scores: NDArray[np.float32], ids: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    # One place fewer a row: without the query's own id, or, where that was not found, without the last.
    places = np.argsort(ids == own[:, None], axis=1, kind="stable")[:, :-1]
    return np.take_along_axis(scores, places, axis=1), np.take_along_axis(ids, places, axis=1)


def _on_device(rows: NDArray[np.float32], seed: int, exact_below: int, backend: Backend) -> Any:
    from hornbeam_kernels import cuda_libraries

    n = len(rows)
    on_device = backend.asarray(rows)
    exact = cuda_libraries.exact_index(on_device, backend=backend)
    if n < max(exact_below, APPROXIMATE_FROM_ON_DEVICE):
        return exact
    samples = _samples(rows, seed, exact.search)
    del exact
    for index in cuda_libraries.approximate_indexes(on_device, _lists(n), backend=backend, seed=seed):
        efforts = [least_effort(partial(_recall, index, sample), index.most) for sample in samples]
        reached = [effort for effort in efforts if effort is not None]
        if len(reached) == len(efforts):
            index.effort = max(reached)
            return index
    raise AssertionError("an inverted file of which every list is probed misses no neighbour")


def _recall_of_scan(index: Any, sample: _Sample, factor: int) -> float:
    index.k_factor = float(factor)
    scores, _ = _without(sample.own, *index.search(sample.queries, sample.ids.shape[1] + 1))
    return float(_assured((scores >= sample.scores[:, -1:] - 1e-5).mean(axis=1)))


def _recall(index: Any, sample: _Sample, effort: int) -> float:
    # Scores are compared, not ids: duplicates are as good as one another.
    index.effort = effort
    scores, _ = _without(sample.own, *index.search(sample.queries, sample.ids.shape[1] + 1))
    return float(_assured((scores >= sample.scores[:, -1:] - 1e-5).mean(axis=1)))
