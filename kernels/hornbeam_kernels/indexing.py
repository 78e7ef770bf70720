"""Index arrays and label arrays on the host: checks, renumbering, grouping.

A label array ``labels [n]`` says which community each entity belongs to. In normal form its values are
0..m−1 with no gap, numbered by first occurrence, so that equal partitions are equal arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int32]
Indices = NDArray[np.int64]


def index_array(values: Any, size: int, what: str) -> Indices:
    """``values`` as int64 [len]; ``ValueError`` when one lies outside 0..size−1 or it is not flat."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, not of shape {array.shape}")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be integers, not {array.dtype}")
    array = array.astype(np.int64, copy=False)
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise ValueError(f"{what} must lie in 0..{size - 1}, found {low if low < 0 else high}")
    return array


def triple_arrays(
    heads: Any, relations: Any, tails: Any, n_entities: int, n_relations: int
) -> tuple[Indices, Indices, Indices]:
    """The three columns of T triples as int64 [T] each, checked."""
    h = index_array(heads, n_entities, "heads")
    r = index_array(relations, n_relations, "relations")
    t = index_array(tails, n_entities, "tails")
    if not len(h) == len(r) == len(t):
        raise ValueError(f"heads, relations and tails differ in length: {len(h)}, {len(r)}, {len(t)}")
    return h, r, t


def edge_arrays(
    heads: Any, tails: Any, weights: Any | None, n: int
) -> tuple[Indices, Indices, NDArray[np.float64]]:
    """Both ends of T edges as int64 [T] each and their weights float64 [T] (None: all 1), checked.

    Raises ``ValueError`` on an index outside 0..n−1, unequal lengths, a negative or non-finite weight.
    """
    a, b = index_array(heads, n, "heads"), index_array(tails, n, "tails")
    w = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(a) == len(b) == len(w):
        raise ValueError(f"heads, tails and weights differ in length: {len(a)}, {len(b)}, {len(w)}")
    if not np.isfinite(w).all() or (w < 0).any():
        raise ValueError("weights must be finite and ≥ 0")
    return a, b, w


def label_array(labels: Any, n: int) -> Labels:
    """``labels`` as int32 [n] of values ≥ 0; ``ValueError`` otherwise."""
    array = index_array(labels, 2**31 - 1, "labels")
    if len(array) != n:
        raise ValueError(f"labels must have one entry per row: {len(array)} for {n} rows")
    return array.astype(np.int32)


def renumber(labels: Any) -> Labels:
    """The same partition in normal form, int32 [n]: the first row's community is 0, the next new one 1, …

    O(n log n) time, O(n) memory.
    """
    array = np.asarray(labels)
    if array.size == 0:
        return np.zeros(0, dtype=np.int32)
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)  # first occurrences differ: no ties
    return rank[inverse.reshape(-1)]


def count_communities(labels: Labels) -> int:
    """m for labels in normal form (0 for no rows)."""
    return int(labels.max()) + 1 if labels.size else 0


def members_by_community(labels: Labels) -> list[Indices]:
    """For each community of labels in normal form its rows, ascending. O(n log n)."""
    m = count_communities(labels)
    order = np.lexsort((np.arange(len(labels)), labels))  # by community, then by row
    return np.split(order, np.cumsum(np.bincount(labels, minlength=m))[:-1]) if m else []
