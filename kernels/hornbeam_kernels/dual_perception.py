"""Dual perception: how well an entity fits a community, by structure and by meaning.

    φ(e, C) = w · S_r(e, C) + (1 − w) · S_s(e, C)            (Youtu-GraphRAG, arXiv 2508.19855, eq. 5 and 6)

S_r is the multiset Jaccard Σ min / Σ max of the incident relation types Ψ; S_s is the cosine of the entity's
row and the community's centroid.

Ψ(C) is the *mean* multiset of its members, not their sum: it says how often a type meets a typical member.
With the sum, Σ max grows with the community while Σ min is bounded by the entity, so S_r of anything with a
community of a thousand is near 0 and says nothing; with the mean, S_r compares like with like at any size,
and a community of clones scores exactly 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, Sparse, block_rows, select_backend
from hornbeam_kernels.indexing import Indices, Labels, count_communities, label_array, triple_arrays
from hornbeam_kernels.memory import RowBlocks
from hornbeam_kernels.propagation import unit_rows

SCORE_DECIMALS = 6
"""Scores are compared after rounding to this, so that float32 noise breaks no tie."""


def relation_type_counts(
    heads: Any,
    relations: Any,
    tails: Any,
    n_entities: int,
    n_relations: int,
    *,
    backend: Backend | None = None,
) -> Sparse:
    """Ψ of every entity: CSR float32 [n, 2R] of whole numbers.

    Column r counts the triples of type r that leave the entity (it is the head), column R + r those that
    enter: a type seen as outgoing and as incoming are two types. A self-loop counts in both. Time and memory
    O(T).
    Raises ``ValueError`` on an index out of range.
    """
    backend = backend or select_backend("cpu")
    h, r, t = triple_arrays(heads, relations, tails, n_entities, n_relations)
    rows = backend.asarray(np.concatenate((h, t)))  # [2T]
    columns = backend.asarray(np.concatenate((r, r + n_relations)))  # [2T]
    ones = backend.xp.ones(2 * len(h), dtype=backend.xp.float32)
    return backend.sparse.csr_matrix((ones, (rows, columns)), shape=(n_entities, 2 * n_relations))


def jaccard(shared: Array, size_a: Array, size_b: Array, xp: Any) -> Array:
    """Σ min / Σ max from Σ min: Σ max = |a| + |b| − Σ min. Two empty multisets: 0. Array API, broadcasts."""
    union = size_a + size_b - shared
    return xp.where(union > 0, shared / xp.where(union > 0, union, xp.ones_like(union)), xp.zeros_like(union))


def structural_similarity(
    counts_a: Sparse, counts_b: Sparse, *, backend: Backend | None = None, memory_limit: int | None = None
) -> Array:
    """S_r of every row of ``counts_a`` [a, C] with every row of ``counts_b`` [b, C]: float32 [a, b].

    ``counts_a`` holds whole numbers (entities), ``counts_b`` any numbers ≥ 0 (entities, or communities as
    ``community_counts`` gives them). In thermometer code, a whole number a as a ones and any b ≥ 0 as clip(b
    − k + 1, 0, 1) for k = 1, 2, …, min(a, b) is an inner product, exactly; so Σ_r min is one sparse–dense
    product over Σ_r min(max a_r, ⌈max b_r⌉) columns.

    Time O(b · Σ counts_a). Memory: the result, and blocks of ``counts_b`` in dense thermometer code within
    ``memory_limit`` bytes (default: a quarter of the free memory; at least one row of it).
    """
    backend = backend or select_backend("cpu")
    xp = backend.xp
    a, b = counts_a.shape[0], counts_b.shape[0]
    result = xp.zeros((a, b), dtype=xp.float32)
    if a == 0 or b == 0 or counts_a.nnz == 0 or counts_b.nnz == 0:
        return result
    levels = np.minimum(_column_max(counts_a, backend), np.ceil(_column_max(counts_b, backend))).astype(
        np.int64
    )
    kept = np.flatnonzero(levels)  # [c] types that both sides have
    if len(kept) == 0:
        return result
    size_a, size_b = _row_sums(counts_a, xp), _row_sums(counts_b, xp)  # [a], [b]
    code_a = _thermometer(counts_a, levels, backend)  # CSR [a, W]
    type_of = backend.asarray(np.repeat(kept, levels[kept]))  # [W] type of each thermometer column
    level_of = backend.asarray(_steps(levels[kept]).astype(np.float32))  # [W] 0-based level of it
    step = block_rows(4 * (2 * level_of.shape[0] + counts_b.shape[1] + a), memory_limit, backend)
    for start in range(0, b, step):
        stop = min(start + step, b)
        block = counts_b[start:stop].toarray()  # [s, C]
        code_b = xp.clip(xp.take(block, type_of, axis=1) - level_of[None, :], 0.0, 1.0)  # [s, W]
        shared = code_a @ code_b.T  # [a, s] Σ min
        result[:, start:stop] = jaccard(shared, size_a[:, None], size_b[None, start:stop], xp)
    return result


def paired_similarity(counts_a: Sparse, counts_b: Sparse, xp: Any) -> Array:
    """S_r of row i of ``counts_a`` with row i of ``counts_b``, both CSR [p, C]: float32 [p].

    Any numbers ≥ 0. Time and memory O(nnz of both).
    """
    shared = _row_sums(counts_a.minimum(counts_b), xp)
    return jaccard(shared, _row_sums(counts_a, xp), _row_sums(counts_b, xp), xp)


def centroids(x: Any, labels: Any, *, backend: Backend | None = None) -> Array:
    """Mean row of each community's members, at unit length: float32 [m, D] for ``x`` [n, D], ``labels`` [n].

    m = max label + 1. A label nobody has, or members that cancel out, give a zero row. One sparse product:
    time O(n D), memory the result.
    """
    backend = backend or select_backend("cpu")
    rows = backend.asarray(x, dtype=backend.xp.float32)
    return unit_rows(membership(labels, rows.shape[0], backend) @ rows, backend.xp)


def community_counts(counts: Sparse, labels: Any, *, backend: Backend | None = None) -> Sparse:
    """Ψ of each community, the mean of its members' (see the module): CSR float32 [m, C]. O(nnz)."""
    backend = backend or select_backend("cpu")
    members = membership(labels, counts.shape[0], backend)
    size = backend.xp.maximum(_row_sums(members, backend.xp), 1.0)  # [m]
    # Sums of whole numbers first: exact, in any order.
    return (backend.sparse.diags(1.0 / size, dtype=backend.xp.float32) @ (members @ counts)).tocsr()


