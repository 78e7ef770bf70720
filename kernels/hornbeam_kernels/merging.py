"""Mutual-best merging of communities.

Two communities merge when each is the other's best partner, their dissimilarity lies under a threshold and
the union respects the maximal size. A choice is one partner, so what merges in a round is pairs, the
connected components of the mutual-choice graph: no chain of neighbours is ever pulled into one community.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Backend, Sparse, select_backend
from hornbeam_kernels.closeness import CalibratedFit, CentreFit, Closeness, Members
from hornbeam_kernels.dual_perception import SCORE_DECIMALS
from hornbeam_kernels.indexing import Indices, Labels, count_communities, label_array, renumber
from hornbeam_kernels.search import build_index, search

EXACT_BELOW = 50_000
"""Candidates come from an exact search below this many communities, from inverted lists above."""


def merge_communities(
    x: Any,
    counts: Sparse,
    labels: Any,
    *,
    threshold: float,
    max_size: int,
    form: Literal["calibrated", "centres"] = "calibrated",
    structure_weight: float = 0.3,
    candidates: int = 16,
    backend: Backend | None = None,
    memory_limit: int | None = None,
) -> Labels:
    """Merges communities round by round until no two are each other's best: labels int32 [n] in normal form.

    ``x`` float [n, D] unit rows, ``counts`` CSR [n, C] (``relation_type_counts``), ``labels`` [n]. The
    dissimilarity is 1 − φ with φ of ``closeness.CalibratedFit``, or of ``closeness.CentreFit`` with
    ``form="centres"``. A partner is admissible when that is < ``threshold`` and the two sizes add up to at
    most ``max_size``; the best is the least dissimilar (to six decimals), then the lowest numbered. Each
    round joins all mutual choices and recomputes what changed.

    Partners are looked for among the ``candidates`` nearest centroids; with ``candidates`` ≥ m − 1 below
    ``EXACT_BELOW`` the search is exhaustive. Each later round searches only for communities that changed or
    lost their partner, and a last round over all must find nothing. Every entity keeps a community; a
    community that starts above ``max_size`` stays as it is. Deterministic; relabelling the communities
    changes nothing but ties.

    Time O(m² D) for the first round below ``EXACT_BELOW`` communities, O(m^1.5 D) above, and O(changed · m ·
    D) for the others. Memory: a few [m, D] and O(m · candidates); never m × m.
    Raises ``ValueError`` on unequal lengths, ``candidates`` < 1 or a weight outside [0, 1].
    """
    if candidates < 1:
        raise ValueError(f"candidates must be ≥ 1, not {candidates}")
    if not 0.0 <= structure_weight <= 1.0:
        raise ValueError(f"structure_weight must lie in [0, 1], not {structure_weight}")
    if form not in ("calibrated", "centres"):
        raise ValueError(f"form must be calibrated or centres, not {form!r}")
    backend = backend or select_backend("cpu")
    rows = backend.asarray(x, dtype=backend.xp.float32)
    own = renumber(label_array(labels, rows.shape[0]))
    if counts.shape[0] != rows.shape[0]:
        raise ValueError(f"counts must have one row per entity: {counts.shape[0]} for {rows.shape[0]}")
    if rows.shape[0] == 0:
        return own
    given = Members(rows, counts, own, structure_weight, backend, memory_limit)
    closeness: Closeness = CalibratedFit(given) if form == "calibrated" else CentreFit(given)
    state = _Rounds(closeness, own, candidates, threshold, max_size, backend)
    while True:
        if not state.join_mutual_choices():
            if state.searched_all:
                return renumber(state.labels)
            state.search(np.arange(state.m))


class _Rounds:
    """The communities of one round and each one's best partner so far."""

    def __init__(
        self,
        closeness: Closeness,
        labels: Labels,
        candidates: int,
        threshold: float,
        max_size: int,
        backend: Backend,
    ) -> None:
        self.closeness, self.labels, self.backend = closeness, labels, backend
        self.candidates, self.threshold, self.max_size = candidates, threshold, max_size
        self.m = count_communities(labels)
        self.sizes = np.bincount(labels, minlength=self.m)  # [m]
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
        centroid = self.backend.to_numpy(self.closeness.centroid)  # [m, D]
        index = build_index(centroid, exact_below=EXACT_BELOW, backend=self.backend)
        near = search(index, centroid[which], min(self.candidates + 1, self.m))[1]  # itself among them
        a, b = np.repeat(which, near.shape[1]), near.reshape(-1)
        proper = (a != b) & (b >= 0)
        self._consider(a[proper], b[proper])

    def _consider(self, a: Indices, b: Indices) -> None:
        # Pairs of communities [p]: keep, at both ends, the best admissible partner.
        fits = self.sizes[a] + self.sizes[b] <= self.max_size
        low, high = np.minimum(a, b)[fits], np.maximum(a, b)[fits]
        phi = np.round(self.closeness(low, high), SCORE_DECIMALS)
        fits = 1.0 - phi < self.threshold
        low, high, phi = low[fits], high[fits], phi[fits]
        ends, others = np.concatenate((low, high)), np.concatenate((high, low))
        value = np.concatenate((phi, phi))
        order = np.lexsort((others, -value, ends))
        first = order[np.flatnonzero(np.diff(ends[order], prepend=-1))]  # best pair of each end
        end, other, best = ends[first], others[first], value[first]
        better = (best > self.affinity[end]) | ((best == self.affinity[end]) & (other < self.partner[end]))
        self.partner[end[better]], self.affinity[end[better]] = other[better], best[better]

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
        self.closeness.join(self.labels, number, grown)
        self.search(dirty)
        return True
