"""Parts of a graph as JSON: one entity, what is around it, communities."""

from __future__ import annotations

from typing import Any

import numpy as np

from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.path_route import edges_within_reach
from hornbeam.retrieve.provenance import provenance_of


def entity_json(kb: KnowledgeBase, row: int, limit: int) -> dict[str, Any]:
    """An entity with its attributes and at most `limit` of its relations."""
    where = provenance_of(kb, "entity", (row,))
    edges = kb.adjacency.edges_of(row)
    leaf = int(kb.leaf_of[row])
    return {
        **node_json(kb, row),
        "description": kb.entities.text("description", row),
        "attributes": [
            {"type": kb.attributes.text("type", one), "value": kb.attributes.text("value", one)}
            for one in kb.entity_attributes.of(row).tolist()
        ],
        "relations": [edge_json(kb, edge) for edge in edges[:limit].tolist()],
        "relations_in_all": len(edges),
        "mentions_in_chunks": kb.mentions.count(row),
        "community_id": kb.communities.text("community_id", leaf) if leaf >= 0 else None,
        "provenance": where
        and {
            "chunk_id": where.chunk_id,
            "document_id": where.document_id,
            "source": where.source,
            "title": where.title,
            "start": where.start,
            "end": where.end,
        },
    }


def neighbourhood_json(kb: KnowledgeBase, row: int, depth: int, limit: int) -> dict[str, Any]:
    """At most `limit` relations within `depth` hops, the nearest first, and the entities at their ends."""
    edges = edges_within_reach(kb, np.array([row], np.int64), depth, limit)
    nodes = np.unique(np.concatenate([[row], kb.heads[edges], kb.tails[edges]]))
    return {
        "entity_id": kb.entities.text("entity_id", row),
        "entities": [node_json(kb, node) for node in nodes.tolist()],
        "relations": [edge_json(kb, edge) for edge in edges.tolist()],
    }


def communities_json(kb: KnowledgeBase, parent: int | None, offset: int, limit: int) -> dict[str, Any]:
    """Communities below one, or those at the top."""
    rows = np.flatnonzero(kb.community_parents == -1) if parent is None else kb.children.of(parent)
    members = kb.members.of(parent) if parent is not None else np.zeros(0, np.int32)
    return {
        "communities": [community_json(kb, row) for row in rows[offset : offset + limit].tolist()],
        "communities_in_all": len(rows),
        "entities": [node_json(kb, row) for row in members[offset : offset + limit].tolist()],
        "entities_in_all": len(members),
    }


def node_json(kb: KnowledgeBase, row: int) -> dict[str, str]:
    return {
        "id": kb.entities.text("entity_id", row),
        "name": kb.entities.text("name", row),
        "type": kb.entities.text("type", row),
    }


def edge_json(kb: KnowledgeBase, edge: int) -> dict[str, Any]:
    head, kind, tail = kb.triple(edge)
    return {
        "id": kb.relations.text("relation_id", edge),
        "type": kind,
        "head": node_json(kb, head),
        "tail": node_json(kb, tail),
        "confidence": kb.relations.get("confidence", edge),
    }


def community_json(kb: KnowledgeBase, row: int) -> dict[str, Any]:
    get = kb.communities.get
    return {
        "id": get("community_id", row),
        "name": get("name", row),
        "summary": get("summary", row),
        "keywords": get("keywords", row),
        "level": get("level", row),
        "size": get("size", row),
    }
