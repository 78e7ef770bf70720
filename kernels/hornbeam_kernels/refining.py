"""Moving single entities to the community that they fit best, between rounds of merging."""

from __future__ import annotations

from typing import Any

import numpy as np

from hornbeam_kernels.backend import Backend, row_blocks, select_backend
from hornbeam_kernels.dual_perception import SCORE_DECIMALS, centroids
from hornbeam_kernels.indexing import Indices, Labels, count_communities, label_array, renumber
from hornbeam_kernels.merging import EXACT_BELOW
from hornbeam_kernels.search import build_index, search


def refine_communities(
    x: Any,
    labels: Any,
    *,
    max_size: int,
    rounds: int = 2,
    candidates: int = 16,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> Labels:
    """At most ``rounds`` times, every entity to the nearest centroid: labels int32 [n] in normal form.

    ``x`` [n, D] unit rows, ``labels`` [n]. An entity looks at its own community and at the ``candidates``
    communities whose centroids are nearest to its own community's; it moves to the one with the greatest
    cosine (to six decimals; its own, then the lowest number, among equals). A community takes in what brings
    its size to ``max_size``, those that gain most by it first. Small clusters that merging has put together
    give better centroids than K-means had: this lets the entities use them.

    Deterministic. Time O(rounds · (n · candidates · D + m² D)) below ``merging.EXACT_BELOW`` communities.
    Memory: centroids [m, D], ``labels`` twice, blocks of [rows, candidates, D] within ``memory_limit`` bytes.
    Raises ``ValueError`` on unequal lengths or ``candidates`` < 1.
    """
    if candidates < 1:
        raise ValueError(f"candidates must be ≥ 1, not {candidates}")
    backend = backend or select_backend("cpu")
    rows = backend.asarray(x, dtype=backend.xp.float32)
    own = renumber(label_array(labels, rows.shape[0]))
    for _ in range(rounds):
        m = count_communities(own)
        if m < 2:
            break
        best, gain = _best_communities(rows, own, min(candidates, m - 1), backend, memory_limit)
        moved = _move(own, best, gain, max_size)
        if (moved == own).all():
            break
        own = renumber(moved)
    return own


def _best_communities(
    x: Any, own: Labels, candidates: int, backend: Backend, memory_limit: int | None
) -> tuple[Labels, Any]:
    # Each entity's best community [n] and how much better it is than its own [n].
    xp = backend.xp
    centroid = centroids(x, own, backend=backend)  # [m, D]
    host = backend.to_numpy(centroid)
    index = build_index(host, exact_below=EXACT_BELOW, backend=backend)
    near = search(index, host, candidates + 1)[1]  # [m, c]
    m = len(near)
    alone = np.where(near < 0, np.arange(m)[:, None], near)  # a place not filled: its own
    best = np.empty(len(own), dtype=np.int32)
    gain = np.empty(len(own), dtype=np.float64)
    for block in row_blocks(len(own), 4 * (candidates + 2) * (x.shape[1] + 8), memory_limit, backend):
        options = alone[own[block]]  # [b, c] community numbers
        options = np.concatenate((own[block][:, None], options), axis=1)  # its own first
        flat = xp.take(centroid, backend.asarray(options.reshape(-1)), axis=0)
        others = xp.reshape(flat, (*options.shape, flat.shape[1]))  # [b, c + 1, D]
        cosine = backend.to_numpy(xp.matmul(others, x[block, ...][:, :, None])[:, :, 0])  # [b, c + 1]
        cosine = np.round(cosine.astype(np.float64), SCORE_DECIMALS)
        top = cosine.max(axis=1)  # [b]
        is_best = cosine == top[:, None]
        lowest = np.where(is_best, options, m).min(axis=1)
        best[block] = np.where(is_best[:, 0], own[block], lowest)
        gain[block] = top - cosine[:, 0]
    return best, gain


def _move(own: Labels, best: Labels, gain: Any, max_size: int) -> Labels:
    # The moves that the sizes allow, those with the greatest gain first.
    movers: Indices = np.flatnonzero(best != own)
    order = movers[np.lexsort((movers, -gain[movers], best[movers]))]
    target = best[order]
    first = np.searchsorted(target, target, side="left")  # where the movers to the same community begin
    room = max_size - np.bincount(own, minlength=int(own.max()) + 1)
    accepted = order[np.arange(len(order)) - first < room[target]]
    moved = own.copy()
    moved[accepted] = best[accepted]
    return moved
