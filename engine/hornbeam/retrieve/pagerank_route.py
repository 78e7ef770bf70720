"""Personalised PageRank over entities and chunks: from the best facts and texts to what they lead to.

The form of HippoRAG 2 (Gutiérrez et al. 2025), the texts' own ranking sharpened, without synonym edges:

    an entity's part    s · mean over the best facts that it ends: (f / best f) / chunks that mention it
    a chunk's part      TEXT_PART · ((b − least b) / (best b − least b))²     among the best few dozen by b
    f                   score of the fact on its route
    b                   half its cosine, half its BM25 score
    s                   min(1, best f / best b)³: where no fact is as like the question as a text is, the
                        graph has no place to start from, and the walk starts from the texts

The walk goes on with probability `damping` (.5) at each step and else begins again. An entity in many chunks
says little about where to look, hence the division; a text of middling likeness says nothing at all, hence
the square. What a walk holds falls by orders of magnitude with each hop, so the score is logarithmic: 1 for
the best, 0 for a thousandth of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import Candidate
from hornbeam.settings import RetrieveSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What a best text weighs beside a best fact.
TEXT_PART = 0.15
#: Of what the best node holds, the least part that scores above 0.
LEAST_PART = 1e-3
#: Mass that is worth passing on to one neighbour: a bound of 1/ε edges a step.
EPSILON = 5e-5


def pagerank_route(
    kb: KnowledgeBase,
    settings: RetrieveSettings,
    facts: Iterable[Candidate],
    text_scores: dict[int, float],
    entities: Iterable[Candidate] = (),
) -> list[Candidate]:
    """Chunks and entities that a walk meets, best first.

    Args:
        facts: triples, best first; the first `settings.seed_facts` are walked from.
        text_scores: chunk row → b; the best `settings.candidates` are walked from.
        entities: walked from, as many as of facts, where there is no fact.
    """
    from hornbeam_kernels.local_ranking import local_pagerank

    ends = _ends(kb, list(facts)[: settings.seed_facts])
    if not ends:
        ends = [(one.rows[0], one.score) for one in list(entities)[: settings.seed_facts]]
    strength = _strength(ends, text_scores)
    seeds = {entity: strength * part for entity, part in _entity_parts(kb, ends).items()}
    best = sorted(text_scores.items(), key=lambda entry: (-entry[1], entry[0]))[: settings.candidates]
    first_chunk = len(kb.entities)
    seeds |= {first_chunk + chunk: TEXT_PART * part for chunk, part in _sharpened(best)}
    seeds = {node: weight for node, weight in seeds.items() if weight > 0}
    if not seeds:
        return []
    nodes, mass = local_pagerank(
        kb.walk,
        np.fromiter(seeds, np.int64),
        np.fromiter(seeds.values(), np.float64),
        damping=settings.damping,
        epsilon=EPSILON,
    )
    is_chunk = nodes >= first_chunk
    return [
        *_best("chunk", nodes[is_chunk] - first_chunk, mass[is_chunk], settings.candidates),
        *_best("entity", nodes[~is_chunk], mass[~is_chunk], settings.candidates),
    ]


def _strength(ends: Sequence[tuple[int, float]], text_scores: dict[int, float]) -> float:
    fact, text = max((score for _, score in ends), default=0.0), max(text_scores.values(), default=0.0)
    return 1.0 if text <= fact else float((fact / text) ** 3)


def _ends(kb: KnowledgeBase, facts: Sequence[Candidate]) -> list[tuple[int, float]]:
    """(entity row, score) of both ends of every fact."""
    return [
        (int(end), fact.score) for fact in facts for end in {kb.heads[fact.rows[0]], kb.tails[fact.rows[0]]}
    ]


def _entity_parts(kb: KnowledgeBase, ends: Sequence[tuple[int, float]]) -> dict[int, float]:
    parts: dict[int, list[float]] = {}
    best = max((score for _, score in ends), default=0.0)
    for entity, score in ends if best > 0 else ():
        parts.setdefault(entity, []).append(score / best / max(1, _chunks_of(kb, entity)))
    return {entity: sum(values) / len(values) for entity, values in parts.items()}


def _chunks_of(kb: KnowledgeBase, entity: int) -> int:
    """How many chunks mention it: of its neighbours in the walk, which ascend, those behind the entities."""
    neighbours = kb.walk.indices[kb.walk.indptr[entity] : kb.walk.indptr[entity + 1]]
    return len(neighbours) - int(np.searchsorted(neighbours, len(kb.entities)))


def _sharpened(best: list[tuple[int, float]]) -> list[tuple[int, float]]:
    if not best:
        return []
    most, least = best[0][1], best[-1][1]
    if most == least:
        return [(chunk, 1.0) for chunk, _ in best]
    return [(chunk, ((score - least) / (most - least)) ** 2) for chunk, score in best]


def _best(kind: str, rows: NDArray[np.int64], mass: NDArray[np.float64], k: int) -> list[Candidate]:
    if not len(rows):
        return []
    scores = 1.0 - np.log(mass / mass.max()) / np.log(LEAST_PART)
    order = np.lexsort((rows, -mass))[:k]
    return [
        Candidate("chunk" if kind == "chunk" else "entity", (int(rows[at]),), float(scores[at]), "pagerank")
        for at in order
        if scores[at] > 0
    ]
