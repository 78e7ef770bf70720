"""Entities to a hierarchy of communities: the array side of the knowledge tree."""

from __future__ import annotations

from collections.abc import Callable
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

    from hornbeam.index.carried_rows import CarriedRows
    from hornbeam.organise.carrying import CarriedCommunities
    from hornbeam_kernels.backend import Backend
    from hornbeam_kernels.communities import CommunityTree, Method
    from hornbeam_kernels.signals import Signals


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
    signals: Signals | None  # what vectors and edges say; None for the paper's representation


ENTITIES_A_BLOCK = 1024
"""Entities encoded at once: progress is told after each block."""


def read_graph(
    tables: Path,
    schema: GraphSchema,
    embedder: TextEmbedder,
    batch_size: int,
    on_encoded: Callable[[int], None] = lambda entities: None,
    carried: CarriedRows | None = None,
) -> GraphArrays:
    """Load ids and columns of the version's graph and embed its entities and relation types.

    Args:
        carried: an earlier version that has vectors of some of the entities' texts.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    entities = pq.read_table(tables / "entities.parquet")
    ids = entities["entity_id"].to_pylist()
    vectors = np.empty((len(ids), embedder.dimension), dtype=np.float32)
    missing = np.arange(len(ids))
    if carried is not None:
        there = carried.entities >= 0
        vectors[there] = carried.vectors("entities").rows(carried.entities[there])
        missing = np.flatnonzero(~there)
        on_encoded(int(there.sum()))
    attributes = _attributes(tables, entities["entity_id"].take(pa.array(missing)))
    for start in range(0, len(ids), ENTITIES_A_BLOCK):
        rows = missing[slice(*np.searchsorted(missing, (start, start + ENTITIES_A_BLOCK)).tolist())]
        if not len(rows):
            continue
        block = entities.slice(start, ENTITIES_A_BLOCK).take(pa.array(rows - start))
        some = [Entity(**row) for row in block.to_pylist()]
        vectors[rows] = embedder.encode(entity_texts(some, attributes), batch_size=batch_size)
        on_encoded(len(some))
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
        entities["name"].to_pylist(),
        entities["description"].to_pylist(),
        rows_of("head_id", id_values),
        rows_of("type", type_values),
        rows_of("tail_id", id_values),
        relations["weight"].to_numpy(),
        relations["confidence"].to_numpy(),
        vectors,
        embedder.encode([relation_words(name) for name in type_names], batch_size=batch_size),
    )


def _attributes(tables: Path, owners: Any) -> dict[str, list[Attribute]]:
    """The attributes of some entities, by id."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(tables / "attributes.parquet")
    found: dict[str, list[Attribute]] = {}
    for row in table.filter(pc.is_in(table["entity_id"], value_set=owners.combine_chunks())).to_pylist():
        found.setdefault(row["entity_id"], []).append(Attribute(**row))
    return found


def find_communities(
    graph: GraphArrays,
    settings: OrganiseSettings,
    backend: Backend,
    memory_limit: int | None,
    carried: CarriedCommunities | None = None,
) -> Hierarchy:
    """The tree of communities (`hornbeam_kernels.communities`), then centres and keywords of each level.

    Args:
        carried: those of an earlier version: only what has been touched since is found anew.
    """
    from hornbeam_kernels.communities import Graph, community_tree
    from hornbeam_kernels.updating import update_tree

    if not graph.entity_ids:
        return Hierarchy([], 0, 0.0, None)
    arrays = Graph(
        graph.entity_vectors,
        graph.relation_vectors,
        graph.heads,
        graph.relations,
        graph.tails,
        graph.weights,
    )
    if carried is None:
        tree = community_tree(arrays, method(settings), backend=backend, memory_limit=memory_limit)
    else:
        tree = update_tree(
            arrays,
            list(carried.levels),
            carried.lost,
            method(settings),
            signals=carried.signals,
            backend=backend,
            memory_limit=memory_limit,
        )
    return _hierarchy(graph, tree, settings, backend, memory_limit)


def _hierarchy(
    graph: GraphArrays,
    tree: CommunityTree,
    settings: OrganiseSettings,
    backend: Backend,
    memory_limit: int | None,
) -> Hierarchy:
    import numpy as np

    from hornbeam_kernels.dual_perception import centres, keywords, own_scores
    from hornbeam_kernels.indexing import members_by_community
    from hornbeam_kernels.partition import modularity

    levels = tree.levels
    nodes: list[CommunityNode] = []
    ids_of_level: list[list[str]] = []
    members_of_level = [members_by_community(labels) for labels in levels]
    for level, groups in enumerate(members_of_level):
        ids_of_level.append(
            [content_id("k", str(level), *(graph.entity_ids[row] for row in group)) for group in groups]
        )
    for level, labels in enumerate(levels):
        scores = own_scores(
            tree.rows,
            tree.counts,
            labels,
            settings.structure_weight,
            backend=backend,
            memory_limit=memory_limit,
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
    quality = modularity(graph.heads, graph.tails, graph.weights, levels[0])
    return Hierarchy(nodes, len(levels), quality, tree.signals)


def method(settings: OrganiseSettings) -> Method:
    """The settings as the kernels take them; the paper's form goes with the paper's merging, unrefined."""
    from hornbeam_kernels.communities import Method

    paper = settings.representation == "paper"
    return Method(
        partitioner=settings.partitioner,
        representation=settings.representation,
        merging="centres" if paper else "calibrated",
        threshold=settings.merge_threshold,
        max_size=settings.max_community_size,
        structure_weight=settings.structure_weight,
        refinements=0 if paper else settings.refinements,
        members_per_cluster=settings.members_per_cluster,
        max_clusters=settings.max_clusters,
        restarts=settings.restarts,
        seed=settings.seed,
    )
