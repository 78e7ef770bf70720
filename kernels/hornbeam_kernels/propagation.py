"""Vectors that take in their neighbours': the sparse products behind the representation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, Sparse, one_thread, row_blocks
from hornbeam_kernels.indexing import Indices
from hornbeam_kernels.memory import RowBlocks

NOTHING = 1e-4
"""A centred row shorter than this, where rows had length 1, is rounding: it is taken for zero."""


def finite_matrix(values: Any, what: str, backend: Backend) -> Array:
    """``values`` on the backend; ``ValueError`` when it is not [rows, columns] of finite numbers. O(size)."""
    matrix = backend.asarray(values)
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be [rows, columns], not of shape {tuple(matrix.shape)}")
    for rows in row_blocks(matrix.shape[0], 8 * max(1, matrix.shape[1]), backend=backend):
        block = backend.asarray(matrix[rows, ...], dtype=backend.xp.float32)
        if not bool(backend.xp.all(backend.xp.isfinite(block))):
            raise ValueError(f"{what} holds NaN or infinity, or what is infinite in float32")
    return matrix


def random_slot(n: int, d: int, rng: np.random.Generator, backend: Backend) -> Array:
    """Unit rows [n, d] in random directions: vectors that say nothing, for edges to speak through. O(n d)."""
    return unit_rows(backend.asarray(rng.standard_normal((n, d), dtype=np.float32)), backend.xp)


def unit_rows(x: Array, xp: Any) -> Array:
    """The rows of ``x`` [n, d] at length 1; zero rows stay zero. Array API; O(n d) time and memory."""
    length = xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))  # [n, 1]
    return x / xp.where(length > 0, length, xp.ones_like(length))


def centred_rows(x: Array, xp: Any) -> Array:
    """``x`` [n, d] of unit rows less their mean: 0 is then "as alike as any two". Array API; O(n d).

    Rows that all but equal the mean become zero, lest a later division by their length make noise of them.
    """
    shifted = x - xp.mean(x, axis=0, keepdims=True)
    length = xp.sqrt(xp.sum(shifted * shifted, axis=1, keepdims=True))
    return xp.where(length > NOTHING, shifted, xp.zeros_like(shifted))


def neighbours(heads: Indices, tails: Indices, n: int, backend: Backend) -> Sparse:
    """A, the undirected adjacency: CSR float32 [n, n], entry = number of triples between the two.

    Self-loops are left out. Columns ascend in every row, so that sums do not follow the order of the triples.
    O(T log T) time, O(T) memory.
    """
    proper = heads != tails
    h, t = heads[proper], tails[proper]
    place = (backend.asarray(np.concatenate((h, t))), backend.asarray(np.concatenate((t, h))))
    ones = backend.xp.ones(2 * len(h), dtype=backend.xp.float32)
    matrix = backend.sparse.csr_matrix((ones, place), shape=(n, n))
    matrix.sum_duplicates()
    return matrix


def propagate(
    slot: Array, edges: Sparse, weight: float, hops: int, backend: Backend, memory_limit: int | None = None
) -> Array:
    """``hops`` times s_i ← unit(s_i + λ Σ_j A_ij s_j), λ = ``weight``, for unit rows ``slot`` [n, d].

    ``edges`` is A of ``neighbours``. The sum, not the mean: many neighbours know more than one, and the more
    there are the less an entity's own vector counts. Time O(hops · nnz · d); memory one more [n, d] and a
    block of rows within ``memory_limit`` bytes.
    """
    if weight == 0.0:
        return slot
    xp = backend.xp
    for _ in range(hops):
        after = xp.zeros(slot.shape, dtype=xp.float32)  # [n, d]
        blocks = RowBlocks(slot.shape[0], 12 * slot.shape[1], memory_limit, backend)
        for rows in blocks:
            with blocks.halving():
                after[rows, ...] = unit_rows(slot[rows, ...] + weight * (edges[rows] @ slot), xp)
        slot = after
    return slot


def relation_profiles(
    relation_vectors: Any, heads: Indices, relations: Indices, tails: Indices, n: int, backend: Backend
) -> Array:
    """The relation types around each entity, less what all have in common: float32 [n, min(R, d)].

    The mean vector of the relation types of an entity's triples at unit length, centred; zero for an entity
    without triples and where all entities see the same types. The R vectors span at most min(R, d)
    dimensions, so the rows are given in a basis of those: lengths and inner products are those of [n, d]. O(T
    min(R, d)) time, O(n min(R, d) + T) memory.
    """
    xp = backend.xp
    vectors = np.asarray(backend.to_numpy(backend.asarray(relation_vectors)), dtype=np.float64)  # [R, d]
    width = min(vectors.shape)
    if len(heads) == 0 or width == 0:
        return xp.zeros((n, width), dtype=xp.float32)
    with one_thread():  # LAPACK's last bits follow the number of threads
        left, values, _ = np.linalg.svd(vectors, full_matrices=False)
    basis = backend.asarray((left * values).astype(np.float32))  # [R, min(R, d)]
    ends = np.concatenate((heads, tails[heads != tails]))  # a self-loop touches its entity once
    types = np.concatenate((relations, relations[heads != tails]))
    touching = np.bincount(ends, minlength=n)  # [n]
    share = backend.asarray((1.0 / np.maximum(touching, 1))[ends].astype(np.float32))
    place = (backend.asarray(ends), backend.asarray(types))
    mean = backend.sparse.csr_matrix((share, place), shape=(n, len(vectors)))  # [n, R]
    mean.sum_duplicates()
    profile = unit_rows(mean @ basis, xp)
    met = backend.asarray(touching > 0)  # [n]
    common = xp.sum(profile, axis=0, keepdims=True) / max(int((touching > 0).sum()), 1)
    shifted = xp.where(met[:, None], profile - common, xp.zeros_like(profile))
    length = xp.sqrt(xp.sum(shifted * shifted, axis=1, keepdims=True))
    return xp.where(length > NOTHING, shifted, xp.zeros_like(shifted))


def principal_axes(x: Array, mean: Array, dimensions: int, backend: Backend) -> Array:
    """The ``dimensions`` axes along which the rows of ``x`` [n, d] vary most about ``mean`` [d]: [d,
    dimensions].

    Eigenvectors of the scatter matrix (Pearson 1901), largest first, each with its largest entry positive.
    Summed in blocks of rows in float64: O(n d²) time, O(d²) memory beside a block.
    """
    xp, d = backend.xp, x.shape[1]
    scatter: NDArray[np.float64] = np.zeros((d, d))
    blocks = RowBlocks(x.shape[0], 8 * d, backend=backend)
    for rows in blocks:
        with blocks.halving():
            block = backend.asarray(x[rows, ...], dtype=xp.float32) - mean
            scatter += backend.to_numpy(block.T @ block)
    with one_thread():
        axes = np.linalg.eigh(scatter)[1][:, ::-1][:, :dimensions]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return backend.asarray((axes * np.sign(largest)).astype(np.float32))
