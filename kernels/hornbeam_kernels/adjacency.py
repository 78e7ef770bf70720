"""Triples to CSR adjacency, both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.indexing import index_array


def adjacency(
    heads: Any, tails: Any, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """CSR adjacency of T triples over n entities, every triple seen from both of its ends.

    ``heads``, ``tails``: integers [T]. Returns ``indptr`` int64 [n+1], ``indices`` int64 [E] and ``edge_ids``
    int64 [E] with E = 2T − self-loops: the neighbours of entity i are
    ``indices[indptr[i]:indptr[i + 1]]``, reached through the triples ``edge_ids`` of the same places, which
    ascend. A self-loop stands once; parallel triples stand each. O(E log E) time, O(E) memory.
    Raises ``ValueError`` on an index outside 0..n−1 or arrays of unequal length.
    """
    h = index_array(heads, n, "heads")
    t = index_array(tails, n, "tails")
    if len(h) != len(t):
        raise ValueError(f"heads and tails differ in length: {len(h)}, {len(t)}")
    edge = np.arange(len(h), dtype=np.int64)
    back = h != t  # a self-loop is one way round only
    rows = np.concatenate((h, t[back]))  # [E]
    indices = np.concatenate((t, h[back]))  # [E]
    edge_ids = np.concatenate((edge, edge[back]))  # [E]
    order = np.lexsort((edge_ids, rows))
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    return indptr, indices[order], edge_ids[order]
