"""A version as it would be without some of its chunks, for questions whose evidence is taken away.

What the other chunks say stays (a fact of both may still cite the hidden one as its place). Gone are the
hidden chunks; facts, attributes and entities that no other chunk states or mentions; and communities with a
member that a hidden chunk mentions, since their summaries may hold what it says. So more is gone than a build
without these texts would lack.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.retrieve.query import Candidate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hornbeam.index.rows import Links
    from hornbeam.retrieve.knowledge_base import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Hidden:
    """Rows that a search must not find."""

    chunks: NDArray[np.int32]  # ascending
    communities: frozenset[int]

    def shows(self, kb: KnowledgeBase, candidate: Candidate) -> bool:
        row = candidate.rows[0]
        match candidate.kind:
            case "chunk":
                return row not in self.chunks
            case "community":
                return row not in self.communities
            case "entity":
                return self._stated(kb.mentions, row)
            case "attribute":
                return self._stated(kb.attribute_chunks, row)
            case "triple" | "path":
                return all(self._stated(kb.relation_chunks, fact) for fact in candidate.rows)

    def _stated(self, links: Links, row: int) -> bool:
        """Whether a chunk that is left has it, or none ever did (an imported graph)."""
        chunks = links.of(row)
        return not len(chunks) or not np.isin(chunks, self.chunks).all()


def hide(kb: KnowledgeBase, chunks: Collection[int]) -> Hidden:
    """Hide chunk rows of `kb`."""
    rows = np.unique(np.array(sorted(chunks), dtype=np.int32))
    mentioning = np.repeat(np.arange(len(kb.entities)), np.diff(kb.mentions.indptr))
    entities = np.unique(mentioning[np.isin(kb.mentions.targets, rows)])
    found: set[int] = set()
    at = np.unique(kb.leaf_of[entities])
    while len(at := at[at >= 0]):
        found.update(at.tolist())
        at = np.unique(kb.community_parents[at])
    return Hidden(rows, frozenset(found))
