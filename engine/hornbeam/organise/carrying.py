"""The communities of an earlier version, carried over to a graph that has changed since.

Drift says how far the two graphs are apart: the share of entities that are new, gone, or whose text or
relations are other than they were. Up to a bound an update finds anew only the communities that a change of
members touches, and keeps names and summaries of those in which nothing has changed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.index.carried_rows import CarriedRows, places
from hornbeam.organise.communities import CommunityNode, GraphArrays, Hierarchy
from hornbeam.store.damage import reading

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from hornbeam_kernels.signals import Signals


@dataclass(frozen=True, slots=True)
class OldCommunity:
    parent_id: str | None
    name: str
    summary: str
    centre_id: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CarriedCommunities:
    levels: list[
        NDArray[np.int32]
    ]  # of the old tree for the n entities of now, −1 for a new one; leaves first
    lost: NDArray[np.bool_]  # [old leaves] that have lost a member
    changed: NDArray[np.bool_]  # [n] new, or with another text or other relations
    drift: float
    communities: dict[str, OldCommunity]  # by id
    signals: Signals | None  # that the old communities were found with; None: they are measured


def carry_communities(
    old: Path, tables: Path, graph: GraphArrays, rows: CarriedRows, signals: Signals | None
) -> CarriedCommunities | None:
    """
    Args:
        old: directory of the earlier version, of the same schema and embedder.
        tables: of the version that is being made; `graph` is theirs.
        rows: of the two versions.
        signals: of the earlier version.

    Returns:
        None if the earlier version has no communities.
    """
    import numpy as np

    entities = _column(old / "tables", "entities", "entity_id")
    communities = _table(old / "tables", "communities")
    if not len(entities) or not communities.num_rows:
        return None
    ids = _strings(graph.entity_ids)
    before = places(ids, entities)  # [n] old row of each entity, −1 for a new one
    now = places(entities, ids)  # [old n]
    changed = _has_changed(old, tables, graph, before, rows)
    leaves, leaf_ids = _leaf_of(old / "tables", entities)
    lost = np.zeros(len(leaf_ids), dtype=bool)
    lost[leaves[now < 0]] = True
    levels = [np.where(before >= 0, leaves[before], -1).astype(np.int32)]
    before_by_id = {
        row["community_id"]: OldCommunity(
            row["parent_id"], row["name"], row["summary"], row["centre_id"], tuple(row["keywords"])
        )
        for row in communities.to_pylist()
    }
    at = leaf_ids
    while parents := [parent for one in at if (parent := before_by_id[one].parent_id) is not None]:
        at = parents  # of each leaf, one level up
        _, number = np.unique(np.asarray(at), return_inverse=True)
        levels.append(np.where(before >= 0, number[leaves[before]], -1).astype(np.int32))
    gone = int((now < 0).sum())
    return CarriedCommunities(
        levels,
        lost,
        changed,
        (int(changed.sum()) + gone) / (len(ids) + gone) if len(ids) + gone else 0.0,
        before_by_id,
        signals,
    )


def keep_unchanged(
    hierarchy: Hierarchy, graph: GraphArrays, carried: CarriedCommunities, unnamed: Collection[str]
) -> tuple[Hierarchy, dict[str, tuple[str, str]]]:
    """The hierarchy with the old centre and keywords of every community in which nothing has changed, and
    name and summary of these by id.

    Args:
        unnamed: communities that the old version could not name; they are asked for again.
    """
    rows = {entity_id: row for row, entity_id in enumerate(graph.entity_ids)}
    kept: dict[str, tuple[str, str]] = {}
    children: dict[str, list[CommunityNode]] = {}
    nodes = []
    for node in hierarchy.nodes:  # leaves first
        before = carried.communities.get(node.community_id)
        if before is not None and node.community_id not in unnamed and _is_unchanged(
            node, carried, children.get(node.community_id, []), kept
        ):  # fmt: skip
            kept[node.community_id] = (before.name, before.summary)
            node = _as_before(node, before, graph, rows)
        if node.parent_id is not None:
            children.setdefault(node.parent_id, []).append(node)
        nodes.append(node)
    return replace(hierarchy, nodes=nodes), kept


def _is_unchanged(
    node: CommunityNode,
    carried: CarriedCommunities,
    children: list[CommunityNode],
    kept: dict[str, tuple[str, str]],
) -> bool:
    if node.level == 0:
        return not carried.changed[list(node.members)].any()
    return all(
        child.community_id in kept and carried.communities[child.community_id].parent_id == node.community_id
        for child in children
    )


def _as_before(
    node: CommunityNode, before: OldCommunity, graph: GraphArrays, rows: dict[str, int]
) -> CommunityNode:
    by_name: dict[str, int] = {}
    for row in node.members:
        by_name.setdefault(graph.entity_names[row], row)
    return replace(
        node, centre=rows[before.centre_id], keywords=tuple(by_name[name] for name in before.keywords)
    )


def _has_changed(
    old: Path, tables: Path, graph: GraphArrays, before: NDArray[np.int64], rows: CarriedRows
) -> NDArray[np.bool_]:
    import numpy as np

    changed = before < 0
    # A text that is the same has its vector from there, bit for bit; another one may have the same vector.
    asked = np.flatnonzero((rows.entities < 0) & ~changed)
    vectors = rows.vectors("entities")
    for start in range(0, len(asked), _BLOCK):
        some = asked[start : start + _BLOCK]
        changed[some] = (vectors.rows(before[some]) != graph.entity_vectors[some]).any(axis=1)
    columns = ["relation_id", "head_id", "tail_id", "weight", "confidence"]
    now_relations, old_relations = (_table(at, "relations", columns) for at in (tables, old / "tables"))
    now_there = places(now_relations["relation_id"], old_relations["relation_id"])
    other = now_there < 0
    gone = np.ones(old_relations.num_rows, dtype=bool)
    gone[now_there[~other]] = False
    for column in ("weight", "confidence"):
        mine, theirs = (table[column].to_numpy() for table in (now_relations, old_relations))
        other |= mine != theirs[np.maximum(now_there, 0)] if len(theirs) else True
    changed[graph.heads[other]] = True
    changed[graph.tails[other]] = True
    for column in ("head_id", "tail_id"):
        ends = places(old_relations[column].filter(_mask(gone)), _strings(graph.entity_ids))
        changed[ends[ends >= 0]] = True
    return changed


_BLOCK = 16_384


def _leaf_of(tables: Path, entities: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """The number of each entity's leaf, and the leaves' ids by number."""
    import numpy as np
    import pyarrow.compute as pc

    members = _table(tables, "community_members")
    leaf_ids = pc.unique(members["community_id"])
    leaves = np.empty(len(entities), dtype=np.int64)
    leaves[places(members["entity_id"], entities)] = places(members["community_id"], leaf_ids)
    return leaves, leaf_ids.to_pylist()


def _strings(values: list[str]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.string())


def _mask(values: NDArray[np.bool_]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values)


def _table(tables: Path, name: str, columns: list[str] | None = None) -> pa.Table:
    import pyarrow.parquet as pq

    path = tables / f"{name}.parquet"
    with reading(path):
        return pq.read_table(path, columns=columns)


def _column(tables: Path, name: str, column: str) -> pa.ChunkedArray:
    return _table(tables, name, [column])[column]
