"""A version, opened for questions: resident where small, memory-mapped where large, read-only throughout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.errors import StoreError
from hornbeam.index.adjacency import Adjacency
from hornbeam.index.embedder import TextEmbedder
from hornbeam.index.lexical import LEXICAL_KINDS, LexicalIndex
from hornbeam.index.rows import LINKS, MAPPED_TABLES, Links, MappedTable
from hornbeam.index.texts import entity_text, relation_words, triple_text
from hornbeam.index.vectors import VECTOR_KINDS, VectorIndex
from hornbeam.index.walk import read_walk
from hornbeam.retrieve.hiding import Hidden
from hornbeam.retrieve.reranking import Reranker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hornbeam_kernels.local_ranking import WalkGraph

#: Leaves of a community whose facts are looked for: one near the top has thousands of them.
LEAVES_LOOKED_AT = 32


@dataclass(frozen=True, slots=True)
class KnowledgeBase:
    """Everything is addressed by row number. Safe to share between threads: nothing is written.

    Resident: row numbers and links, 8–30 bytes each. Mapped: texts, names, vectors, postings.
    """

    directory: Path
    embedder: TextEmbedder
    documents: MappedTable
    chunks: MappedTable
    entities: MappedTable
    relations: MappedTable
    attributes: MappedTable
    communities: MappedTable
    heads: NDArray[np.int32]  # [relations] entity rows
    tails: NDArray[np.int32]  # [relations] entity rows
    chunk_documents: NDArray[np.int32]  # [chunks] document rows
    chunk_starts: NDArray[np.int64]  # [chunks] characters within the document's text
    entity_types: tuple[str, ...]  # that an entity has, sorted
    community_parents: NDArray[np.int32]  # [communities] community rows, −1 at the top
    leaf_of: NDArray[np.int32]  # [entities] leaf communities, −1 for none
    mentions: Links  # entity → chunks, with spans
    relation_chunks: Links  # relation → the chunks that state it
    attribute_chunks: Links  # attribute → chunks, with spans
    entity_attributes: Links  # entity → attributes
    members: Links  # leaf community → entities
    children: Links  # community → communities one level below
    adjacency: Adjacency
    walk: WalkGraph  # entities, then chunks
    vectors: dict[str, VectorIndex]  # by kind: entities, triples, chunks, communities
    lexical: dict[str, LexicalIndex]  # by kind: chunks, entities
    reranker: Reranker | None = None  # for searches whose settings ask for one
    hidden: Hidden | None = None  # what a search must not find

    @classmethod
    def open(
        cls,
        version_directory: Path,
        embedder: TextEmbedder,
        *,
        expected_embedder_fingerprint: str | None = None,
    ) -> KnowledgeBase:
        """Open an indexed version.

        Args:
            expected_embedder_fingerprint: what the manifest says the vectors were made with.

        Raises:
            StoreError: another embedder than expected, or an index that is missing or does not fit its table.
        """
        if expected_embedder_fingerprint not in (None, embedder.fingerprint):
            raise StoreError(
                f"{version_directory}: its vectors were made with embedder "
                f"{str(expected_embedder_fingerprint)[:12]}, this is {embedder.name} "
                f"{embedder.fingerprint[:12]}; set embedder.path to that model or index again"
            )
        table = {name: MappedTable(version_directory, name) for name in MAPPED_TABLES}
        links = {name: Links.read(version_directory, name) for name in LINKS}
        return cls(
            directory=version_directory,
            embedder=embedder,
            documents=table["documents"],
            chunks=table["chunks"],
            entities=table["entities"],
            relations=table["relations"],
            attributes=table["attributes"],
            communities=table["communities"],
            heads=table["relations"].array("head_row"),
            tails=table["relations"].array("tail_row"),
            chunk_documents=table["chunks"].array("document_row"),
            chunk_starts=table["chunks"].array("start"),
            entity_types=table["entities"].distinct("type"),
            community_parents=table["communities"].array("parent_row"),
            leaf_of=_leaf_of(links["members"], len(table["entities"])),
            mentions=links["mentions"],
            relation_chunks=links["relation_chunks"],
            attribute_chunks=links["attribute_chunks"],
            entity_attributes=links["entity_attributes"],
            members=links["members"],
            children=links["children"],
            adjacency=Adjacency.read(version_directory),
            walk=read_walk(version_directory),
            vectors={
                kind: VectorIndex.open(
                    version_directory / "vectors" / f"{kind}.faiss", len(table[name]), embedder.dimension
                )
                for kind, name in VECTOR_KINDS.items()
            },
            lexical={kind: LexicalIndex.open(version_directory / "lexical" / kind) for kind in LEXICAL_KINDS},
        )

    def entity_name(self, entity: int) -> str:
        return self.entities.text("name", entity)

    def triple(self, relation: int) -> tuple[int, str, int]:
        """Head row, relation type, tail row."""
        return int(self.heads[relation]), self.relations.text("type", relation), int(self.tails[relation])

    def triple_text(self, relation: int) -> str:
        """As it was embedded: "Marie Curie born in Warsaw"."""
        head, relation_type, tail = self.triple(relation)
        sentence = self.relations.text("description", relation)
        return triple_text(self.entity_name(head), relation_type, self.entity_name(tail), sentence)

    def entity_text(self, entity: int) -> str:
        """As it was embedded: "Marie Curie (person). <description>. birth year: 1867"."""
        name, kind, description = (
            self.entities.text(column, entity) for column in ("name", "type", "description")
        )
        attributes = (
            (self.attributes.text("type", attribute), self.attributes.text("value", attribute))
            for attribute in self.entity_attributes.of(entity).tolist()
        )
        return entity_text(name, kind, description, attributes)

    def path_text(self, nodes: tuple[int, ...], edges: tuple[int, ...]) -> str:
        """ "Marie Curie -[born in]-> Warsaw <-[capital]- Poland"; an arrow points from head to tail."""
        parts = [self.entity_name(nodes[0])]
        for node, following, edge in zip(nodes, nodes[1:], edges, strict=False):
            words = relation_words(self.relations.text("type", edge))
            forward = int(self.heads[edge]) == node
            parts.append(f"-[{words}]->" if forward else f"<-[{words}]-")
            parts.append(self.entity_name(following))
        return " ".join(parts)

    def community_text(self, community: int) -> str:
        name, summary = (self.communities.text(column, community) for column in ("name", "summary"))
        keywords = ", ".join(self.communities.get("keywords", community))
        return f"{name}: {summary}" if summary else f"{name}: {keywords}"

    def belongs(self, community: int, entities: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Which of `entities` [m] are in a community at any level."""
        at = self.leaf_of[entities]
        inside: NDArray[np.bool_] = at == community
        while (at >= 0).any():
            at = np.where(at >= 0, self.community_parents[at], -1)
            inside |= at == community
        return inside

    def inner_facts(self, community: int, limit: int) -> NDArray[np.int64]:
        """Relations between members of a community, at most `limit`, those of its first leaves first."""
        found: list[NDArray[np.int64]] = []
        total = 0
        for leaf in islice(self._leaves(community), LEAVES_LOOKED_AT):
            edges = np.unique(self.adjacency.edges_around(self.members.of(leaf), limit))
            inside = edges[
                self.belongs(community, self.tails[edges]) & self.belongs(community, self.heads[edges])
            ]
            found.append(inside[: limit - total])
            total += len(found[-1])
            if total >= limit:
                break
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def _leaves(self, community: int) -> Iterator[int]:
        waiting = [community]
        while waiting:
            current = waiting.pop()
            if self.members.count(current):
                yield current
            waiting.extend(reversed(self.children.of(current).tolist()))

    def attribute_text(self, attribute: int) -> str:
        """ "Marie Curie birth year: 1867"."""
        entity = int(self.attributes.get("entity_row", attribute))
        kind, value = (self.attributes.text(column, attribute) for column in ("type", "value"))
        return f"{self.entity_name(entity)} {relation_words(kind)}: {value}"

    def central_facts(self, community: int, limit: int) -> list[int]:
        """Relations between the community's centre and its other members, the heaviest first."""
        centre = int(self.communities.get("centre_row", community))
        edges = self.adjacency.edges_of(centre)
        ends = np.where(self.heads[edges] == centre, self.tails[edges], self.heads[edges])
        inside = edges[self.belongs(community, ends)]
        # Weights are read one by one: of a hub's relations the first few dozen must do.
        weights = np.array([self.relations.get("weight", edge) for edge in inside[: 16 * limit].tolist()])
        order = np.lexsort((inside[: len(weights)], -weights))
        return [int(inside[place]) for place in order[:limit]]

    def chunk_span(self, chunk: int) -> tuple[int, int]:
        """Characters [start, end) within the document's text."""
        return int(self.chunk_starts[chunk]), int(self.chunks.get("end", chunk))

    def document_of(self, chunk: int) -> dict[str, Any]:
        """`document_id`, `source`, `title` of a chunk's document."""
        row = int(self.chunk_documents[chunk])
        return {column: self.documents.text(column, row) for column in ("document_id", "source", "title")}


def _leaf_of(members: Links, entities: int) -> NDArray[np.int32]:
    leaf_of = np.full(entities, -1, np.int32)
    leaf_of[members.targets] = np.repeat(np.arange(len(members.indptr) - 1), np.diff(members.indptr))
    return leaf_of
