"""A hierarchy of communities carried over to a graph that has changed a little."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Backend, row_blocks, select_backend
from hornbeam_kernels.communities import (
    CommunityTree,
    Graph,
    Method,
    find_leaves,
    grown_tree,
    represent,
)
from hornbeam_kernels.dual_perception import SCORE_DECIMALS, centroids
from hornbeam_kernels.indexing import Labels, count_communities, renumber
from hornbeam_kernels.signals import Signals

NEW = -1
"""In place of a label: the entity was not there before."""


def update_tree(
    graph: Graph,
    before: list[Any],
    lost: Any,
    method: Method | None = None,
    *,
    signals: Signals | None = None,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> CommunityTree:
    """The tree of a graph from the tree that it had: only touched leaves are found anew.

    ``before``: the levels of the old tree for the n entities of now, leaves first, integers [n] each, ``NEW``
    for an entity that was not there; a leaf must lie in one community of the next level. ``lost``: booleans
    [m], the old leaves that have lost a member. ``signals``: those of the old tree, taken for
    those of now; None: they are measured.

    A leaf is touched if it has lost a member or is the one that a new entity fits best (cosine with its
    centroid). The entities of touched leaves and the new ones, together, are clustered as ``community_tree``
    clusters a graph, among themselves; all other leaves stay as they are. Above, a leaf that was found anew
    goes to the community whose untouched part it fits best; the number of levels stays. If nothing is left
    untouched, that is ``community_tree``.

    Deterministic and independent of the order of entities, like it. Time: the representation of the whole
    graph O(n d + T), one cosine of each new entity with each old leaf, and the clustering of what is touched.
    Raises ``ValueError`` on labels that do not fit.
    """
    method = method or Method()
    backend = backend or select_backend("cpu")
    ordered = represent(graph, method, signals=signals, backend=backend, memory_limit=memory_limit)
    order = np.argsort(ordered.place)
    old = [_labels(level, len(order))[order] for level in before]
    touched = np.array(lost, dtype=bool)
    if not old or len(touched) <= int(old[0].max(initial=NEW)):
        raise ValueError(f"lost must say of each old leaf whether it has lost a member: {len(touched)}")
    fresh = old[0] == NEW
    if fresh.all():
        return grown_tree(ordered, method, backend, memory_limit)
    touched[_nearest_communities(ordered.rows, old[0], fresh, backend, memory_limit)] = True
    region = fresh | touched[old[0]]
    if region.all():
        return grown_tree(ordered, method, backend, memory_limit)
    leaves = old[0].astype(np.int64)
    if region.any():
        part = ordered.part(region, backend)
        leaves[region] = len(touched) + find_leaves(part, method, backend=backend, memory_limit=memory_limit)
    levels = [renumber(leaves)]
    for number, level in enumerate(old[1:]):
        if number == 0:
            level = _districts(ordered.rows, levels[0], level, region, backend, memory_limit)
        else:
            level = _carried(levels[-1], level, region)
        levels.append(renumber(level))
    return ordered.tree(levels, backend)


def _districts(
    rows: NDArray[np.float32],
    leaves: Labels,
    old: Labels,
    region: NDArray[np.bool_],
    backend: Backend,
    memory_limit: int | None,
) -> Labels:
    # The level above the leaves [n]: untouched entities keep their community, each leaf that was found anew
    # goes to the one that its centroid fits best.
    labels = np.where(region, NEW, old)
    moving, number = np.unique(leaves[region], return_inverse=True)
    if not len(moving):
        return labels
    centres = backend.to_numpy(centroids(rows[region], number, backend=backend))
    places = np.concatenate((labels[~region], np.full(len(moving), NEW, dtype=labels.dtype)))
    stacked = np.concatenate((rows[~region], centres))
    best = _nearest_communities(stacked, places, places == NEW, backend, memory_limit)
    labels[region] = best[number]
    return labels


def _carried(below: Labels, old: Labels, region: NDArray[np.bool_]) -> Labels:
    # A level further up [n]: each community of the level below has untouched entities, which say where it is.
    parent = np.full(count_communities(below), NEW, dtype=old.dtype)
    parent[below[~region]] = old[~region]
    return parent[below]


def _nearest_communities(
    rows: NDArray[np.float32],
    labels: Labels,
    asking: NDArray[np.bool_],
    backend: Backend,
    memory_limit: int | None,
) -> NDArray[np.int64]:
    # For each asking row, the label (of those that are not NEW) whose centroid has the greatest cosine; the
    # lowest among equals.
    there = labels != NEW
    known = np.unique(labels[there])
    if not len(known) or not asking.any():
        return np.zeros(0, dtype=np.int64)
    centre = centroids(rows[there], np.searchsorted(known, labels[there]), backend=backend)  # [m, D]
    asked = backend.asarray(rows[asking])
    best = np.empty(asked.shape[0], dtype=np.int64)
    for block in row_blocks(asked.shape[0], 8 * len(known), memory_limit, backend):
        cosine = backend.to_numpy(asked[block, ...] @ centre.T)
        best[block] = known[np.round(cosine.astype(np.float64), SCORE_DECIMALS).argmax(axis=1)]
    return best


def _labels(level: Any, n: int) -> Labels:
    labels = np.asarray(level)
    if labels.shape != (n,) or not np.issubdtype(labels.dtype, np.integer) or (labels < NEW).any():
        raise ValueError(f"a level must be {n} integers ≥ {NEW}, not {labels.dtype} {labels.shape}")
    return labels.astype(np.int32)
