"""How much the vectors and the edges of a graph say about which entities belong together.

The model behind the estimates. Every entity has a topic; its centred vector is the topic's plus noise,

    v_i = c(topic of i) + noise,    |c|² : |noise|² = 1 : σ²

so two of one topic have cosine q = 1 / (1 + σ²) in expectation, and an edge joins two of one topic with
probability a, any two with probability 1 − a, so the two ends of an edge have cosine ρ = a q. The linear
combination of an entity's vector and its neighbours' that tells most about its topic is then

    v_i + λ Σ_j v_j,    λ = a σ² / (σ² + 1 − a)

(each term is weighted by signal over noise variance: 1 / σ² for its own vector, a / (σ² + 1 − a) for a
neighbour's). Vectors that say all (σ = 0) and edges that say nothing (a = 0) make λ = 0; vectors that say
nothing leave the edges alone, λ = a.

That is so where vectors and edges tell of the same communities. Where a vector tells mostly something else
(what kind of thing an entity is, say, while edges join unlike kinds), a = ρ / q is low, and the edges, judged
by the vectors alone, would be given up. So they are heard on their own as well: random vectors are propagated
over four fifths of the edges, and the voice of the edges is how much more alike than chance the ends of the
last fifth have become. The less the vectors agree with edges that have a voice, the more weight an edge slot
of its own gets.

q is found without knowing any topic: three disjoint thirds A, B, C of the dimensions carry the same topics
and different noise. Among pairs that are near by A, a share π is of one topic, so E[cos_B] = π q and E[cos_B
cos_C] = π q², whatever π is; q is their quotient, not flattered by the choice of the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, select_backend
from hornbeam_kernels.indexing import Indices, triple_arrays
from hornbeam_kernels.propagation import (
    finite_matrix,
    neighbours,
    propagate,
    random_slot,
    relation_profiles,
    unit_rows,
)
from hornbeam_kernels.search import build_index, search

QUERIES = 2048
"""Entities whose neighbours are looked at, drawn at random."""
POOL = 65_536
"""Entities among which they are looked for."""
NEAR = 16
"""Pairs for each of them: about as far as a community reaches, not only near-duplicates."""
SKETCH = 64
"""Dimensions of the random projection in which pairs near by vector and edges are found."""
SIGNIFICANT = 4.0
"""Standard errors above nothing from which a signal counts."""
TYPES_SHARE = 0.5
"""Relation types lie in few dimensions, so their cosines scatter more: half of what they seem to be worth is
best on planted graphs whose types tell topics apart, with either of the other signals silent or not."""
FEW_EDGES = 3.0
"""Mean degree up to which communities are taken for wide."""
LOUDEST_EDGES = 2.0
CLEAR_VOICE = 0.25
"""The edge slot's weight is ``LOUDEST_EDGES`` at this voice or above where a = 0; it falls to 0 as the voice
does, and as a rises to a half."""
FEWEST = 32
"""Below so many entities nothing is estimated: the halfway values of ``Signals`` are taken."""


@dataclass(frozen=True)
class Signals:
    """What was measured, and what follows for the representation."""

    similarity: float = 0.5
    """q: expected cosine of two entities of one topic, from their own vectors; 0: the vectors say nothing."""
    agreement: float = 0.5
    """a: share of edges that join two entities of one topic; 1 is assumed where the vectors cannot tell."""
    neighbour_weight: float = 0.5
    """λ: what a neighbour's vector counts beside the entity's own."""
    hops: int = 1
    """1 where vectors say something: more bring more noise than news; ``edge_hops`` where only edges do."""
    edge_weight: float = 0.0
    """Length of the edge slot beside the entity slot; 0: vectors and edges agree, or edges have no voice."""
    edge_hops: int = 6
    """Hops of the edge slot: 6, and 12 in graphs of few edges, where a community is wide."""
    relation_weight: float = 0.0
    """Length of the relation slot beside the entity slot: ``TYPES_SHARE`` of the root of the quotient of what
    near entities share of each; 0: relation types do not tell topics apart."""


def measure_signals(
    entity_vectors: Any,
    relation_vectors: Any,
    heads: Any,
    relations: Any,
    tails: Any,
    *,
    seed: int = 42,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> Signals:
    """Estimates ``Signals`` from samples; see the module for the model.

    ``entity_vectors`` [n, d], ``relation_vectors`` [R, d], ``heads``, ``relations``, ``tails`` integers [T].
    Deterministic for a seed and an order of rows. Time O(QUERIES · min(n, POOL) · d + n d · SKETCH + T ·
    SKETCH); memory one float32 copy of the pool's vectors, 4 n SKETCH bytes three times, and blocks within
    ``memory_limit`` bytes.
    Raises ``ValueError`` on shapes that do not fit, NaN or infinity, or an index out of range.
    """
    backend = backend or select_backend("cpu")
    xp = backend.xp
    vectors = finite_matrix(entity_vectors, "entity_vectors", backend)  # [n, d]
    types = finite_matrix(relation_vectors, "relation_vectors", backend)  # [R, d]
    n, d = vectors.shape
    h, r, t = triple_arrays(heads, relations, tails, n, types.shape[0])
    if n < FEWEST or d < 3:
        return Signals()
    rng = np.random.default_rng(seed)
    pool = np.sort(rng.choice(n, min(n, POOL), replace=False))
    queries = np.sort(rng.choice(len(pool), min(len(pool), QUERIES), replace=False))  # places in the pool
    mean = xp.mean(backend.asarray(vectors, dtype=xp.float32), axis=0)  # [d]
    sample = unit_rows(
        backend.asarray(xp.take(vectors, backend.asarray(pool), axis=0), dtype=xp.float32) - mean, xp
    )
    q = _similarity(sample, queries, rng, backend)
    a = _agreement(vectors, mean, h, t, q, rng, backend)
    noise = 1.0 / q - 1.0 if q > 0 else np.inf  # σ²
    weight = a if np.isinf(noise) else a * noise / max(noise + 1.0 - a, 1e-9)
    edges = neighbours(h, t, n, backend)
    edge_hops = 12 if 2.0 * len(h) / n <= FEW_EDGES else 6
    hops = 1 if q > 0 else edge_hops
    edge_weight = 0.0
    if q > 0 and a < 0.5:
        voice = _voice(h, t, n, rng, backend, memory_limit)
        edge_weight = LOUDEST_EDGES * min(1.0, voice / CLEAR_VOICE) * (1.0 - 2.0 * a)
    towards = backend.asarray(rng.standard_normal((d, min(d, SKETCH)), dtype=np.float32))
    sketch = backend.asarray(vectors, dtype=xp.float32) @ towards - mean @ towards
    near = propagate(unit_rows(sketch, xp), edges, weight, hops, backend, memory_limit)
    near = xp.take(unit_rows(near - xp.mean(near, axis=0), xp), backend.asarray(pool), axis=0)
    profile = xp.take(relation_profiles(types, h, r, t, n, backend), backend.asarray(pool), axis=0)
    linked = np.unique(np.concatenate((h * n + t, t * n + h)))
    share = _relation_share(near, unit_rows(profile, xp), linked, n, pool, queries, backend)
    relation_weight = TYPES_SHARE * float(np.sqrt(share))
    return Signals(q, a, weight, hops, edge_weight, edge_hops, relation_weight)


def _near_pairs(x: Array, queries: Indices, backend: Backend) -> tuple[Indices, Indices]:
    # Each query with its NEAR nearest other rows of x [p, ·] by inner product.
    index = build_index(backend.to_numpy(x), exact_below=POOL + 1, backend=backend)
    near = search(index, backend.to_numpy(x)[queries], min(NEAR + 1, x.shape[0]))[1]
    i, j = np.repeat(queries, near.shape[1]), near.reshape(-1)
    return i[i != j], j[i != j]


def _cosines(x: Array, pairs: tuple[Indices, Indices], backend: Backend) -> NDArray[np.float64]:
    i, j = (backend.asarray(end) for end in pairs)
    return backend.to_numpy(
        backend.xp.sum(backend.xp.take(x, i, axis=0) * backend.xp.take(x, j, axis=0), axis=1)
    ).astype(np.float64)


def _significant(values: NDArray[np.float64]) -> bool:
    # Whether the mean lies above 0 by more than chance.
    return bool(len(values)) and values.mean() > SIGNIFICANT * (values.std() + 1e-6) / np.sqrt(len(values))


def _similarity(
    sample: Array,
    queries: Indices,
    rng: np.random.Generator,
    backend: Backend,
) -> float:
    # q from thirds of the dimensions; see the module.
    xp = backend.xp
    order = rng.permutation(sample.shape[1])
    thirds = []
    for part in range(3):
        third = xp.take(sample, backend.asarray(np.sort(order[part::3])), axis=1)
        thirds.append(unit_rows(third - xp.mean(third, axis=0), xp))
    first, product = [], []
    for part in range(3):
        pairs = _near_pairs(thirds[part], queries, backend)
        b = _cosines(thirds[(part + 1) % 3], pairs, backend)
        c = _cosines(thirds[(part + 2) % 3], pairs, backend)
        first.append(0.5 * (b + c))
        product.append(b * c)
    if not all(_significant(values) for values in first):
        return 0.0
    return float(np.clip(np.concatenate(product).mean() / np.concatenate(first).mean(), 0.0, 1.0))


def _agreement(
    vectors: Array,
    mean: Array,
    h: Indices,
    t: Indices,
    q: float,
    rng: np.random.Generator,
    backend: Backend,
) -> float:
    # a = ρ / q over a sample of edges.
    proper = np.flatnonzero(h != t)
    if q <= 0 or len(proper) == 0:
        return 1.0
    if len(proper) > POOL:
        proper = np.sort(rng.choice(proper, POOL, replace=False))
    xp = backend.xp
    ends = [
        unit_rows(
            backend.asarray(xp.take(vectors, backend.asarray(end[proper]), axis=0), dtype=xp.float32) - mean,
            xp,
        )
        for end in (h, t)
    ]
    cosine = backend.to_numpy(xp.sum(ends[0] * ends[1], axis=1)).astype(np.float64)
    return float(np.clip(cosine.mean() / q, 0.0, 1.0)) if _significant(cosine) else 0.0


def _voice(
    h: Indices, t: Indices, n: int, rng: np.random.Generator, backend: Backend, memory_limit: int | None
) -> float:
    # How much more alike the ends of left-out edges are than any two ends, by random vectors propagated over
    # the others; 0 where that is chance.
    proper = h != t
    edges = np.unique(np.minimum(h, t)[proper] * n + np.maximum(h, t)[proper])
    left_out = rng.random(len(edges)) < 0.2
    if not left_out.any():
        return 0.0
    kept = edges[~left_out]
    x = random_slot(n, SKETCH, rng, backend)
    x = propagate(x, neighbours(kept // n, kept % n, n, backend), 1.0, 3, backend, memory_limit)
    x = unit_rows(x - backend.xp.mean(x, axis=0), backend.xp)
    pairs = edges[left_out]
    if len(pairs) > POOL:
        pairs = np.sort(rng.choice(pairs, POOL, replace=False))
    ends = (pairs // n, pairs % n)
    more = _cosines(x, ends, backend) - _cosines(x, (ends[0], rng.permutation(ends[1])), backend)
    return float(more.mean()) if _significant(more) else 0.0


def _relation_share(
    near: Array,
    profile: Array,
    linked: Indices,
    n: int,
    pool: Indices,
    queries: Indices,
    backend: Backend,
) -> float:
    # What near entities share of their relation profiles, in units of what they share of the entity slot.
    # Pairs in `linked` (as i · n + j) are left out: they share the triple between them.
    i, j = _near_pairs(near, queries, backend)
    apart = ~np.isin(pool[i] * n + pool[j], linked)
    pairs = (i[apart], j[apart])
    shared = _cosines(profile, pairs, backend)
    if not _significant(shared):
        return 0.0
    return float(np.clip(shared.mean() / max(_cosines(near, pairs, backend).mean(), 1e-9), 0.0, 1.0))
