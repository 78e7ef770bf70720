"""Mutual-best merging of communities.

Two communities merge when each is the other's best partner, their dissimilarity lies under a threshold and
the union respects the maximal size. A choice is one partner, so what merges in a round is pairs, the
connected components of the mutual-choice graph: no chain of neighbours is ever pulled into one community.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, Sparse, row_blocks, select_backend
from hornbeam_kernels.dual_perception import (
    SCORE_DECIMALS,
    centres,
    centroids,
    community_counts,
    own_scores,
    paired_similarity,
)
from hornbeam_kernels.indexing import Indices, Labels, count_communities, label_array, renumber


def merge_communities(
    x: Any,
    counts: Sparse,
    labels: Any,
    *,
    threshold: float,
    max_size: int,
    structure_weight: float = 0.3,
    candidates: int = 16,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> Labels:
    """Merges communities round by round until no two are each other's best: labels int32 [n] in normal form.

    ``x`` float [n, D] unit rows, ``counts`` CSR [n, C] (``relation_type_counts``), ``labels`` [n]. With e*_A
    the centre of community A and φ of ``dual_perception`` (Youtu-GraphRAG, arXiv 2508.19855, eq. 5–7), the
    dissimilarity is 1 − ½ (φ(e*_A, B) + φ(e*_B, A)): each centre against the other community, the only pairs
    that φ is defined on, and steadier than one centre against the other. A partner is admissible when that is
    < ``threshold`` and the two sizes add up to at most ``max_size``; the best is the least dissimilar (to six
    decimals), then the lowest numbered. Each round joins all mutual choices and recomputes what changed.

    Partners are looked for among the ``candidates`` nearest centroids; with ``candidates`` ≥ m − 1 the search
    is exhaustive. Each later round searches only for communities that changed or lost their partner, and a
    last round over all must find nothing. Every entity keeps a community; a community that starts above
    ``max_size`` stays as it is. Deterministic; relabelling the communities changes nothing but ties.

    Time O(m² D) for the first round, O(changed · m · D) for the others. Memory: centroids (4 m D bytes), Ψ of
    the communities, and blocks of [rows, m] within ``memory_limit`` bytes; never m × m.
    Raises ``ValueError`` on unequal lengths, ``candidates`` < 1 or a weight outside [0, 1].
    """
    if candidates < 1:
        raise ValueError(f"candidates must be ≥ 1, not {candidates}")
    backend = backend or select_backend("cpu")
    rows = backend.asarray(x, dtype=backend.xp.float32)
    own = renumber(label_array(labels, rows.shape[0]))
    if rows.shape[0] == 0:
        return own
    state = _State(
        rows, counts, own, structure_weight, candidates, threshold, max_size, backend, memory_limit
    )
    while True:
        if not state.join_mutual_choices():
            if state.searched_all:
                return renumber(state.labels)
            state.search(np.arange(state.m))


class _State:
    """The communities of one round: their sums over members, and each one's best partner so far."""

    def __init__(
        self,
        x: Array,
        counts: Sparse,
        labels: Labels,
        structure_weight: float,
        candidates: int,
        threshold: float,
        max_size: int,
        backend: Backend,
        memory_limit: int | None,
    ) -> None:
        self.x, self.counts, self.labels = x, counts, labels
        self.weight, self.candidates, self.threshold = structure_weight, candidates, threshold
        self.max_size, self.backend, self.memory_limit = max_size, backend, memory_limit
        self.m = count_communities(labels)
        self.sizes = np.bincount(labels, minlength=self.m)  # [m]
        self.scores = own_scores(
            x, counts, labels, structure_weight, backend=backend, memory_limit=memory_limit
        )
        self.centre = centres(self.scores, labels)  # [m]
        self.centroid = centroids(x, labels, backend=backend)  # [m, D]
        self.psi = community_counts(counts, labels, backend=backend)  # CSR [m, C]
        self.partner: Indices = np.full(self.m, -1, dtype=np.int64)  # [m], −1 = none admissible
        self.affinity: NDArray[np.float64] = np.full(self.m, -np.inf)  # [m] φ with that partner
        self.searched_all = False
        self.search(np.arange(self.m))

    def search(self, which: Indices) -> None:
        """Finds the best partner of ``which``, and tells their candidates of them."""
        self.searched_all = len(which) == self.m
        self.partner[which], self.affinity[which] = -1, -np.inf
        if self.m < 2 or len(which) == 0:
            return
        xp, near = self.backend.xp, min(self.candidates, self.m - 1)
        for block in row_blocks(len(which), 16 * self.m, self.memory_limit):
            a = which[block]  # [s]
            at = self.backend.asarray(a)
            cosine = self.centroid[at] @ self.centroid.T  # [s, m]
            cosine[xp.arange(len(a)), at] = -xp.inf
            if near < self.m - 1:
                b = self.backend.to_numpy(xp.argpartition(-cosine, near - 1, axis=1)[:, :near]).astype(
                    np.int64
                )
            else:
                b = self.backend.to_numpy(xp.argsort(-cosine, axis=1)[:, :near]).astype(np.int64)
            self._consider(np.repeat(a, near), b.reshape(-1))

    def _consider(self, a: Indices, b: Indices) -> None:
        # Pairs of communities [p]: keep, at both ends, the best admissible partner.
        fits = self.sizes[a] + self.sizes[b] <= self.max_size
        a, b = a[fits], b[fits]
        # φ is symmetric here: one order of the ends, so that both see the same bits.
        low, high = np.minimum(a, b), np.maximum(a, b)
        phi = 0.5 * (self._centre_in(low, high) + self._centre_in(high, low))
        phi = np.round(phi.astype(np.float64), SCORE_DECIMALS)
        fits = 1.0 - phi < self.threshold
        low, high, phi = low[fits], high[fits], phi[fits]
        ends, others = np.concatenate((low, high)), np.concatenate((high, low))
        value = np.concatenate((phi, phi))
        order = np.lexsort((others, -value, ends))
        first = order[np.flatnonzero(np.diff(ends[order], prepend=-1))]  # best pair of each end
        end, other, best = ends[first], others[first], value[first]
        better = (best > self.affinity[end]) | ((best == self.affinity[end]) & (other < self.partner[end]))
        self.partner[end[better]], self.affinity[end[better]] = other[better], best[better]

    def _centre_in(self, a: Indices, b: Indices) -> NDArray[np.float32]:
        # φ(centre of a, community b) for pairs [p].
        xp = self.backend.xp
        phi = np.empty(len(a), dtype=np.float32)
        for block in row_blocks(len(a), 12 * self.x.shape[1] + 24 * self.counts.shape[1], self.memory_limit):
            entity, community = self.backend.asarray(self.centre[a[block]]), self.backend.asarray(b[block])
            semantic = xp.sum(self.x[entity] * self.centroid[community], axis=1)  # [block]
            structural = paired_similarity(self.counts[entity], self.psi[community], xp)
            phi[block] = self.backend.to_numpy(self.weight * structural + (1.0 - self.weight) * semantic)
        return phi

    def join_mutual_choices(self) -> bool:
        """One round: joins every two communities that chose each other; whether there were any."""
        chosen = np.flatnonzero(self.partner >= 0)
        mutual = chosen[self.partner[self.partner[chosen]] == chosen]
        if len(mutual) == 0:
            return False
        lead = np.arange(self.m)
        lead[mutual] = np.minimum(mutual, self.partner[mutual])  # the lower number of the pair stays
        kept = np.flatnonzero(lead == np.arange(self.m))  # [m'] old numbers
        number = np.searchsorted(kept, lead)  # old number → new number, ascending
        grown = np.unique(number[mutual])  # new numbers of the joined ones
        lost = np.isin(self.partner, mutual)  # their choice is not what it was
        dirty = np.unique(np.concatenate((grown, number[np.flatnonzero(lost)])))
        moved = np.where(self.partner[kept] >= 0, number[self.partner[kept]], -1)
        self.partner, self.affinity = moved, self.affinity[kept]
        self.labels = number[self.labels].astype(np.int32)
        self.m = len(kept)
        self.sizes = np.bincount(self.labels, minlength=self.m)
        self._refresh(kept, grown)
        self.search(dirty)
        return True

    def _refresh(self, kept: Indices, grown: Indices) -> None:
        # Sums over members of the joined communities; the others' move to their new places.
        backend, xp = self.backend, self.backend.xp
        inside = np.flatnonzero(np.isin(self.labels, grown))  # [g] members of joined communities
        part = np.searchsorted(grown, self.labels[inside])
        at = backend.asarray(inside)
        x, counts = self.x[at], self.counts[at]
        self.scores[inside] = own_scores(
            x, counts, part, self.weight, backend=backend, memory_limit=self.memory_limit
        )
        self.centre = self.centre[kept]
        self.centre[grown] = inside[centres(self.scores[inside], part)]
        self.centroid = self.centroid[backend.asarray(kept)]
        self.centroid[backend.asarray(grown)] = centroids(x, part, backend=backend)
        stacked = backend.sparse.vstack(
            (self.psi[backend.asarray(kept)], community_counts(counts, part, backend=backend)), format="csr"
        )
        place = np.arange(self.m)
        place[grown] = self.m + np.arange(len(grown))
        self.psi = stacked[xp.asarray(place)]
