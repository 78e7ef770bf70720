"""Levels of communities above the leaves: city → district → landmark, read upwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from hornbeam_kernels.backend import Backend
from hornbeam_kernels.clustering import kmeans
from hornbeam_kernels.dual_perception import centroids
from hornbeam_kernels.indexing import Labels, count_communities, label_array, renumber


def community_levels(
    x: Any,
    leaf_labels: Any,
    *,
    members_per_cluster: int = 10,
    restarts: int = 5,
    seed: int = 42,
    backend: Backend | None = None,
) -> list[Labels]:
    """Label arrays int32 [n], one per level: level 0 = the leaves, each further one coarser.

    ``x`` [n, D] unit rows, ``leaf_labels`` [n]. Level l + 1 groups the m communities of level l by K-means on
    their centroids with k = ⌊m/β⌋, β = ``members_per_cluster``, as long as that makes at least max(2, ⌊β/2⌋)
    groups. So with β = 10 there is one level below 50 leaves, a second from 50, a third from 500. Each level
    is a partition of the entities, and a community lies in exactly one of the level above.

    Deterministic like ``kmeans``. Time O(restarts · iterations · m k D) for the first level; memory 4 m D
    bytes.
    Raises ``ValueError`` on unequal lengths or β < 2.
    """
    if members_per_cluster < 2:
        raise ValueError(f"members_per_cluster must be ≥ 2, not {members_per_cluster}")
    rows = np.asarray(x, dtype=np.float32)
    levels = [renumber(label_array(leaf_labels, len(rows)))]
    while True:
        below = levels[-1]
        m = count_communities(below)
        k = m // members_per_cluster
        if k < max(2, members_per_cluster // 2):
            return levels
        parent = kmeans(centroids(rows, below), k, restarts=restarts, seed=seed, backend=backend)  # [m]
        above = renumber(parent[below])
        if not 1 < count_communities(above) < m:  # centroids that K-means cannot tell apart
            return levels
        levels.append(above)
