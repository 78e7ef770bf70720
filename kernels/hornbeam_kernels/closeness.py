"""How close two communities are: what merging compares, kept up to date from round to round.

Two forms. ``CalibratedFit`` compares whole communities and knows what "as alike as itself" is;
``CentreFit`` is the paper's, one member of each against the other community.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, Sparse, row_blocks
from hornbeam_kernels.dual_perception import (
    centres,
    centroids,
    community_counts,
    membership,
    own_scores,
    paired_similarity,
)
from hornbeam_kernels.indexing import Indices, Labels, count_communities
from hornbeam_kernels.propagation import unit_rows

PRIOR_PAIRS = 2.0
"""Pairs that the pooled inner similarity counts as, beside the pairs that a community has of its own."""
INNER_FLOOR = 0.25
"""Least inner similarity of a community, as a share of the pooled one."""
BACKGROUND_PAIRS = 4096
"""Pairs of communities that the background of the structural similarity is the mean of."""


@dataclass(frozen=True, slots=True)
class Members:
    """What both forms are made from: n entities and the m communities that they are in."""

    x: Array
    """Unit rows [n, D]."""
    counts: Sparse
    """CSR [n, C] of incident relation types."""
    labels: Labels
    """int32 [n] in normal form."""
    structure_weight: float
    """w"""
    backend: Backend
    memory_limit: int | None = None


class Closeness(Protocol):
    """φ between communities, symmetric; 1 − φ is their dissimilarity."""

    @property
    def centroid(self) -> Array:
        """Unit rows [m, D], near where partners are looked for."""

    def __call__(self, a: Indices, b: Indices) -> NDArray[np.float64]:
        """φ of communities ``a`` with communities ``b``, pair by pair: [p]."""

    def join(self, labels: Labels, number: Indices, grown: Indices) -> None:
        """Takes in a round: community c is now ``number[c]``, the entities' communities are ``labels``, and
        ``grown`` (new numbers) took in others."""


class CalibratedFit:
    """φ(A, B) = w · S_r(A, B) + (1 − w) · S_s(A, B), each 0 for communities at random, 1 for two halves of
    one.

    S_s is the mean cosine across, over the geometric mean of the mean cosines inside::

        S_s(A, B) = mean_{i∈A, j∈B} x_i·x_j / √(s_A s_B),    s_A = mean_{i≠j∈A} x_i·x_j

    the correction for attenuation of Spearman (1904): noise in single rows lowers the cosine across and the
    cosines inside alike, so one threshold means the same in tight and in loose data, for small and for large
    communities. s of a community of few counts ``PRIOR_PAIRS`` pairs of the pooled value, and is no less than
    ``INNER_FLOOR`` of it. S_r is the multiset Jaccard of the communities' mean relation types less its mean
    over random pairs of communities, over 1 less that mean.

    A join adds up sums of rows: O(D) a community, no pass over the members.
    """

    def __init__(self, given: Members) -> None:
        x, backend = given.x, given.backend
        self.weight, self.backend, self.memory_limit = given.structure_weight, backend, given.memory_limit
        members = membership(given.labels, x.shape[0], backend)  # CSR [m, n]
        self.size: NDArray[np.float64] = np.bincount(given.labels).astype(np.float64)  # [m]
        self.sums = members @ x  # [m, D]
        squares = backend.to_numpy(members @ backend.xp.sum(x * x, axis=1))
        self.squares: NDArray[np.float64] = squares.astype(np.float64)  # [m]
        pairs = self.size * (self.size - 1.0)
        total = pairs.sum()
        self.pooled = float(self._inner_sum().sum() / total) if total > 0 else 1.0
        self.pooled = max(self.pooled, 1e-6)
        # CSR [m, C] of whole numbers
        self.types = members @ given.counts if given.structure_weight > 0 else None
        self.background = 0.0
        self._renew()
        if self.types is not None and len(self.size) > 1:
            rng = np.random.default_rng(0)
            a = rng.integers(0, len(self.size), BACKGROUND_PAIRS)
            b = (a + rng.integers(1, len(self.size), BACKGROUND_PAIRS)) % len(self.size)
            self.background = float(self._structural(a, b).mean())

    @property
    def centroid(self) -> Array:
        return unit_rows(self.sums, self.backend.xp)

    def _inner_sum(self) -> NDArray[np.float64]:
        # Σ_{i≠j} x_i·x_j of each community.
        xp = self.backend.xp
        squared = self.backend.to_numpy(xp.sum(self.sums * self.sums, axis=1)).astype(np.float64)
        return squared - self.squares

    def _renew(self) -> None:
        pairs = self.size * (self.size - 1.0)
        inner = (self._inner_sum() + PRIOR_PAIRS * self.pooled) / (pairs + PRIOR_PAIRS)
        self.inner = np.maximum(inner, INNER_FLOOR * self.pooled)  # [m] s
        if self.types is not None:
            xp = self.backend.xp
            share = self.backend.asarray((1.0 / self.size).astype(np.float32))
            self.mean_types = (self.backend.sparse.diags(share, dtype=xp.float32) @ self.types).tocsr()

    def __call__(self, a: Indices, b: Indices) -> NDArray[np.float64]:
        xp = self.backend.xp
        across = np.empty(len(a))
        for block in row_blocks(len(a), 12 * self.sums.shape[1], self.memory_limit, self.backend):
            ends = [xp.take(self.sums, self.backend.asarray(end[block]), axis=0) for end in (a, b)]
            across[block] = self.backend.to_numpy(xp.sum(ends[0] * ends[1], axis=1))
        semantic = across / (self.size[a] * self.size[b] * np.sqrt(self.inner[a] * self.inner[b]))
        if self.types is None:
            return np.asarray(semantic)
        structural = self._structural(a, b) - self.background
        structural /= max(1.0 - self.background, 1e-6)
        return np.asarray(self.weight * structural + (1.0 - self.weight) * semantic)

    def _structural(self, a: Indices, b: Indices) -> NDArray[np.float64]:
        similarity = np.empty(len(a))
        for block in row_blocks(len(a), 24 * self.mean_types.shape[1], self.memory_limit, self.backend):
            one, other = (self.mean_types[self.backend.asarray(end[block])] for end in (a, b))
            similarity[block] = self.backend.to_numpy(paired_similarity(one, other, self.backend.xp))
        return similarity

    def join(self, labels: Labels, number: Indices, grown: Indices) -> None:
        together = membership(number.astype(np.int32), len(number), self.backend)  # CSR [m', m]
        self.sums = together @ self.sums
        self.size = np.bincount(number, weights=self.size).astype(np.float64)
        self.squares = np.bincount(number, weights=self.squares).astype(np.float64)
        if self.types is not None:
            self.types = together @ self.types
        self._renew()


class CentreFit:
    """φ(A, B) = ½ (φ(e*_A, B) + φ(e*_B, A)), e* the centre: Youtu-GraphRAG, arXiv 2508.19855, eq. 5–7.

    Each centre against the other community, the only pairs that φ is defined on, and steadier than one centre
    against the other. A join recomputes φ of the members of the communities that grew: O(D) a member.
    """

    def __init__(self, given: Members) -> None:
        self.x, self.counts, self.weight = given.x, given.counts, given.structure_weight
        self.backend, self.memory_limit = given.backend, given.memory_limit
        self.scores = self._own_scores(given.x, given.counts, given.labels)
        self.centre = centres(self.scores, given.labels)  # [m]
        self.centroid = centroids(given.x, given.labels, backend=given.backend)  # [m, D]
        self.psi = community_counts(given.counts, given.labels, backend=given.backend)  # CSR [m, C]

    def _own_scores(self, x: Array, counts: Sparse, labels: Labels) -> NDArray[np.float32]:
        return own_scores(
            x, counts, labels, self.weight, backend=self.backend, memory_limit=self.memory_limit
        )

    def __call__(self, a: Indices, b: Indices) -> NDArray[np.float64]:
        # One order of the ends, so that both see the same bits.
        low, high = np.minimum(a, b), np.maximum(a, b)
        return 0.5 * (self._centre_in(low, high) + self._centre_in(high, low)).astype(np.float64)

    def _centre_in(self, a: Indices, b: Indices) -> NDArray[np.float32]:
        # φ(centre of a, community b) for pairs [p].
        xp = self.backend.xp
        phi = np.empty(len(a), dtype=np.float32)
        for block in row_blocks(
            len(a), 12 * self.x.shape[1] + 24 * self.counts.shape[1], self.memory_limit, self.backend
        ):
            entity, community = self.backend.asarray(self.centre[a[block]]), self.backend.asarray(b[block])
            semantic = xp.sum(
                xp.take(self.x, entity, axis=0) * xp.take(self.centroid, community, axis=0), axis=1
            )  # [block]
            structural = paired_similarity(self.counts[entity], self.psi[community], xp)
            phi[block] = self.backend.to_numpy(self.weight * structural + (1.0 - self.weight) * semantic)
        return phi

    def join(self, labels: Labels, number: Indices, grown: Indices) -> None:
        backend, m = self.backend, count_communities(labels)
        kept = np.unique(number, return_index=True)[1]  # [m'] an old number of each
        inside = np.flatnonzero(np.isin(labels, grown))  # [g] members of the communities that grew
        part = np.searchsorted(grown, labels[inside]).astype(np.int32)
        at = backend.asarray(inside)
        x, counts = self.x[at], self.counts[at]
        self.scores[inside] = self._own_scores(x, counts, part)
        self.centre = self.centre[kept]
        self.centre[grown] = inside[centres(self.scores[inside], part)]
        self.centroid = self.centroid[backend.asarray(kept)]
        self.centroid[backend.asarray(grown)] = centroids(x, part, backend=backend)
        stacked = backend.sparse.vstack(
            (self.psi[backend.asarray(kept)], community_counts(counts, part, backend=backend)), format="csr"
        )
        place = np.arange(m)
        place[grown] = m + np.arange(len(grown))
        self.psi = stacked[backend.asarray(place)]
