from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hornbeam.organise.communities import GraphArrays, Hierarchy, find_communities, read_graph
from hornbeam.schema import GraphSchema
from hornbeam.settings import OrganiseSettings
from hornbeam_kernels.backend import select_backend
from support.version_by_hand import ENTITIES, RELATIONS, HashedWords, small_rows, write_tables


def graph_of(entities: int, edges: list[tuple[int, int]], relation_types: int = 1) -> GraphArrays:
    embedder = HashedWords()
    names = [f"entity {number}" for number in range(entities)]
    return GraphArrays(
        entity_ids=[f"e{number:04}" for number in range(entities)],
        entity_names=names,
        entity_descriptions=[f"about {name}" for name in names],
        heads=np.array([head for head, _ in edges], dtype=np.int64),
        relations=np.zeros(len(edges), dtype=np.int64),
        tails=np.array([tail for _, tail in edges], dtype=np.int64),
        weights=np.ones(len(edges)),
        confidences=np.ones(len(edges)),
        entity_vectors=embedder.encode(names),
        relation_vectors=embedder.encode([f"relation {number}" for number in range(relation_types)]),
    )


def organised(graph: GraphArrays, **settings: object) -> Hierarchy:
    options = OrganiseSettings.model_validate(settings)
    return find_communities(graph, options, select_backend("cpu"), None)


def assert_partitions(hierarchy: Hierarchy, entities: int) -> None:
    by_id = {node.community_id: node for node in hierarchy.nodes}
    assert len(by_id) == len(hierarchy.nodes)
    assert {node.level for node in hierarchy.nodes} == set(range(hierarchy.levels))
    for level in range(hierarchy.levels):
        of_level = [node for node in hierarchy.nodes if node.level == level]
        held = Counter(row for node in of_level for row in node.members)
        assert held == Counter(range(entities))
        for node in of_level:
            assert node.centre in node.members
            assert node.keywords
            assert set(node.keywords) <= set(node.members)
            if node.parent_id is None:
                assert level == hierarchy.levels - 1
            else:
                parent = by_id[node.parent_id]
                assert parent.level == level + 1
                assert set(node.members) <= set(parent.members)


def test_a_graph_without_entities_has_no_communities() -> None:
    assert organised(graph_of(0, [])) == Hierarchy([], 0, 0.0, None)


@pytest.mark.parametrize("partitioner", ["dual", "leiden"])
@pytest.mark.parametrize(
    ("entities", "edges", "relation_types"),
    [
        (1, [], 1),
        (1, [], 0),
        (2, [], 1),
        (2, [(0, 1)], 1),
        (7, [], 0),
        (40, [], 3),
        (30, [(i, (i * 7 + 1) % 30) for i in range(30)], 2),
    ],
)
def test_every_entity_is_in_one_leaf_and_every_level_partitions_them(
    partitioner: str, entities: int, edges: list[tuple[int, int]], relation_types: int
) -> None:
    hierarchy = organised(graph_of(entities, edges, relation_types), partitioner=partitioner)

    assert hierarchy.levels >= 1
    assert_partitions(hierarchy, entities)


def test_no_leaf_is_larger_than_the_maximum_and_nothing_is_dropped_for_it() -> None:
    star = graph_of(150, [(0, other) for other in range(1, 150)])

    hierarchy = organised(star, max_community_size=8)

    assert_partitions(hierarchy, 150)
    assert max(len(node.members) for node in hierarchy.nodes if node.level == 0) <= 8


def test_the_same_graph_is_organised_the_same_way() -> None:
    graph = graph_of(60, [(i, (i * 11 + 3) % 60) for i in range(60)])

    assert organised(graph) == organised(graph)


def _schema(relation_types: bool) -> GraphSchema:
    return GraphSchema.model_validate(
        {
            "name": "by hand",
            "entity_types": [{"name": kind} for kind in sorted({kind for _, kind, _ in ENTITIES.values()})],
            "relation_types": [{"name": kind} for _, kind, _, _ in RELATIONS.values()]
            if relation_types
            else [],
        }
    )


def test_the_graph_is_read_by_row_numbers_of_its_tables(tmp_path: Path) -> None:
    tables = write_tables(tmp_path / "version", small_rows()) / "tables"

    graph = read_graph(tables, _schema(True), HashedWords(), 8)

    triples = zip(graph.heads, graph.relations, graph.tails, strict=True)
    types = list(dict.fromkeys(kind for _, kind, _, _ in RELATIONS.values()))
    assert [(graph.entity_ids[h], types[r], graph.entity_ids[t]) for h, r, t in triples] == [
        (head, kind, tail) for head, kind, tail, _ in RELATIONS.values()
    ]
    assert graph.entity_names == [name for name, _, _ in ENTITIES.values()]
    assert graph.entity_vectors.shape == (5, 64)
    assert graph.relation_vectors.shape == (3, 64)


def test_a_schema_without_relations_is_organised_by_what_entities_are(tmp_path: Path) -> None:
    rows = small_rows() | {"relations": [], "relation_evidence": []}
    tables = write_tables(tmp_path / "version", rows) / "tables"

    graph = read_graph(tables, _schema(False), HashedWords(), 8)

    assert graph.relation_vectors.shape == (0, 64)
    assert_partitions(organised(graph), 5)
