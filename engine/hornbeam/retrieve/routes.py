"""The routes from a question to candidates. Each is a function of (kb, query, settings), best first.

    route          finds                       score
    entity         entities                    max(cosine, name match)
    triple         triples                     ¾ cosine + ¼ share of the question's words (by idf) in it; the
                                               less the embedder tells meaning, the less its cosine counts
    attribute      attributes of entities      entity score × (½ + ½ share of the question's words in it)
    community      communities, their facts    cosine; of a fact: cosine of the community × of the fact
    path           paths and triples           seed score × Π cosine(edge) × γ^hops      (path_route.py)
    chunk_dense    chunks                      cosine
    chunk_bm25     chunks                      BM25 / the most that a row could reach
    pagerank       chunks, entities            1 for the best, 0 for a thousandth of it   (pagerank_route.py)

Cosines below 0 count as 0. A blank question finds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.index.tokens import tokenise
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.names import as_written, name_matches
from hornbeam.retrieve.query import AS_WRITTEN, NAME, Candidate, EncodedQuery, Kind
from hornbeam.retrieve.types import asked_types
from hornbeam.settings import RetrieveSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Communities whose facts are found, how many of each, among how many of its own that are looked at.
FACTS_OF_COMMUNITIES = 5
FACTS_PER_COMMUNITY = 6
FACTS_LOOKED_AT = 200
#: Entities whose attributes are found.
DESCRIBED_ENTITIES = 8
#: What an entity gains whose type the question asks for: less than a name or a nearer meaning does.
TYPE_BONUS = 0.05
#: What the question's own words count in a triple's score, beside its cosine.
WORD_SHARE = 0.25


def entity_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    """Entities that read like the question, and entities that it names.

    Dense search alone misses a name that the embedder has never seen; a name alone misses a paraphrase. A
    type that the question asks for lifts an entity a little and keeps none out.
    """
    dense = _nearest(kb, query, "entities", settings.candidates)
    named = name_matches(kb, query, settings.candidates)
    scores = {row: max(dense.get(row, 0.0), named.get(row, 0.0)) for row in {**dense, **named}}
    if settings.asked_types and (types := asked_types(query.text, kb.entity_types) | query.types):
        for row, score in scores.items():
            if kb.entities.text("type", row) in types:
                scores[row] = min(1.0, score + TYPE_BONUS)
    best = sorted(scores, key=lambda row: (-scores[row], row))[: settings.candidates]
    return [
        Candidate(
            "entity",
            (row,),
            scores[row],
            "entity",
            detail=_found_by(kb, query, row, named.get(row, 0.0), dense.get(row, 0.0)),
        )
        for row in best
    ]


def _found_by(kb: KnowledgeBase, query: EncodedQuery, row: int, named: float, dense: float) -> str:
    if named < dense:
        return "similarity"
    return AS_WRITTEN if as_written(kb, row, query.text) else NAME


def triple_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    """The nearest triples, those first that use the question's own words.

    The embedder takes "first president of the A" and "first president of the B" for the same; the words do
    not.
    """
    found = []
    weights = question_weights(kb, query)
    by_cosine = (1 - WORD_SHARE) * kb.embedder.meaning
    for row, cosine in _nearest(kb, query, "triples", settings.candidates).items():
        share = _word_share(weights, kb.triple_text(row))
        score = by_cosine * cosine + (1 - by_cosine) * share
        found.append(Candidate("triple", (row,), score, "triple"))
    return sorted(found, key=lambda one: (-one.score, one.rows))


def attribute_route(
    kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings, entities: Sequence[Candidate]
) -> list[Candidate]:
    """Attributes of the entities that were found, those first that use the question's own words."""
    found = []
    weights = question_weights(kb, query)
    for entity in entities[:DESCRIBED_ENTITIES]:
        for attribute in kb.entity_attributes.of(entity.rows[0])[: settings.candidates].tolist():
            share = _word_share(weights, kb.attribute_text(attribute))
            found.append(
                Candidate("attribute", (attribute,), entity.score * (0.5 + 0.5 * share), "attribute")
            )
    return sorted(found, key=lambda one: (-one.score, one.rows))[: settings.candidates]


def community_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    communities = _dense_route(kb, query, settings, "communities", "community", "community")
    facts: dict[int, float] = {}
    for community in communities[:FACTS_OF_COMMUNITIES]:
        inner = kb.inner_facts(community.rows[0], FACTS_LOOKED_AT)
        cosines = kb.vectors["triples"].similarities(query.vector, inner)
        for at in np.lexsort((inner, -cosines))[:FACTS_PER_COMMUNITY]:
            fact, cosine = int(inner[at]), float(cosines[at])
            facts[fact] = max(facts.get(fact, 0.0), community.score * max(0.0, cosine))
    found = [
        Candidate("triple", (fact,), min(1.0, score), "community", "fact of a community")
        for fact, score in facts.items()
        if score > 0
    ]
    return sorted([*communities, *found], key=lambda one: (-one.score, one.kind, one.rows))


def chunk_dense_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    return _dense_route(kb, query, settings, "chunks", "chunk", "chunk_dense")


def chunk_bm25_route(kb: KnowledgeBase, query: EncodedQuery, settings: RetrieveSettings) -> list[Candidate]:
    rows, scores = kb.lexical["chunks"].search(query.tokens, settings.candidates)
    return _candidates("chunk", "chunk_bm25", rows, scores)


def question_weights(kb: KnowledgeBase, query: EncodedQuery) -> dict[str, float]:
    """The question's distinct tokens and their idf among the chunks."""
    return {token: kb.lexical["chunks"].idf(token) for token in query.tokens}


def _word_share(weights: Mapping[str, float], text: str) -> float:
    """The idf-weighted share of the question's words that stand in a text, in [0, 1]."""
    shared = weights.keys() & set(tokenise(text))
    return sum(weights[token] for token in shared) / sum(weights.values()) if shared else 0.0


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
