"""Entity representation: what an entity is, seen through itself and the triples that touch it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, Sparse, row_blocks, select_backend
from hornbeam_kernels.indexing import Indices, triple_arrays
from hornbeam_kernels.memory import RowBlocks
from hornbeam_kernels.propagation import (
    centred_rows,
    finite_matrix,
    neighbours,
    principal_axes,
    propagate,
    random_slot,
    relation_profiles,
    unit_rows,
)
from hornbeam_kernels.signals import Signals, measure_signals

EDGE_DIMENSIONS = 128


def entity_representation(
    entity_vectors: Any,
    relation_vectors: Any,
    heads: Any,
    relations: Any,
    tails: Any,
    *,
    form: Literal["propagated", "paper"] = "propagated",
    signals: Signals | None = None,
    dimensions: int | None = None,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> NDArray[np.float32]:
    """One unit row per entity: float32 [n, D]. A row is 0 where an entity has nothing of its own to show.

    ``entity_vectors`` [n, d], ``relation_vectors`` [R, d] (text embeddings, any real dtype), ``heads``,
    ``relations``, ``tails`` integers [T].

    ``form="propagated"``: an entity slot [min(d, ``dimensions``)], an edge slot [``EDGE_DIMENSIONS``] where
    ``signals.edge_weight`` > 0, a relation slot [min(R, d)] where ``signals.relation_weight`` > 0. With v the
    centred unit vectors, A the undirected adjacency, λ and the number of hops from ``signals`` (None:
    measured here, see ``signals.py``)::

        e_i ← unit(e_i + λ Σ_j A_ij e_j),   starting from e = v, ``hops`` times, then centred, unit
        x_i = unit( e_i ‖ edge_weight · ε_i ‖ relation_weight · ρ_i )

    with ρ the relation profiles, propagated in the same way, and ε random unit vectors, the same for a number
    of entities, propagated with λ = 1 over ``edge_hops``, centred, unit.

    ``form="paper"`` (D = 3d; Youtu-GraphRAG, arXiv 2508.19855, eq. 4)::

        x_i = 1/|N_i| · Σ_{(h, r, t) ∈ N_i} [emb(h) ‖ emb(r) ‖ emb(t)],   N_i = the triples that touch e_i

    then unit length. A self-loop touches its entity once. An entity without triples gets its own embedding in
    the two slots that it would fill as an end (head and tail), and a zero relation slot.

    Why another form: the paper's mean drowns the graph where an entity's own vector says nothing (the mean of
    k unlike vectors has length about 1/√k, the entity's own share stays), and mixes neighbours in where the
    edges say nothing; its head and tail slots hold the same thing twice. Figures on planted graphs:
    ``bench/RESULTS.md``, "Communities". Steps that were tried: a fixed own weight with neighbours' mean (good
    for edges alone, fails on vectors alone); a neighbour's weight from q and a; one hop where vectors say
    something (a second adds more noise than news: .93 against .98 at μ = .4) and six where they do not;
    centred slots (one relation type, or one theme over all entities, no longer makes all alike); an edge
    slot, where vectors tell of other things than edges do.

    ``dimensions``: the entity slot keeps that many principal axes of the vectors (None: all d), which is what
    holds a million entities in a few GiB.

    Time O(T d (1 + hops) + n d), with ``dimensions`` also O(n d²). Memory: the result, two more slots (4 n d
    bytes each), the sparse matrices (24 T bytes each) and one block of rows within ``memory_limit`` bytes
    (default: a quarter of the free memory); nothing of size T × d or n × n.

    Raises ``ValueError`` on shapes that do not fit, NaN or infinity, an index out of range or ``dimensions``
    < 1.
    """
    if form not in ("propagated", "paper"):
        raise ValueError(f"form must be propagated or paper, not {form!r}")
    if dimensions is not None and dimensions < 1:
        raise ValueError(f"dimensions must be ≥ 1, not {dimensions}")
    backend = backend or select_backend("cpu")
    xp = backend.xp
    entity = finite_matrix(entity_vectors, "entity_vectors", backend)
    relation = finite_matrix(relation_vectors, "relation_vectors", backend)
    if relation.shape[0] and relation.shape[1] != entity.shape[1]:
        raise ValueError(f"vectors must be [n, d] and [R, d], not {entity.shape} and {relation.shape}")
    n, d = entity.shape
    h, r, t = triple_arrays(heads, relations, tails, n, relation.shape[0])
    if n == 0 or d == 0:
        return np.zeros((n, 3 * d if form == "paper" else d), dtype=np.float32)
    if form == "paper":
        return backend.to_numpy(_paper(entity, relation, h, r, t, backend, memory_limit))
    if signals is None:
        signals = measure_signals(entity, relation, h, r, t, backend=backend, memory_limit=memory_limit)
    mean = xp.mean(backend.asarray(entity, dtype=xp.float32), axis=0, keepdims=True)  # [1, d]
    edges = neighbours(h, t, n, backend)
    if dimensions is not None and dimensions < d:
        axes = principal_axes(entity, mean, dimensions, backend)  # [d, dimensions]
        slot = xp.zeros((n, dimensions), dtype=xp.float32)
        blocks = RowBlocks(n, 8 * d, memory_limit, backend)
        for rows in blocks:
            with blocks.halving():
                slot[rows, ...] = (backend.asarray(entity[rows, ...], dtype=xp.float32) - mean) @ axes
    else:
        slot = backend.asarray(entity, dtype=xp.float32) - mean
    slot = unit_rows(slot, xp) if n > 1 else unit_rows(backend.asarray(entity, dtype=xp.float32), xp)
    slot = propagate(slot, edges, signals.neighbour_weight, signals.hops, backend, memory_limit)
    if n > 1:
        slot = unit_rows(centred_rows(slot, xp), xp)
    slots = [slot]
    if signals.edge_weight > 0:
        edge = random_slot(n, EDGE_DIMENSIONS, np.random.default_rng(0), backend)
        edge = propagate(edge, edges, 1.0, signals.edge_hops, backend, memory_limit)
        slots.append(signals.edge_weight * unit_rows(centred_rows(edge, xp), xp))
    if signals.relation_weight > 0:
        profile = unit_rows(relation_profiles(relation, h, r, t, n, backend), xp)
        profile = propagate(profile, edges, signals.neighbour_weight, signals.hops, backend, memory_limit)
        slots.append(signals.relation_weight * centred_rows(profile, xp))
    if len(slots) > 1:
        slot = unit_rows(xp.concat(slots, axis=1), xp)
    return backend.to_numpy(slot)


def _paper(
    entity: Array,
    relation: Array,
    h: Indices,
    r: Indices,
    t: Indices,
    backend: Backend,
    memory_limit: int | None,
) -> Array:
    xp, (n, d) = backend.xp, entity.shape
    entity, relation = (backend.asarray(vectors, dtype=xp.float32) for vectors in (entity, relation))
    result = xp.zeros((n, 3 * d), dtype=xp.float32)
    touching, once = _incidence(h, t)  # the pairs (entity, triple that touches it)
    lonely = backend.asarray(np.bincount(touching, minlength=n) == 0)  # [n] without a triple
    for i, (column, vectors) in enumerate(((h, entity), (r, relation), (t, entity))):
        slot = xp.zeros((n, d), dtype=xp.float32)
        if len(h):
            mean = _row_mean(backend, touching, column[once], n, vectors.shape[0])
            blocks = RowBlocks(n, 4 * d, memory_limit, backend)
            for rows in blocks:
                with blocks.halving():
                    slot[rows, ...] = mean[rows] @ vectors
        if vectors is entity:
            slot = xp.where(lonely[:, None], entity, slot)
        result[:, i * d : (i + 1) * d] = slot
    for rows in row_blocks(n, 12 * d, memory_limit, backend):
        result[rows, ...] = unit_rows(result[rows, ...], xp)
    return result


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
