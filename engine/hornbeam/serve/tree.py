"""A part of the knowledge tree that a screen can hold, whatever the size of the index.

One level at a time: the largest communities below one, or its best connected members, with what links them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.index.tokens import tokenise
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.serve.graph import community_json, edge_json, node_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Of the lexical search for a name, before types are left out.
_NAMES_LOOKED_AT = 2000
#: Names of one prefix that are looked for.
_COMPLETIONS = 24
#: Relations of a picture, for each of its things.
_EDGES_PER_NODE = 6
#: Links between communities, for each of them: more cannot be told apart, and they are half a frame's work.
_LINKS_PER_COMMUNITY = 3


def tree_json(
    kb: KnowledgeBase, parent: int | None, limit: int, types: Collection[str], min_confidence: float
) -> dict[str, Any]:
    """What lies directly below a community (or at the top), as things and links between them.

    Args:
        limit: things at most: the largest communities, the members with most relations.
        types: of entities that are shown; none: all.
        min_confidence: of relations between entities that are shown.
    """
    children = np.flatnonzero(kb.community_parents == -1) if parent is None else kb.children.of(parent)
    if len(children):
        sizes = np.array([kb.communities.get("size", row) for row in children.tolist()])
        chosen = children[np.lexsort((children, -sizes))][:limit]
        return {
            "path": _path(kb, parent),
            "communities": [community_json(kb, row) for row in chosen.tolist()],
            "communities_in_all": len(children),
            "entities": [],
            "entities_in_all": 0,
            "links": _between_communities(kb, chosen),
            "relations": [],
        }
    members = kb.members.of(parent) if parent is not None else np.zeros(0, np.int32)
    if types:
        wanted = [kb.entities.text("type", row) in types for row in members.tolist()]
        members = members[np.array(wanted, bool)] if len(members) else members
    chosen = members[np.lexsort((members, -degrees(kb, members)))][:limit]
    return {
        "path": _path(kb, parent),
        "communities": [],
        "communities_in_all": 0,
        "entities": [node_json(kb, row) | {"degree": d} for row, d in _with_degrees(kb, chosen)],
        "entities_in_all": len(members),
        "links": [],
        "relations": [edge_json(kb, edge) for edge in _edges_between(kb, chosen, min_confidence)],
    }


def entities_json(kb: KnowledgeBase, text: str, types: Collection[str], limit: int) -> dict[str, Any]:
    """Entities by name, best first, the last word as far as it is typed; without text the best connected."""
    rows = _named(kb, text) if text.strip() else np.argsort(-_all_degrees(kb), kind="stable")
    if types:
        found: list[int] = []
        for row in rows.tolist():
            if kb.entities.text("type", row) in types:
                found.append(row)
                if len(found) == limit:
                    break
        rows = np.array(found, np.int64)
    chosen = rows[:limit]
    return {
        "entities": [node_json(kb, row) | {"degree": d} for row, d in _with_degrees(kb, chosen)],
        "types": list(kb.entity_types),
        "entities_in_all": len(kb.entities),
    }


def degrees(kb: KnowledgeBase, rows: NDArray[Any]) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = kb.adjacency.indptr[rows + 1] - kb.adjacency.indptr[rows]
    return counts


def _all_degrees(kb: KnowledgeBase) -> NDArray[np.int64]:
    return np.diff(kb.adjacency.indptr)


def _with_degrees(kb: KnowledgeBase, rows: NDArray[Any]) -> list[tuple[int, int]]:
    return list(zip(rows.tolist(), degrees(kb, rows).tolist(), strict=True))


def _named(kb: KnowledgeBase, text: str) -> NDArray[np.int64]:
    lexical = kb.lexical["entities"]
    tokens = tokenise(text)
    if tokens and lexical.bm25 is not None and tokens[-1] not in lexical.bm25.vocab_dict:
        begun = tokens[-1]
        ends = sorted((w for w in lexical.bm25.vocab_dict if w.startswith(begun)), key=lambda w: (len(w), w))
        tokens = [*tokens[:-1], *ends[:_COMPLETIONS]]
    return lexical.search(tokens, _NAMES_LOOKED_AT)[0]


def _path(kb: KnowledgeBase, community: int | None) -> list[dict[str, str]]:
    """From the top down to the community itself."""
    path: list[dict[str, str]] = []
    while community is not None and community >= 0:
        path.append(
            {
                "id": kb.communities.text("community_id", community),
                "name": kb.communities.text("name", community),
            }
        )
        community = int(kb.community_parents[community])
    return path[::-1]


def _between_communities(kb: KnowledgeBase, chosen: NDArray[Any]) -> list[dict[str, Any]]:
    """Relations between each two of them, counted; the strongest links."""
    place = np.full(len(kb.communities), -1, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    home = _below(kb.community_parents, place)
    of_entity = np.where(kb.leaf_of >= 0, home[kb.leaf_of], -1)
    heads, tails = of_entity[kb.heads], of_entity[kb.tails]
    crossing = (heads >= 0) & (tails >= 0) & (heads != tails)
    low, high = (f(heads[crossing], tails[crossing]) for f in (np.minimum, np.maximum))
    pairs, counts = np.unique(low.astype(np.int64) * len(chosen) + high, return_counts=True)
    strongest = np.lexsort((pairs, -counts))[: _LINKS_PER_COMMUNITY * max(1, len(chosen))]
    identifiers = [kb.communities.text("community_id", row) for row in chosen.tolist()]
    return [
        {
            "source": identifiers[int(pairs[at]) // len(chosen)],
            "target": identifiers[int(pairs[at]) % len(chosen)],
            "relations": int(counts[at]),
        }
        for at in strongest.tolist()
    ]


def _below(parents: NDArray[np.int32], place: NDArray[np.int32]) -> NDArray[np.int32]:
    """For every community the chosen one that it is or lies below, −1 for none."""
    found, at = place.copy(), parents.copy()
    while (unsettled := (found < 0) & (at >= 0)).any():
        found[unsettled] = place[at[unsettled]]
        at[unsettled] = parents[at[unsettled]]
    return found


def _edges_between(kb: KnowledgeBase, chosen: NDArray[Any], min_confidence: float) -> list[int]:
    limit = _EDGES_PER_NODE * max(1, len(chosen))
    edges = np.unique(kb.adjacency.edges_around(chosen, limit)) if len(chosen) else np.zeros(0, np.int64)
    inside = edges[np.isin(kb.heads[edges], chosen) & np.isin(kb.tails[edges], chosen)]
    confidence = np.array([kb.relations.get("confidence", edge) for edge in inside.tolist()], float)
    order = np.lexsort((inside, -confidence))
    return [int(inside[at]) for at in order[:limit] if confidence[at] >= min_confidence]
