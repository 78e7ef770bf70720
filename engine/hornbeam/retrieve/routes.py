"""The routes from a question to candidates. Each is a function of (kb, query, settings), best first.

    route          finds                       score
    entity         entities                    max(cosine, name match)
    triple         triples                     ¾ cosine + ¼ share of the question's words (by idf) in it
    community      communities, their facts    cosine; of a fact: cosine of the community × of the fact
    path           paths and triples           seed score × Π cosine(edge) × γ^hops      (path_route.py)
    chunk_dense    chunks                      cosine
    chunk_bm25     chunks                      BM25 / the most that a row could reach
    pagerank       chunks, entities            1 for the best, 0 for a thousandth of it   (pagerank_route.py)

Cosines below 0 count as 0. A blank question finds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hornbeam.index.tokens import tokenise
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.names import name_matches
from hornbeam.retrieve.query import Candidate, EncodedQuery, Kind
from hornbeam.settings import RetrieveSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Communities whose central facts are looked at, and how many of each.
FACTS_OF_COMMUNITIES = 5
FACTS_PER_COMMUNITY = 6
#: What the question's own words count in a triple's score, beside its cosine.
WORD_SHARE = 0.25


def entity_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    """Entities that read like the question, and entities that it names.

    Dense search alone misses a name that the embedder has never seen; a name alone misses a paraphrase.
    """
    dense = _nearest(kb, query, "entities", settings.candidates)
    named = name_matches(kb, query, settings.candidates)
    scores = {row: max(dense.get(row, 0.0), named.get(row, 0.0)) for row in {**dense, **named}}
    best = sorted(scores, key=lambda row: (-scores[row], row))[: settings.candidates]
    return [
        Candidate(
            "entity",
            (row,),
            scores[row],
            "entity",
            detail="name" if named.get(row, 0.0) >= dense.get(row, 0.0) else "similarity",
        )
        for row in best
    ]


def triple_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    """The nearest triples, those first that use the question's own words.

    The embedder takes "first president of the A" and "first president of the B" for the same; the words do
    not.
    """
    nearest = _nearest(kb, query, "triples", settings.candidates)
    weights = {token: kb.lexical["chunks"].idf(token) for token in query.tokens}
    total = sum(weights.values())
    found = []
    for row, cosine in nearest.items():
        words = weights.keys() & set(tokenise(kb.triple_text(row))) if total else ()
        share = sum(weights[word] for word in words) / total if words else 0.0
        score = (1 - WORD_SHARE) * cosine + WORD_SHARE * share
        found.append(Candidate("triple", (row,), score, "triple"))
    return sorted(found, key=lambda one: (-one.score, one.rows))


def community_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    communities = _dense_route(kb, query, settings, "communities", "community", "community")
    facts: dict[int, float] = {}
    for community in communities[:FACTS_OF_COMMUNITIES]:
        central = kb.central_facts(community.rows[0], FACTS_PER_COMMUNITY)
        cosines = kb.vectors["triples"].similarities(query.vector, np.array(central, dtype=np.int64))
        for fact, cosine in zip(central, cosines.tolist(), strict=True):
            facts[fact] = max(facts.get(fact, 0.0), community.score * max(0.0, cosine))
    found = [
        Candidate("triple", (fact,), min(1.0, score), "community", "central fact")
        for fact, score in facts.items()
        if score > 0
    ]
    return sorted([*communities, *found], key=lambda one: (-one.score, one.kind, one.rows))


def chunk_dense_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    return _dense_route(kb, query, settings, "chunks", "chunk", "chunk_dense")


def chunk_bm25_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    rows, scores = kb.lexical["chunks"].search(query.tokens, settings.candidates)
    return _candidates("chunk", "chunk_bm25", rows, scores)


def _dense_route(
    kb: KnowledgeBase,
    query: EncodedQuery,
    settings: RetrieveSettings,
    vectors: str,
    kind: Kind,
    route: str,
) -> list[Candidate]:
    nearest = _nearest(kb, query, vectors, settings.candidates)
    return [Candidate(kind, (row,), score, route) for row, score in nearest.items()]


def _nearest(kb: KnowledgeBase, query: EncodedQuery, vectors: str, k: int) -> dict[int, float]:
    """Row → cosine in (0, 1], best first, ties by row."""
    if query.blank:
        return {}
    rows, cosines = kb.vectors[vectors].search(query.vector, k)
    order = np.lexsort((rows, -cosines))
    return {int(rows[place]): min(1.0, float(cosines[place])) for place in order if cosines[place] > 0}


def _candidates(
    kind: Kind, route: str, rows: NDArray[np.int64], scores: NDArray[np.float32]
) -> list[Candidate]:
    return [
        Candidate(kind, (row,), score, route)
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
    ]
