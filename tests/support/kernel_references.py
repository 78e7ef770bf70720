"""Plain loops that say what each kernel must compute, and small random graphs to try them on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hornbeam_kernels.indexing import renumber
from hornbeam_kernels.signals import Signals

D = 5
"""Dimension of the vectors of ``graphs``."""


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 9) -> dict[str, Any]:
    """A multigraph with loops and lonely nodes, and random vectors for it."""
    n = draw(st.integers(0, max_nodes))
    r = draw(st.integers(0, 3))
    node, kind = st.integers(0, max(0, n - 1)), st.integers(0, max(0, r - 1))
    triples = draw(st.lists(st.tuples(node, kind, node), max_size=18)) if n and r else []
    columns = np.asarray(triples, dtype=np.int64).reshape(-1, 3)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return {
        "n": n,
        "r": r,
        "heads": columns[:, 0],
        "relations": columns[:, 1],
        "tails": columns[:, 2],
        "entities": rng.normal(size=(n, D)),
        "types": rng.normal(size=(r, D)),
        "rng": rng,
    }


def unit(v: np.ndarray) -> np.ndarray:
    length = math.sqrt(sum(float(a) ** 2 for a in v))
    return v / length if length > 0 else v


def slots_by_loops(g: dict[str, Any]) -> np.ndarray:
    out = np.zeros((g["n"], 3, g["entities"].shape[1]))
    for i in range(g["n"]):
        touching = [
            (h, r, t) for h, r, t in zip(g["heads"], g["relations"], g["tails"], strict=True) if i in (h, t)
        ]
        for h, r, t in touching:
            out[i] += np.stack((g["entities"][h], g["types"][r], g["entities"][t])) / len(touching)
        if not touching:
            out[i, 0] = out[i, 2] = g["entities"][i]
    return out


def propagated_by_loops(g: dict[str, Any], signals: Signals) -> np.ndarray:
    """Rows of the propagated form, with the relation slot in all d dimensions."""
    n, d = g["entities"].shape
    edges = [(h, t) for h, t in zip(g["heads"], g["tails"], strict=True) if h != t]

    def centred(rows: np.ndarray, among: list[int]) -> np.ndarray:
        out = rows - (rows[among].mean(axis=0) if among else 0)
        return np.array([row if np.linalg.norm(row) > 1e-4 else 0 * row for row in out]).reshape(rows.shape)

    def spread(rows: np.ndarray) -> np.ndarray:
        rows = np.array([unit(row) for row in rows]).reshape(rows.shape)
        for _ in range(signals.hops):
            after = rows.copy()
            for h, t in edges:
                after[h] = after[h] + signals.neighbour_weight * rows[t]
                after[t] = after[t] + signals.neighbour_weight * rows[h]
            rows = np.array([unit(row) for row in after]).reshape(rows.shape)
        return rows

    everyone = list(range(n))
    if n == 1:
        entity = spread(g["entities"])
    else:
        entity = spread(g["entities"] - g["entities"].mean(axis=0) if n else g["entities"])
        entity = np.array([unit(row) for row in centred(entity, everyone)]).reshape(n, d)
    profile = np.zeros((n, d))
    triples = list(zip(g["heads"], g["relations"], g["tails"], strict=True))
    met = [i for i in range(n) if any(i in (h, t) for h, _, t in triples)]
    for i in met:
        profile[i] = unit(np.mean([g["types"][r] for h, r, t in triples if i in (h, t)], axis=0))
    common = profile[met].mean(axis=0) if met else np.zeros(d)
    for i in met:
        profile[i] = profile[i] - common if np.linalg.norm(profile[i] - common) > 1e-4 else 0
    profile = centred(spread(profile), everyone)
    both = np.concatenate((entity, signals.relation_weight * profile), axis=1)
    return np.array([unit(row) for row in both]).reshape(n, 2 * d)


def type_counts(g: dict[str, Any]) -> np.ndarray:
    out = np.zeros((g["n"], 2 * g["r"]))
    for h, r, t in zip(g["heads"], g["relations"], g["tails"], strict=True):
        out[h, r] += 1
        out[t, g["r"] + r] += 1
    return out


def jaccard_by_loops(a: np.ndarray, b: np.ndarray) -> float:
    low = sum(min(p, q) for p, q in zip(a, b, strict=True))
    high = sum(max(p, q) for p, q in zip(a, b, strict=True))
    return low / high if high > 0 else 0.0


def phi(x: np.ndarray, counts: np.ndarray, middle: np.ndarray, mean: np.ndarray, w: float) -> float:
    return w * jaccard_by_loops(counts, mean) + (1 - w) * float(x @ middle)


def communities_by_loops(
    x: np.ndarray, counts: np.ndarray, labels: np.ndarray, w: float
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray], list[int]]:
    groups = [[i for i in range(len(labels)) if labels[i] == c] for c in range(max(labels, default=-1) + 1)]
    middle = [unit(x[group].astype(float).mean(axis=0)) for group in groups]
    mean = [counts[group].mean(axis=0) for group in groups]
    scores = np.array([phi(x[i], counts[i], middle[c], mean[c], w) for i, c in enumerate(labels)])
    best = [max(group, key=lambda i: (round(float(scores[i]), 6), -i)) for group in groups]
    return scores, middle, mean, best


def centre_fit_by_loops(x: np.ndarray, counts: np.ndarray, labels: np.ndarray, w: float) -> np.ndarray:
    """φ between communities by their centres [m, m]."""
    _, middle, mean, best = communities_by_loops(x, counts, labels, w)
    fit = np.array(
        [[phi(x[e], counts[e], c, psi, w) for c, psi in zip(middle, mean, strict=True)] for e in best]
    )
    return 0.5 * (fit + fit.T)


def calibrated_fit_by_loops(
    x: np.ndarray, counts: np.ndarray, labels: np.ndarray, w: float, pooled: float, background: float
) -> np.ndarray:
    """φ between whole communities, corrected for attenuation [m, m]."""
    x = x.astype(float)
    groups = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
    inner = []
    for group in groups:
        cosines = [float(x[i] @ x[j]) for i in group for j in group if i != j]
        inner.append(max((sum(cosines) + 2 * pooled) / (len(cosines) + 2), 0.25 * pooled))
    fit = np.zeros((len(groups), len(groups)))
    for a, b in itertools.product(range(len(groups)), repeat=2):
        across = np.mean([float(x[i] @ x[j]) for i in groups[a] for j in groups[b]])
        shared = jaccard_by_loops(counts[groups[a]].mean(axis=0), counts[groups[b]].mean(axis=0))
        shared = (shared - background) / max(1 - background, 1e-6)
        fit[a, b] = w * shared + (1 - w) * across / math.sqrt(inner[a] * inner[b])
    return fit


def merge_by_loops(
    fit_of: Callable[[np.ndarray], np.ndarray], labels: np.ndarray, threshold: float, max_size: int
) -> np.ndarray:
    """Rounds of mutual best partners by ``fit_of(labels)`` [m, m]."""
    while True:
        fit, sizes = np.round(fit_of(labels), 6), np.bincount(labels)
        partner = []
        for a in range(len(fit)):
            found = [
                (-fit[a, b], b)
                for b in range(len(fit))
                if b != a and sizes[a] + sizes[b] <= max_size and 1 - fit[a, b] < threshold
            ]
            partner.append(min(found)[1] if found else -1)
        mutual = [(a, b) for a, b in enumerate(partner) if a < b and partner[b] == a]
        if not mutual:
            return renumber(labels)
        joined = {b: a for a, b in mutual}
        labels = renumber(np.array([joined.get(int(c), int(c)) for c in labels]))


def dbscan_by_loops(x: np.ndarray, eps: float, min_samples: int) -> np.ndarray:
    """DBSCAN by cosine: rows at a border go to the nearest core row, −1 is noise, numbers by occurrence."""
    n = len(x)
    lengths = [math.sqrt(sum(float(a) ** 2 for a in row)) for row in x]

    def cosine(i: int, j: int) -> float:
        return sum(float(a) * float(b) for a, b in zip(x[i], x[j], strict=True)) / (lengths[i] * lengths[j])

    near = {
        i: [j for j in range(n) if lengths[j] > 0 and (i == j or 1 - cosine(i, j) <= eps + 5e-7)]
        for i in range(n)
        if lengths[i] > 0
    }
    cores = [i for i in near if len(near[i]) >= min_samples]
    labels = [-1] * n
    for start in cores:
        waiting = [start] if labels[start] < 0 else []
        fresh = max(labels) + 1
        while waiting:
            i = waiting.pop()
            labels[i] = fresh
            waiting += [j for j in near[i] if j in cores and labels[j] < 0]
    reached = {i: [j for j in near[i] if j in cores] for i in near if i not in cores}
    for i, reachable in reached.items():
        if reachable:
            labels[i] = labels[max(reachable, key=lambda j: round(cosine(i, j), 6))]
    order: dict[int, int] = {}
    return np.array([-1 if c < 0 else order.setdefault(c, len(order)) for c in labels], dtype=np.int32)


def pagerank_by_solving(g: dict[str, Any], personalisation: np.ndarray, damping: float) -> np.ndarray:
    """p = (1 − a) v + a Wᵀ p with what dangling nodes hold given back to v, as one dense linear system."""
    n = g["n"]
    walk = np.zeros((n, n))
    for h, t in zip(g["heads"], g["tails"], strict=True):
        walk[h, t] += 1
        if h != t:
            walk[t, h] += 1
    v = personalisation / personalisation.sum()
    for i in range(n):
        walk[i] = walk[i] / walk[i].sum() if walk[i].sum() > 0 else v
    return np.linalg.solve(np.eye(n) - damping * walk.T, (1 - damping) * v)
