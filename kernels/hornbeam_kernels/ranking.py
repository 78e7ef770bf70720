"""Personalised PageRank, one query or a batch of them as one sparse–dense product.

    p = (1 − a) v + a (Wᵀ p + (Σ_dangling p_i) v)              (Haveliwala 2002; ``networkx.pagerank``)

a is the damping, v a query's personalisation (sums to 1), W the weighted adjacency with rows that sum to 1; a
node whose weights sum to 0 is dangling, and what it holds goes back to v. With that rule p is the solution of

    x = v + a Wᵀ x,     p = x / ‖x‖₁                              (Del Corso, Gulli and Romani 2005)

so dangling nodes cost nothing. Four things make a batch cheap on a CPU, where it is bound by the memory:

* Blocks of 16 queries in float32, C order: the 16 values of a node are one cache line, which one gather
  brings in, where a query alone brings in the same line for one value. Wider blocks fall out of the cache: 64
  float64 columns are no faster a query than one.
* Nodes are renumbered once a graph (reverse Cuthill–McKee): neighbours' lines lie close to each other.
* The rows of a block are dealt out to threads, which share it in the cache. (A block for each thread was
  slower: two of them do not fit.) A query alone runs on one thread.
* float32 is not trusted. It computes a correction, whose residual is taken in float64, which the next
  correction starts from (iterative refinement): a star of 100,000 leaves is as exact as any graph.

Undirected graphs take the Chebyshev iteration (Golub and Varga 1961): W is then similar to a symmetric matrix
with eigenvalues in [−1, 1], and the error falls by a / (1 + √(1 − a²)) a step, .56 at a = .85, where power
iteration has .85: about 35 products at the default tolerance. Directed graphs take power iteration.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, Sparse, block_rows, select_backend
from hornbeam_kernels.indexing import Indices, edge_arrays

QUERIES_A_BLOCK = 16
"""Columns of a block on the CPU: 16 float32 are one cache line of 64 bytes."""
CACHED_VALUES = 2**21
"""Up to this many values (8 MiB of float32: the shared cache holds them beside the rest) a block may be
wider, up to 64 columns: 32 columns cost a quarter less each than 16 as long as they are in the cache."""
BYTES_A_VALUE = 48
"""Working memory for each node and query of a block: three float64 and five float32 values, and a margin."""
ENTRIES_A_RANGE = 50_000
"""Entries of the matrix that are worth a thread's while."""
FOLD = 64
"""Rows that are added up side by side in a column sum."""
STEPS_A_CORRECTION = 20
"""Steps between two residuals in float64: at a = .85 they reduce it to 10⁻⁵, all that float32 can."""


class NotConvergedError(RuntimeError):
    """The iterations that were allowed did not reach the tolerance; the message says what they reached."""


@dataclass(frozen=True)
class RankingGraph:
    """A graph made ready for any number of queries: Wᵀ, its nodes renumbered."""

    n: int
    """Nodes."""
    order: Indices
    """int64 [n]: the node at each place."""
    place: Indices
    """int64 [n]: the place of each node."""
    directed: bool
    fast: Sparse
    """Wᵀ, CSR float32 [n, n]."""
    exact: Sparse
    """The same in float64; shares its indices with ``fast``."""
    ranges: tuple[slice, ...]
    """Rows that a thread works on at a time, with about equally many entries."""
    backend: Backend


