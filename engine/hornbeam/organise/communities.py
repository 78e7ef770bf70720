"""Entities to a hierarchy of communities: the array side of the knowledge tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.index.embedder import TextEmbedder
from hornbeam.index.texts import entity_texts, relation_words
from hornbeam.records import Attribute, Entity, content_id
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import OrganiseSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hornbeam_kernels.backend import Backend


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """A version's graph by row number of its tables."""

    entity_ids: list[str]
    entity_names: list[str]
    entity_descriptions: list[str]
    heads: NDArray[np.int64]  # [T] entity rows
    relations: NDArray[np.int64]  # [T] relation type numbers, in the schema's order
    tails: NDArray[np.int64]  # [T]
    weights: NDArray[np.float64]  # [T]
    confidences: NDArray[np.float64]  # [T]
    entity_vectors: NDArray[np.float32]  # [n, d] unit rows
    relation_vectors: NDArray[np.float32]  # [R, d]


@dataclass(frozen=True, slots=True)
class CommunityNode:
    """One community of one level, not named yet."""

    community_id: str
    level: int
    parent_id: str | None
    members: tuple[int, ...]  # entity rows, ascending
    centre: int
    keywords: tuple[int, ...]  # entity rows, best first


@dataclass(frozen=True, slots=True)
class Hierarchy:
    nodes: list[CommunityNode]  # leaves first, level by level
    levels: int
    modularity: float  # of the leaves


def read_graph(tables: Path, schema: GraphSchema, embedder: TextEmbedder, batch_size: int) -> GraphArrays:
    """Load ids and columns of the version's graph and embed its entities and relation types."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    attributes: dict[str, list[Attribute]] = {}
    for row in pq.read_table(tables / "attributes.parquet").to_pylist():
        attributes.setdefault(row["entity_id"], []).append(Attribute(**row))
    ids: list[str] = []
    names: list[str] = []
    descriptions: list[str] = []
    vectors = [np.zeros((0, embedder.dimension), dtype=np.float32)]
    for batch in pq.ParquetFile(tables / "entities.parquet").iter_batches(batch_size=4096):
        entities = [Entity(**row) for row in batch.to_pylist()]
        ids += [entity.entity_id for entity in entities]
        names += [entity.name for entity in entities]
        descriptions += [entity.description for entity in entities]
        vectors.append(embedder.encode(entity_texts(entities, attributes), batch_size=batch_size))
    relations = pq.read_table(
        tables / "relations.parquet", columns=["head_id", "type", "tail_id", "weight", "confidence"]
    )
    type_names = [relation.name for relation in schema.relation_types]
    id_values, type_values = pa.array(ids, pa.string()), pa.array(type_names, pa.string())

    def rows_of(column: str, values: Any) -> NDArray[np.int64]:
        indices = pc.index_in(relations[column], value_set=values).combine_chunks()
        return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)

    return GraphArrays(
        ids,
        names,
        descriptions,
        rows_of("head_id", id_values),
        rows_of("type", type_values),
        rows_of("tail_id", id_values),
        relations["weight"].to_numpy(),
        relations["confidence"].to_numpy(),
        np.concatenate(vectors),
        embedder.encode([relation_words(name) for name in type_names], batch_size=batch_size),
    )


def find_communities(
    graph: GraphArrays, settings: OrganiseSettings, backend: Backend, memory_limit: int | None
) -> Hierarchy:
    """Representation, initial clusters, merging (or Leiden), levels, centres and keywords."""
    import numpy as np

    from hornbeam_kernels.clustering import split_to_size
    from hornbeam_kernels.dual_perception import centres, keywords, own_scores, relation_type_counts
    from hornbeam_kernels.indexing import members_by_community
    from hornbeam_kernels.merging import merge_communities
    from hornbeam_kernels.partition import leiden, modularity
    from hornbeam_kernels.representation import entity_representation
    from hornbeam_kernels.tree import community_levels

    n = len(graph.entity_ids)
    if n == 0:
        return Hierarchy([], 0, 0.0)
    x = entity_representation(
        graph.entity_vectors,
        graph.relation_vectors,
        graph.heads,
        graph.relations,
        graph.tails,
        form=settings.representation,
        hops=settings.hops,
        own_weight=settings.own_weight,
        backend=backend,
        memory_limit=memory_limit,
    )
    counts = relation_type_counts(
        graph.heads, graph.relations, graph.tails, n, len(graph.relation_vectors), backend=backend
    )
    if settings.partitioner == "leiden":
        leaves = leiden(
            graph.heads,
            graph.tails,
            graph.weights,
            n,
            max_size=settings.max_community_size,
            seed=settings.seed,
        )
    else:
        initial = split_to_size(
            x,
            max_size=settings.max_community_size,
            members_per_cluster=settings.members_per_cluster,
            max_clusters=settings.max_clusters,
            restarts=settings.restarts,
            seed=settings.seed,
        )
        leaves = merge_communities(
            x,
            counts,
            initial,
            threshold=settings.merge_threshold,
            max_size=settings.max_community_size,
            structure_weight=settings.structure_weight,
            backend=backend,
            memory_limit=memory_limit,
        )
    levels = community_levels(
        x,
        leaves,
        members_per_cluster=settings.members_per_cluster,
        restarts=settings.restarts,
        seed=settings.seed,
    )
    nodes: list[CommunityNode] = []
    ids_of_level: list[list[str]] = []
    members_of_level = [members_by_community(labels) for labels in levels]
    for level, groups in enumerate(members_of_level):
        ids_of_level.append(
            [content_id("k", str(level), *(graph.entity_ids[row] for row in group)) for group in groups]
        )
    for level, labels in enumerate(levels):
        scores = own_scores(
            x, counts, labels, settings.structure_weight, backend=backend, memory_limit=memory_limit
        )
        best, named = centres(scores, labels), keywords(scores, labels, settings.keywords)
        for number, group in enumerate(members_of_level[level]):
            parent = None
            if level + 1 < len(levels):
                parent = ids_of_level[level + 1][int(levels[level + 1][group[0]])]
            nodes.append(
                CommunityNode(
                    ids_of_level[level][number],
                    level,
                    parent,
                    tuple(np.asarray(group).tolist()),
                    int(best[number]),
                    tuple(np.asarray(named[number]).tolist()),
                )
            )
    return Hierarchy(nodes, len(levels), modularity(graph.heads, graph.tails, graph.weights, leaves))