def own_scores(
    x: Any,
    counts: Sparse,
    labels: Any,
    structure_weight: float = 0.3,
    *,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> NDArray[np.float32]:
    """φ(e, own community) of every entity: float32 [n], in [w − 1 … 1] (cosines may be negative).

    ``x`` [n, D] unit rows, ``counts`` CSR [n, C], ``labels`` [n], w = ``structure_weight`` in [0, 1].
    Time O(n D + nnz of the paired rows); memory the communities' centroids and Ψ plus one block of rows
    within ``memory_limit`` bytes. Raises ``ValueError`` on unequal lengths or w outside [0, 1].
    """
    if not 0.0 <= structure_weight <= 1.0:
        raise ValueError(f"structure_weight must lie in [0, 1], not {structure_weight}")
    backend = backend or select_backend("cpu")
    xp = backend.xp
    rows = backend.asarray(x, dtype=xp.float32)  # [n, D]
    own = label_array(labels, rows.shape[0])  # [n]
    if counts.shape[0] != rows.shape[0]:
        raise ValueError(f"counts must have one row per entity: {counts.shape[0]} for {rows.shape[0]}")
    scores = xp.zeros(rows.shape[0], dtype=xp.float32)
    if rows.shape[0] == 0:
        return backend.to_numpy(scores)
    centre, psi = centroids(rows, own, backend=backend), community_counts(counts, own, backend=backend)
    at = backend.asarray(own)
    blocks = RowBlocks(rows.shape[0], 8 * rows.shape[1] + 24 * counts.shape[1], memory_limit, backend)
    for block in blocks:
        with blocks.halving():
            semantic = xp.sum(rows[block, ...] * xp.take(centre, at[block], axis=0), axis=1)  # [block] S_s
            structural = paired_similarity(counts[block], psi[at[block]], xp)  # [block] S_r
            scores[block] = structure_weight * structural + (1.0 - structure_weight) * semantic
    return backend.to_numpy(scores)


def centres(scores: Any, labels: Any) -> Indices:
    """The member with the highest score of each community (eq. 6: e* = argmax φ), int64 [m].

    ``scores`` [n] from ``own_scores``, ``labels`` [n] in normal form. Among equals (to six decimals) the
    smallest index. O(n log n).
    """
    groups = _ranked(scores, labels)
    return np.asarray([group[0] for group in groups], dtype=np.int64)


def keywords(scores: Any, labels: Any, k: int) -> list[Indices]:
    """The best ``k`` members of each community by score, best first, fewer where it has fewer. O(n log n)."""
    if k < 0:
        raise ValueError(f"k must be ≥ 0, not {k}")
    return [group[:k] for group in _ranked(scores, labels)]


def _ranked(scores: Any, labels: Any) -> list[Indices]:
    value = np.asarray(scores, dtype=np.float64)
    own = label_array(labels, len(value))
    m = count_communities(own)
    if m == 0:
        return []
    sizes = np.bincount(own, minlength=m)
    if (sizes == 0).any():
        raise ValueError("labels leave out a number; renumber them first")
    order = np.lexsort((np.arange(len(value)), -np.round(value, SCORE_DECIMALS), own))
    return np.split(order, np.cumsum(sizes)[:-1])


def membership(labels: Any, n: int, backend: Backend) -> Sparse:
    """CSR float32 [m, n] of ones: row c adds up the members of community c. O(n)."""
    own: Labels = label_array(labels, n)
    place = (backend.asarray(own), backend.asarray(np.arange(n)))
    ones = backend.xp.ones(n, dtype=backend.xp.float32)
    return backend.sparse.csr_matrix((ones, place), shape=(count_communities(own), n))


def _row_sums(counts: Sparse, xp: Any) -> Array:
    return counts @ xp.ones(counts.shape[1], dtype=xp.float32)


def _column_max(counts: Sparse, backend: Backend) -> NDArray[np.float64]:
    # Entries are few: they come to the host, where a maximum per column is one call.
    top = np.zeros(counts.shape[1])
    np.maximum.at(top, backend.to_numpy(counts.indices), backend.to_numpy(counts.data))
    return top


def _steps(lengths: Indices) -> Indices:
    # [3, 1, 2] → [0 1 2 | 0 | 0 1]
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _thermometer(counts: Sparse, levels: Indices, backend: Backend) -> Sparse:
    # CSR [a, Σ levels]: entry (i, offset_r + k) = 1 for k < min(count_ir, levels_r).
    column = backend.to_numpy(counts.indices)
    ones = np.minimum(np.rint(backend.to_numpy(counts.data)).astype(np.int64), levels[column])  # [nnz]
    before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(ones)))
    indices = np.repeat((np.cumsum(levels) - levels)[column], ones) + _steps(ones)
    indptr = before[backend.to_numpy(counts.indptr)]
    data = backend.xp.ones(len(indices), dtype=backend.xp.float32)
    parts = (data, backend.asarray(indices), backend.asarray(indptr))
    return backend.sparse.csr_matrix(parts, shape=(counts.shape[0], int(levels.sum())))