def ranking_graph(
    heads: Any,
    tails: Any,
    n: int,
    *,
    weights: Any | None = None,
    directed: bool = False,
    reorder: bool = True,
    backend: Backend | None = None,
) -> RankingGraph:
    """The graph of T triples over n nodes, ready for ``personalised_pagerank``.

    ``heads``, ``tails`` integers [T]; ``weights`` [T] finite and ≥ 0 (None: all 1). Parallel triples add up,
    a self-loop counts once, a triple of weight 0 is as good as none. Undirected unless ``directed``, then a
    walk goes from head to tail. ``reorder`` renumbers the nodes inside for locality; results are in the
    caller's order either way and equal to rounding.

    O(T log T) time, once a graph (a third of a second for 10⁶ triples); keeps 32 bytes a triple and 24 a
    node. Raises ``ValueError`` on an index outside 0..n−1, arrays of unequal length, a negative or non-finite
    weight.
    """
    backend = backend or select_backend("cpu")
    h, t, w = edge_arrays(heads, tails, weights, n)
    matrix, order, place = _transposed_walk(h, t, w, n, directed, reorder)
    indptr, indices, data = (backend.asarray(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    fast, exact = (
        backend.sparse.csr_matrix((backend.asarray(data, dtype=kind), indices, indptr), shape=(n, n))
        for kind in (backend.xp.float32, backend.xp.float64)
    )
    return RankingGraph(n, order, place, directed, fast, exact, _ranges(matrix.indptr, backend), backend)


def personalised_pagerank(
    graph: RankingGraph,
    personalisation: Any | None = None,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
    memory_limit: int | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """PageRank personalised to each query: float64 [n, q], or [n] for one query; every column sums to 1.

    ``personalisation``: one query [n], a batch [n, q], or a sparse matrix [n, q] of the seeds alone (anything
    with ``tocsc``, SciPy's or the backend's); any numbers ≥ 0, a column need not sum to 1. None is the
    uniform vector: PageRank itself, [n]. A graph without nodes gives an empty result.

    ``tolerance`` bounds the error of each column in the sum of absolute differences: ‖p − p*‖₁ ≤
    2 ‖r‖₁ / ((1 − a) ‖x‖₁), with r the residual of the equation for x in float64, which is checked, not
    estimated. So no node is off by more. (``networkx.pagerank`` stops at a change of n · tol, which at 10⁵
    nodes and its default says little: compare with a tol of 10⁻¹⁴.)

    The same bits whatever the number of ``threads`` (default: the cores this process may use), and but for
    rounding whatever the block that a query shares. Time O(log(1/tolerance) · (T + n) · q), about 35 products
    at the defaults. Memory: the result, and a block of 16 queries (64 in small graphs) at 48 n bytes a query,
    narrower where ``memory_limit`` bytes (default: a quarter of the free memory) do not hold it, at the least
    one query.

    Raises ``NotConvergedError`` when ``max_iterations`` products do not reach ``tolerance``; ``ValueError``
    on a shape that does not fit, a negative or non-finite personalisation, a query without a seed, damping
    outside [0, 1), tolerance ≤ 0, max_iterations or threads < 1.
    """
    if not 0.0 <= damping < 1.0 or not tolerance > 0.0:
        raise ValueError(f"damping must lie in [0, 1) and tolerance be > 0, not {damping} and {tolerance}")
    if max_iterations < 1 or (threads is not None and threads < 1):
        raise ValueError("max_iterations and threads must be ≥ 1")
    n = graph.n
    given: Any = np.ones(n) if personalisation is None else personalisation
    sparse = hasattr(given, "tocsc")
    seeds: Any = given.tocsc() if sparse else graph.backend.to_numpy(given).astype(np.float64, copy=False)
    if seeds.ndim not in (1, 2) or seeds.shape[0] != n:
        raise ValueError(f"personalisation must be [{n}] or [{n}, q], not of shape {seeds.shape}")
    single = seeds.ndim == 1
    if single:
        seeds = seeds[:, None]
    queries = seeds.shape[1]
    result = np.zeros((n, queries))
    if n == 0 or queries == 0:
        return result[:, 0] if single else result
    width = _blocking(graph, queries, memory_limit)
    alone = width == 1 or threads == 1
    ranges = (slice(0, n),) if width == 1 else graph.ranges
    order, place = graph.backend.asarray(graph.order), graph.backend.asarray(graph.place)
    xp = graph.backend.xp
    with nullcontext() if alone or len(ranges) == 1 else ThreadPoolExecutor(threads or _cores()) as pool:
        team = _Team(ranges, pool)
        for start in range(0, queries, width):
            columns = slice(start, min(start + width, queries))
            block = seeds[:, columns].toarray() if sparse else seeds[:, columns]
            v = _gather(team, graph.backend.asarray(block, dtype=xp.float64), order, xp)  # [n, w]
            del block
            _normalise(v, start, graph.backend)
            found = _solve(graph, team, v, damping, tolerance, max_iterations)
            result[:, columns] = graph.backend.to_numpy(_gather(team, found, place, xp))
            del found, v  # or they live on beside the next block
    return result[:, 0] if single else result


def _gather(team: _Team, x: Array, rows: Array, xp: Any) -> Array:
    # A copy of these rows of x.
    out = xp.zeros((rows.shape[0], x.shape[1]), dtype=x.dtype)

    def part(at: slice) -> None:
        out[at, ...] = xp.take(x, rows[at], axis=0)

    team.each(part)
    return out


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _transposed_walk(
    h: Indices, t: Indices, w: NDArray[np.float64], n: int, directed: bool, reorder: bool
) -> tuple[Any, Indices, Indices]:
    # Wᵀ as SciPy CSR float64 [n, n] in renumbered order, the node at each place, and the place of each node.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    if not directed:
        back = h != t  # a self-loop is one way round only
        h, t, w = np.concatenate((h, t[back])), np.concatenate((t, h[back])), np.concatenate((w, w[back]))
    leaving = np.bincount(h, weights=w, minlength=n)  # [n]
    kept = w > 0
    h, t, w = h[kept], t[kept], w[kept]
    order = np.arange(n, dtype=np.int64)
    if reorder and len(h):
        pattern = csr_matrix((np.ones(len(h), dtype=np.int8), (t, h)), shape=(n, n))
        order = reverse_cuthill_mckee(pattern, symmetric_mode=not directed).astype(np.int64)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    matrix = csr_matrix((w / leaving[h], (place[t], place[h])), shape=(n, n))
    matrix.sum_duplicates()
    return matrix, order, place


def _ranges(indptr: NDArray[Any], backend: Backend) -> tuple[slice, ...]:
    # Rows of about equally many entries; how many follows from the graph, so that no bit follows the threads.
    n, entries = len(indptr) - 1, int(indptr[-1])
    count = 1
    while not backend.on_device and count < 16 and entries >= 2 * count * ENTRIES_A_RANGE:
        count *= 2
    cuts = np.searchsorted(indptr, entries * np.arange(1, count) // count)
    return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise((0, *cuts, n)))


def _blocking(graph: RankingGraph, queries: int, memory_limit: int | None) -> int:
    # Queries a block.
    affordable = block_rows(BYTES_A_VALUE * graph.n, memory_limit, graph.backend)
    width = queries if graph.backend.on_device else QUERIES_A_BLOCK
    while width < 64 and 2 * width * graph.n <= CACHED_VALUES:
        width *= 2
    return min(width, queries, affordable)


@dataclass(frozen=True)
class _Team:
    """Ranges of rows, in turn or on threads."""

    ranges: tuple[slice, ...]
    pool: ThreadPoolExecutor | None

    def each(self, work: Callable[[slice], Any]) -> list[Any]:
        """``work`` of every range; the results in order."""
        return list((self.pool.map if self.pool else map)(work, self.ranges))


def _normalise(v: Array, first: int, backend: Backend) -> None:
    # Columns of v to sum 1, in place.
    xp = backend.xp
    total = _column_sums(v, xp)
    if not bool(xp.all(xp.isfinite(total))) or bool(xp.min(v) < 0):
        raise ValueError("personalisation must be finite and ≥ 0")
    missing = np.flatnonzero(backend.to_numpy(total) <= 0)
    if len(missing):
        raise ValueError(f"query {first + int(missing[0])} has no seed: its personalisation is all 0")
    v /= total


def _column_sums(x: Array, xp: Any) -> Array:
    # Sums [w] of the columns of x [n, w] in float64. Rows are folded first: NumPy adds up long rows ten times
    # faster than short ones.
    whole = x.shape[0] // FOLD * FOLD
    folded = xp.sum(xp.reshape(x[:whole, ...], (-1, FOLD * x.shape[1])), axis=0, dtype=xp.float64)
    rest = xp.sum(x[whole:, ...], axis=0, dtype=xp.float64)
    return xp.sum(xp.reshape(folded, (FOLD, x.shape[1])), axis=0) + rest


def _solve(
    graph: RankingGraph, team: _Team, r: Array, a: float, tolerance: float, max_iterations: int
) -> Array:
    # p of personalisation r [n, w], of columns that sum to 1 (overwritten: it is the residual of x = 0).
    if a == 0.0:
        return r
    xp = graph.backend.xp
    rate = a if graph.directed else a / (1.0 + math.sqrt(1.0 - a * a))
    x, size, total, done = xp.zeros_like(r), xp.ones(r.shape[1]), 1.0, 0  # [w] ‖r‖₁, and ‖x‖₁ or its bound 1
    while (error := float(xp.max(2.0 * size / ((1.0 - a) * total)))) > tolerance or not done:
        if done >= max_iterations:
            raise NotConvergedError(
                f"PageRank has an error of up to {error:.1e} after {done} iterations, above the tolerance "
                f"{tolerance:.1e}: allow more iterations, a larger tolerance or a smaller damping"
            )
        steps = math.ceil(math.log(max(2.0, 2.0 * error / tolerance)) / -math.log(rate))
        steps = min(max(1, steps), STEPS_A_CORRECTION, max_iterations - done)
        done += steps
        scale = xp.where(size > 0, size, 1.0)
        d = _correction(graph, team, r, scale, a, steps)
        _take_off(graph, team, r, d, scale, a)

        def add(rows: slice, scale: Array = scale, d: Array = d) -> tuple[Array, Array]:
            part = graph.backend.asarray(d[rows, ...], dtype=xp.float64)
            part *= scale
            x[rows, ...] += part
            del part
            return _column_sums(xp.abs(r[rows, ...]), xp), _column_sums(x[rows, ...], xp)

        parts = team.each(add)
        size, total = sum(part[0] for part in parts), xp.maximum(sum(part[1] for part in parts), 1.0)
        del add, d  # or they live on through the next correction

    def positive(rows: slice) -> Array:
        x[rows, ...] = xp.maximum(x[rows, ...], 0.0)  # corrections may leave −tolerance
        return _column_sums(x[rows, ...], xp)

    x /= sum(team.each(positive))
    return x


def _correction(graph: RankingGraph, team: _Team, r: Array, scale: Array, a: float, steps: int) -> Array:
    # `steps` steps towards the solution of d = b + a Wᵀ d, b = r / scale, from 0; float32 [n, w]. The first
    # costs no product.
    xp = graph.backend.xp
    now, before, b = (xp.zeros(r.shape, dtype=xp.float32) for _ in range(3))

    def start(rows: slice) -> None:
        now[rows, ...] = graph.backend.asarray(r[rows, ...] / scale, dtype=xp.float32)
        b[rows, ...] = now[rows, ...] * (1.0 / a)

    def step(rows: slice, now: Array, next_: Array, omega: float) -> None:
        part = next_[rows, ...]  # a view: it holds the one before
        part *= (1.0 - omega) / (omega * a)
        part += b[rows, ...]
        _add_product(graph.fast, rows, now, part)
        part *= omega * a  # ω (b + a Wᵀ now) + (1 − ω) before

    team.each(start)
    omega = 2.0
    for _ in range(steps - 1):
        omega = 1.0 if graph.directed else 1.0 / (1.0 - a * a * omega / 4.0)
        team.each(partial(step, now=now, next_=before, omega=omega))
        now, before = before, now
    return now


def _take_off(graph: RankingGraph, team: _Team, r: Array, d: Array, scale: Array, a: float) -> None:
    # r becomes the residual of x + scale d: r − scale (d − a Wᵀ d), in float64, in place.
    exact = graph.backend.asarray(d, dtype=graph.backend.xp.float64)

    def move(rows: slice) -> None:
        part = exact[rows, ...] * (-1.0 / a)
        _add_product(graph.exact, rows, exact, part)
        part *= a * scale
        r[rows, ...] += part

    team.each(move)


def _add_product(matrix: Sparse, rows: slice, x: Array, y: Array) -> None:
    # y += matrix[rows] @ x, in place, for C-ordered x [n, w] and y [rows, w].
    if not isinstance(y, np.ndarray):
        y += matrix @ x  # a device has all rows in one range
        return
    # What SciPy's `@` calls as well, but that copies the rows and begins with a new array of zeros each time.
    from scipy.sparse import _sparsetools as products

    flat = y.view()
    flat.shape = (y.size,)  # a view or an error, never a copy
    parts = matrix.indptr[rows.start : rows.stop + 1], matrix.indices, matrix.data, x.reshape(-1), flat
    if y.shape[1] == 1:
        products.csr_matvec(y.shape[0], matrix.shape[1], *parts)
    else:
        products.csr_matvecs(y.shape[0], matrix.shape[1], y.shape[1], *parts)
