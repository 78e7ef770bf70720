"""Plain loops that say what each kernel must compute, and small random graphs to try them on."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hornbeam_kernels.indexing import renumber

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


def propagated_by_loops(g: dict[str, Any], hops: int, w: float) -> np.ndarray:
    d = g["entities"].shape[1]
    slots = np.array([[unit(s) for s in row] for row in slots_by_loops(g)]).reshape(g["n"], 3, d)
    for _ in range(hops):
        after = slots.copy()
        for i, s in itertools.product(range(g["n"]), range(3)):
            around = np.zeros(d)
            for h, t in zip(g["heads"], g["tails"], strict=True):
                around = around + (slots[t, s] if h == i else 0) + (slots[h, s] if t == i else 0)
            after[i, s] = unit(w * slots[i, s] + (1 - w) * unit(around))
        slots = after
    return np.array([unit(row.reshape(-1)) for row in slots]).reshape(g["n"], 3 * d)


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


def merge_by_loops(
    x: np.ndarray, counts: np.ndarray, labels: np.ndarray, threshold: float, max_size: int, w: float
) -> np.ndarray:
    while True:
        _, middle, mean, best = communities_by_loops(x, counts, labels, w)
        m, sizes = len(middle), np.bincount(labels)
        partner = [-1] * m
        for a in range(m):
            found = []
            for b in range(m):
                value = 0.5 * phi(x[best[a]], counts[best[a]], middle[b], mean[b], w)
                value += 0.5 * phi(x[best[b]], counts[best[b]], middle[a], mean[a], w)
                if b != a and sizes[a] + sizes[b] <= max_size and 1 - round(value, 6) < threshold:
                    found.append((-round(value, 6), b))
            partner[a] = min(found)[1] if found else -1
        mutual = [(a, partner[a]) for a in range(m) if a < partner[a] and partner[partner[a]] == a]
        if not mutual:
            return renumber(labels)
        joined = {b: a for a, b in mutual}
        labels = renumber(np.array([joined.get(int(c), int(c)) for c in labels]))


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
