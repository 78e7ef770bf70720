"""Clusters where rows lie densely: DBSCAN by cosine, which needs no number of clusters and has rows of noise.

scikit-learn's version keeps every row's neighbours, n² numbers where all rows are alike (ten thousand
descriptions of one city are); here they are looked at in blocks, and equal rows once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels import cuda_libraries
from hornbeam_kernels.backend import Array, Backend, one_thread, row_blocks, select_backend
from hornbeam_kernels.clustering import row_hashes
from hornbeam_kernels.dual_perception import SCORE_DECIMALS
from hornbeam_kernels.indexing import Indices, Labels, renumber
from hornbeam_kernels.partition import connected_components
from hornbeam_kernels.propagation import unit_rows

NOISE = -1
"""The label of a row that lies in no cluster."""
DEVICE_MIN_ROWS = 5_000
"""Fewer distinct rows are clustered on the host: starting the device's kernels would cost more."""
ENTRY_BYTES = 16
"""Of a block's arrays, for each of its rows and each other row."""


def dbscan(
    x: Any, *, eps: float, min_samples: int, backend: Backend | None = None, memory_limit: int | None = None
) -> Labels:
    """DBSCAN (Ester et al. 1996) of the rows of ``x`` [n, d] by cosine distance 1 − cos: labels int32 [n].

    Two rows are neighbours when 1 − cos ≤ ``eps`` (to six decimals, so that float32's last digits decide
    nothing); a core row has ``min_samples`` neighbours or more, itself counted; core rows that are neighbours
    share a cluster. A row that is no core joins the cluster of its nearest neighbour among the core rows,
    where the paper leaves it to the order of the rows; one without such a neighbour is ``NOISE``, and so is a
    row of zeros, which has no direction. Clusters are numbered by first occurrence.

    Deterministic: one set of rows gives one partition, in whatever order they come, and on the CPU whatever
    the number of threads. With a ``backend`` on a CUDA device, ``DEVICE_MIN_ROWS`` distinct rows or more are
    clustered there, by ``cuda_libraries.dbscan_cores`` where cuML is installed. Time O(m² d) for m distinct
    rows. Memory: ``x`` in float32 twice, and blocks of [rows, m] within ``memory_limit`` bytes (a quarter of
    what is free by default).
    Raises ``ValueError`` when ``x`` is not [n, d] of finite numbers, ``eps`` < 0 or ``min_samples`` < 1.
    """
    if not eps >= 0 or min_samples < 1:
        raise ValueError(f"eps must be ≥ 0 and min_samples ≥ 1, not {eps} and {min_samples}")
    rows = np.asarray(x, dtype=np.float32)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError(f"x must be [n, d] of finite numbers (its shape: {rows.shape})")
    labels = np.full(len(rows), NOISE, dtype=np.int32)
    directed = np.flatnonzero((rows != 0).any(axis=1))
    if len(directed) == 0:
        return labels
    rows = unit_rows(rows[directed], np)
    # By their hashes: an order that does not follow the one in which the rows came.
    _, first, which, copies = np.unique(
        row_hashes(rows), return_index=True, return_inverse=True, return_counts=True
    )
    least = 1.0 - eps - 0.5 * 10.0**-SCORE_DECIMALS
    with one_thread():
        found = _of_distinct(rows[first], copies, least, min_samples, backend, memory_limit)[which]
    clustered = found != NOISE
    labels[directed[clustered]] = renumber(found[clustered])
    return labels


def _of_distinct(
    rows: NDArray[np.float32],
    copies: Indices,
    least: float,
    min_samples: int,
    backend: Backend | None,
    memory_limit: int | None,
) -> Labels:
    # Labels [m] of distinct unit rows [m, d], each there `copies` times; neighbours: cos ≥ `least`.
    if backend is None or (backend.on_device and len(rows) < DEVICE_MIN_ROWS):
        backend = select_backend("cpu")
    u = backend.asarray(rows)
    if backend.on_device and cuda_libraries.has_dbscan():
        labels = cuda_libraries.dbscan_cores(
            u, copies, eps=1.0 - least, min_samples=min_samples, backend=backend, memory_limit=memory_limit
        )
    else:
        labels = _cores(u, copies, least, min_samples, backend, memory_limit)
    _join_borders(labels, u, least, backend, memory_limit)
    return labels


def _cores(
    u: Array, copies: Indices, least: float, min_samples: int, backend: Backend, memory_limit: int | None
) -> Labels:
    # Clusters of the core rows [m]; all other rows are noise as yet.
    xp = backend.xp
    m = u.shape[0]
    weights = backend.asarray(copies, dtype=xp.float32)[None, :]  # whole numbers: exact below 2²⁴ rows
    mass = np.empty(m)
    for block in row_blocks(m, ENTRY_BYTES * m, memory_limit, backend):
        near = xp.matmul(u[block, ...], u.T) >= least  # [b, m]
        mass[block] = backend.to_numpy(xp.sum(xp.where(near, weights, xp.zeros_like(weights)), axis=1))
    labels = np.full(m, NOISE, dtype=np.int32)
    core = np.flatnonzero(mass >= min_samples)
    labels[core] = _joined(xp.take(u, backend.asarray(core), axis=0), least, backend, memory_limit)
    return labels


def _joined(u: Array, least: float, backend: Backend, memory_limit: int | None) -> Labels:
    # Connected components of the core rows u [c, d], as labels. Within a block, every row and every column
    # joins the lowest component among its neighbours until none is lower: no list of neighbours is written.
    xp = backend.xp
    c = u.shape[0]
    component: Labels = np.arange(c, dtype=np.int32)
    for block in row_blocks(c, ENTRY_BYTES * c, memory_limit, backend):
        near = xp.matmul(u[block, ...], u.T) >= least  # [b, c]
        while True:
            by_row, by_column = (
                backend.to_numpy(xp.min(xp.where(near, others, xp.full_like(others, c)), axis=axis))
                for others, axis in (
                    (backend.asarray(component)[None, :], 1),
                    (backend.asarray(component[block])[:, None], 0),
                )
            )
            own = np.concatenate((component[block], component))
            lowest = np.concatenate((by_row, by_column))
            lower = lowest < own
            if not lower.any():
                break
            component = connected_components(own[lower], lowest[lower], c)[component]
    return component


def _join_borders(labels: Labels, u: Array, least: float, backend: Backend, memory_limit: int | None) -> None:
    # Gives every row of noise that has a core row among its neighbours the label of the nearest one.
    xp = backend.xp
    core, other = np.flatnonzero(labels != NOISE), np.flatnonzero(labels == NOISE)
    if len(core) == 0 or len(other) == 0:
        return
    cores = xp.take(u, backend.asarray(core), axis=0)
    for block in row_blocks(len(other), ENTRY_BYTES * len(core), memory_limit, backend):
        some = xp.take(u, backend.asarray(other[block]), axis=0)
        cosine = xp.matmul(some, cores.T)  # [b, cores]
        nearest = backend.to_numpy(xp.argmax(xp.round(cosine * 10**SCORE_DECIMALS), axis=1))
        reached = backend.to_numpy(xp.max(cosine, axis=1)) >= least
        labels[other[block][reached]] = labels[core[nearest[reached]]]
