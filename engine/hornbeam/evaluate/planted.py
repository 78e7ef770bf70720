"""Graphs with planted communities, told by edges, vectors and relation types, each as clearly as wished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS = 65_536
_DROWNED = 1e6
"""Noise above this leaves nothing of a centre in float32."""


@dataclass(frozen=True, slots=True)
class Planting:
    """How clearly a planted graph shows its communities."""

    mixing: float = 0.3
    """μ: share of triples whose tail is any entity, not one of the head's community; 1: edges say nothing"""
    noise: float = 1.0
    """σ: length of an entity's own noise beside its community's unit centre, so that two of one community
    have cosine 1 / (1 + σ²); infinity: vectors say nothing"""
    relation_mixing: float = 1.0
    """share of triples whose type is any, not a favourite of the head's community; 1: types say nothing"""
    degree: int = 6
    """mean number of triples at an entity: n · degree / 2 triples"""
    relation_types: int = 40
    favourites: int = 4
    smallest: int = 20
    largest: int = 60
    kinds: int = 0
    """kinds of entities (people, places, …), spread over all communities"""
    kind_weight: float = 1.0
    """length of its kind in an entity's vector, beside its community's centre of length ``topic_weight``"""
    topic_weight: float = 1.0
    between_kinds: bool = False
    """inside a community, edges join only unlike kinds"""
    communities_per_topic: int = 1
    """from 2 on, the centres of so many communities have a topic in common, as long as theirs"""
    dimension: int = 384


@dataclass(frozen=True, slots=True)
class PlantedGraph:
    labels: NDArray[np.int32]
    """[n] the planted communities"""
    entity_vectors: NDArray[np.float32]
    """[n, d] unit rows"""
    relation_vectors: NDArray[np.float32]
    """[R, d] unit rows"""
    heads: NDArray[np.int64]
    """[T]"""
    relations: NDArray[np.int64]
    """[T]"""
    tails: NDArray[np.int64]
    """[T]"""
    queries: NDArray[np.float32]
    """[held_out, d] drawn like the entities' vectors, not among them"""


def planted_graph(
    n: int, planting: Planting | None = None, *, seed: int = 0, held_out: int = 0
) -> PlantedGraph:
    """n entities in communities of `smallest` to `largest`; the numbers of entities say nothing.

    Every triple starts at a random entity. Time O(n d), about 10 s for 10⁶ × 384; memory the result and a
    block of rows. The same arguments give the same graph.
    """
    import numpy as np

    p = planting or Planting()
    rng = np.random.default_rng(seed)
    sizes = rng.integers(p.smallest, p.largest + 1, n // p.smallest + 1)
    ends = np.cumsum(sizes)
    first = np.concatenate(([0], ends[ends < n], [n]))  # [m + 1] where each community's members begin
    m = len(first) - 1
    members = rng.permutation(n)
    labels = np.empty(n, dtype=np.int32)
    labels[members] = np.repeat(np.arange(m), np.diff(first))

    triples = n * p.degree // 2
    heads = rng.integers(0, n, triples)
    own = labels[heads]
    near = members[first[own] + (rng.random(triples) * np.diff(first)[own]).astype(np.int64)]
    tails = np.where(rng.random(triples) < p.mixing, rng.integers(0, n, triples), near)
    favourites = rng.integers(0, p.relation_types, (m, p.favourites))
    favourite = favourites[own, rng.integers(0, p.favourites, triples)]
    any_type = rng.integers(0, p.relation_types, triples)
    relations = np.where(rng.random(triples) < p.relation_mixing, any_type, favourite)

    kind = rng.integers(0, p.kinds, n) if p.kinds else np.zeros(n, dtype=np.int64)
    if p.kinds and p.between_kinds:
        for _ in range(20):  # draws tails of like kind again
            again = (kind[heads] == kind[tails]) & (labels[heads] == labels[tails])
            own = labels[heads[again]]
            drawn = members[first[own] + (rng.random(len(own)) * np.diff(first)[own]).astype(np.int64)]
            tails[again] = drawn

    centres = _unit(rng.standard_normal((m, p.dimension), np.float32))
    if p.communities_per_topic > 1:
        topics = _unit(rng.standard_normal((-(-m // p.communities_per_topic), p.dimension), np.float32))
        centres = _unit(centres + topics[np.arange(m) // p.communities_per_topic])

    of_kinds = p.kind_weight * _unit(rng.standard_normal((max(p.kinds, 1), p.dimension), np.float32))

    def vectors(of: NDArray[np.int32], kind: NDArray[np.int64]) -> NDArray[np.float32]:
        rows = np.empty((len(of), p.dimension), dtype=np.float32)
        for start in range(0, len(of), _ROWS):
            block = slice(start, min(start + _ROWS, len(of)))
            own_noise = _unit(rng.standard_normal((block.stop - start, p.dimension), np.float32))
            if p.noise > _DROWNED:
                rows[block] = own_noise
                continue
            told = p.topic_weight * centres[of[block]]
            if p.kinds:
                told = told + of_kinds[kind[block]]
            rows[block] = _unit(told + p.noise * own_noise)
        return rows

    entity_vectors = vectors(labels, kind)
    of_queries = rng.integers(0, max(p.kinds, 1), held_out)
    queries = vectors(rng.integers(0, max(m, 1), held_out).astype(np.int32), of_queries)
    relation_vectors = _unit(rng.standard_normal((p.relation_types, p.dimension), np.float32))
    return PlantedGraph(labels, entity_vectors, relation_vectors, heads, relations, tails, queries)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
