"""Graphs of any size with planted topics, in text vectors and edges alike, written to disk as NumPy arrays.

n entities lie in communities of 20 to 60, 25 communities in a topic. The unit vector of an entity is its
community's centre plus noise (cosine with the centre about .7), a centre is its topic's plus noise. Each of
3 n triples starts at a random entity and ends, nine times of ten, in its own community, else anywhere; its
type is one of the community's four favourites of 40, four times of five. Entities' numbers say nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIMENSION = 384
RELATION_TYPES = 40
TRIPLES_PER_ENTITY = 3
SMALLEST, LARGEST = 20, 60
COMMUNITIES_PER_TOPIC = 25
INSIDE = 0.9
FAVOURITES = 4
TO_A_FAVOURITE = 0.8
HELD_OUT = 1000
"""Vectors drawn like the entities' and not among them, to ask for."""
_ROWS = 65_536


def write_planted_graph(folder: Path, n: int, *, seed: int = 0, dimension: int = DIMENSION) -> None:
    """Writes heads, relations, tails (int32 [3n]), vectors and queries (float32 [·, d]), planted labels.

    Time O(n d), about 10 s for 10⁶ × 384; memory O(n) and a block of vectors. The same n and seed give the
    same files.
    """
    rng = np.random.default_rng(seed)
    labels, first, members = _communities(n, rng)
    communities = len(first) - 1
    heads, relations, tails = _triples(n, labels, first, members, rng)
    topics = _unit(rng.standard_normal((-(-communities // COMMUNITIES_PER_TOPIC), dimension), np.float32))
    noise = _unit(rng.standard_normal((communities, dimension), np.float32))
    centres = _unit(topics[np.arange(communities) // COMMUNITIES_PER_TOPIC] + noise)
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (
        ("heads", heads),
        ("relations", relations),
        ("tails", tails),
        ("labels", labels),
        ("relation_vectors", _unit(rng.standard_normal((RELATION_TYPES, dimension), np.float32))),
    ):
        np.save(folder / f"{name}.npy", array)
    _write_vectors(folder / "vectors.npy", centres, labels, rng)
    _write_vectors(folder / "queries.npy", centres, rng.integers(0, communities, HELD_OUT), rng)


def _communities(
    n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    # Community of each entity [n]; members [n] by community, where each one starts [m + 1].
    sizes = rng.integers(SMALLEST, LARGEST + 1, n // SMALLEST + 1)
    ends = np.cumsum(sizes)
    first = np.concatenate(([0], ends[ends < n], [n]))
    members = rng.permutation(n)
    labels = np.empty(n, dtype=np.int32)
    labels[members] = np.repeat(np.arange(len(first) - 1), np.diff(first))
    return labels, first, members


def _triples(
    n: int,
    labels: NDArray[np.int32],
    first: NDArray[np.int64],
    members: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    count = TRIPLES_PER_ENTITY * n
    heads = rng.integers(0, n, count)
    own = labels[heads]
    near = members[first[own] + (rng.random(count) * np.diff(first)[own]).astype(np.int64)]
    tails = np.where(rng.random(count) < INSIDE, near, rng.integers(0, n, count))
    favourites = rng.integers(0, RELATION_TYPES, (len(first) - 1, FAVOURITES))
    favourite = favourites[own, rng.integers(0, FAVOURITES, count)]
    any_type = rng.integers(0, RELATION_TYPES, count)
    relations = np.where(rng.random(count) < TO_A_FAVOURITE, favourite, any_type)
    return heads.astype(np.int32), relations.astype(np.int32), tails.astype(np.int32)


def _write_vectors(
    file: Path, centres: NDArray[np.float32], labels: NDArray[np.integer], rng: np.random.Generator
) -> None:
    n, d = len(labels), centres.shape[1]
    out = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(n, d))  # type: ignore[no-untyped-call]
    for start in range(0, n, _ROWS):
        own = labels[start : start + _ROWS]
        noise = _unit(rng.standard_normal((len(own), d), np.float32))
        out[start : start + _ROWS] = _unit(centres[own] + noise)
    out.flush()


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
