"""Entity representation: what an entity is, seen through the triples that touch it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, Sparse, row_blocks, select_backend
from hornbeam_kernels.indexing import Indices, triple_arrays


def unit_rows(x: Array, xp: Any) -> Array:
    """The rows of ``x`` [n, d] at length 1; zero rows stay zero. Array API; O(n d) time and memory."""
    length = xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))  # [n, 1]
    return x / xp.where(length > 0, length, xp.ones_like(length))


def entity_representation(
    entity_vectors: Any,
    relation_vectors: Any,
    heads: Any,
    relations: Any,
    tails: Any,
    *,
    form: Literal["propagated", "paper"] = "propagated",
    hops: int = 2,
    own_weight: float = 0.3,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> NDArray[np.float32]:
    """One unit row [3d] per entity: head slot ‖ relation slot ‖ tail slot.

    ``entity_vectors`` [n, d], ``relation_vectors`` [R, d] (text embeddings, any real dtype), ``heads``,
    ``relations``, ``tails`` integers [T]. Returns float32 [n, 3d]; rows have length 1 (0 where everything
    that an entity could show is a zero vector).

    ``form="paper"`` (Youtu-GraphRAG, arXiv 2508.19855, eq. 4)::

        x_i = 1/|N_i| · Σ_{(h, r, t) ∈ N_i} [emb(h) ‖ emb(r) ‖ emb(t)],   N_i = the triples that touch e_i

    then unit length. A self-loop touches its entity once. An entity without triples gets its own embedding in
    the two slots that it would fill as an end (head and tail), and a zero relation slot.

    ``form="propagated"``: the three slots of the paper's form, s, each brought to unit length, then ``hops``
    times, with P the row-normalised undirected adjacency and w = ``own_weight``::

        s_i ← unit( w · s_i + (1 − w) · unit( Σ_j P_ij s_j ) )

    and the three side by side, unit length. The unit length inside is what matters: the mean of k unlike
    vectors has length about 1/√k, so without it an entity's own vector outshouts its neighbourhood.

    Found on the LFR graphs of 1,000 nodes: adjusted Rand index at μ = 0.1 / 0.2 / 0.3 / 0.4, mean of 3 draws
    of random entity vectors, so that only the graph tells, and of 20 random relation types;
    ``split_to_size``, then ``merge_communities``, sizes up to 100 (the largest true community) and ε the best
    of 0.2, 0.25, … 0.6 for each cell, chosen on the same graphs, so the table compares the forms and promises
    nothing:

    ===================================  =========================
    paper                                .097 / .058 / .034 / .024
    propagated, 2 hops, w = 0.5          1.00 / .988 / .946 / .607
    propagated, 2 hops, w = 0.3          1.00 / .997 / .972 / .688
    propagated, 3 hops, w = 0.5          1.00 / .997 / .970 / .671
    propagated, 3 hops, w = 0.7          1.00 / .988 / .929 / .515
    propagated, 4 hops, w = 0.5          1.00 / .999 / .973 / .705
    ===================================  =========================

    The default, 2 hops with w = 0.3, is as good as any within the noise, costs no more products than any, and
    is the least touchy: with one ε = 0.45 throughout it keeps 1.00 / .996 / .972 / .628, four hops 1.00 /
    .999 / .734 / .520. With a single relation type all similarities are higher and ε must be lower: at 0.3
    the default gives 1.00 / .997 / .937 / .514, at 0.45 it merges too much (.792 / .735 / .665 / .482).

    Each slot is a sparse product with a row-normalised incidence matrix, [n, n] or [n, R] with at most 2T
    entries; the T × 3d matrix is never built. Time O(T d (1 + hops) + n d). Memory: the result, one more slot
    (4 n d bytes), the sparse matrices (24 T bytes each) and one block of rows within ``memory_limit`` bytes
    (default: a quarter of the free memory).

    Raises ``ValueError`` on shapes that do not fit, an index out of range, ``hops`` < 0 or ``own_weight``
    outside [0, 1].
    """
    if form not in ("propagated", "paper"):
        raise ValueError(f"form must be propagated or paper, not {form!r}")
    if hops < 0 or not 0.0 <= own_weight <= 1.0:
        raise ValueError(f"hops must be ≥ 0 and own_weight in [0, 1], not {hops} and {own_weight}")
    backend = backend or select_backend("cpu")
    xp = backend.xp
    entity = backend.asarray(entity_vectors, dtype=xp.float32)  # [n, d]
    relation = backend.asarray(relation_vectors, dtype=xp.float32)  # [R, d]
    if entity.ndim != 2 or relation.ndim != 2 or (relation.shape[0] and relation.shape[1] != entity.shape[1]):
        raise ValueError(f"vectors must be [n, d] and [R, d], not {entity.shape} and {relation.shape}")
    n, d = entity.shape
    h, r, t = triple_arrays(heads, relations, tails, n, relation.shape[0])
    result = xp.zeros((n, 3 * d), dtype=xp.float32)
    if n == 0 or d == 0:
        return backend.to_numpy(result)

    touching, once = _incidence(h, t)  # the pairs (entity, triple that touches it)
    lonely = backend.asarray(np.bincount(touching, minlength=n) == 0)  # [n] without a triple
    step = _row_mean(backend, np.concatenate((h, t)), np.concatenate((t, h)), n, n)  # P [n, n]
    slots = ((h, entity), (r, relation), (t, entity))
    for i, (column, vectors) in enumerate(slots):
        slot = xp.zeros((n, d), dtype=xp.float32)
        if len(h):
            mean = _row_mean(backend, touching, column[once], n, vectors.shape[0])
            for rows in row_blocks(n, 4 * d, memory_limit):
                slot[rows] = mean[rows] @ vectors
        if vectors is entity:
            slot = xp.where(lonely[:, None], entity, slot)
        if form == "propagated":
            slot = _propagate(slot, step, hops, own_weight, backend, memory_limit)
        result[:, i * d : (i + 1) * d] = slot
    for rows in row_blocks(n, 12 * d, memory_limit):
        result[rows] = unit_rows(result[rows], xp)
    return backend.to_numpy(result)


def _incidence(h: Indices, t: Indices) -> tuple[Indices, Indices]:
    # Entity and triple of every incidence; a self-loop is one incidence.
    triple = np.arange(len(h), dtype=np.int64)
    other = h != t
    return np.concatenate((h, t[other])), np.concatenate((triple, triple[other]))


def _row_mean(backend: Backend, rows: Indices, columns: Indices, n_rows: int, n_columns: int) -> Sparse:
    # CSR [n_rows, n_columns]: row i averages the columns it is paired with, repeated pairs weighing more.
    share = 1.0 / np.maximum(np.bincount(rows, minlength=n_rows), 1)  # [n_rows]
    entries = backend.asarray(share[rows].astype(np.float32))
    place = (backend.asarray(rows), backend.asarray(columns))
    return backend.sparse.csr_matrix((entries, place), shape=(n_rows, n_columns))


def _propagate(
    slot: Array, step: Sparse, hops: int, own_weight: float, backend: Backend, memory_limit: int | None
) -> Array:
    xp = backend.xp
    blocks = row_blocks(slot.shape[0], 16 * slot.shape[1], memory_limit)
    for rows in blocks:
        slot[rows] = unit_rows(slot[rows], xp)
    for _ in range(hops):
        after = xp.zeros(slot.shape, dtype=xp.float32)  # [n, d]
        for rows in blocks:
            around = unit_rows(step[rows] @ slot, xp)  # [block, d]
            after[rows] = unit_rows(own_weight * slot[rows] + (1.0 - own_weight) * around, xp)
        slot = after
    return slot
