"""Two versions side by side: what came, what went, what changed, and how far the communities agree."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hornbeam.errors import StoreError
from hornbeam.records import CommunityMember, Merge
from hornbeam.store.differences import diff_versions
from hornbeam.store.disk import file_checksum
from hornbeam.store.versions import Version
from support.version_by_hand import small_rows, write_tables

Rows = dict[str, list[Any]]


def version(tmp_path: Path, name: str, rows: Rows, types: tuple[str, ...] = ("person", "city")) -> Version:
    directory = write_tables(tmp_path / name, rows)
    entity_types = [{"name": kind} for kind in types]
    schema = {"entity_types": entity_types, "relation_types": [], "attribute_types": []}
    (directory / "schema.json").write_text(json.dumps(schema))
    return Version(name, directory, {})


def test_a_version_and_itself_do_not_differ(tmp_path: Path) -> None:
    same = version(tmp_path, "a", small_rows())

    found = diff_versions(same, same, examples=3)

    for kind in ("documents", "entities", "relations", "attributes", "merges", "communities"):
        assert (found[kind]["added"], found[kind]["removed"], found[kind]["changed"]) == (0, 0, 0)
    assert found["entities"]["unchanged"] == 5
    assert found["communities"]["ari"] == 1.0


def test_what_came_went_and_changed_is_counted_and_named(tmp_path: Path) -> None:
    before, after = small_rows(), small_rows()
    del before["relations"][0]
    after["entities"][1] = replace(after["entities"][1], description="a city on the Vistula")
    del after["attributes"][0]
    entity, chunk = before["entities"][0], before["chunks"][0]
    merge = Merge(
        "m1", entity.entity_id, entity.name, entity.type, "Mme Curie", entity.type, chunk.document_id,
        "partial", 0.9, chunk.chunk_id, 0, 5,
    )  # fmt: skip
    after["merges"] = [merge]

    found = diff_versions(
        version(tmp_path, "a", before), version(tmp_path, "b", after, ("person", "river")), examples=3
    )

    assert found["relations"]["examples"]["added"] == ["Marie Curie born_in Warsaw"]
    assert found["entities"]["examples"]["changed"] == ["Warsaw (city)"]
    assert (found["entities"]["changed"], found["entities"]["unchanged"]) == (1, 4)
    assert found["attributes"]["removed"] == 1
    assert found["merges"]["examples"]["added"] == [
        f"{entity.name} = Mme Curie in {chunk.document_id} (partial)"
    ]
    assert found["types"]["entity_types"] == {"added": ["river"], "removed": ["city"], "changed": []}


def test_the_rand_index_is_that_of_scikit_learn(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    before, after = small_rows(), small_rows()
    after["community_members"] = [
        CommunityMember(community, entity)
        for community, entity in [("k1", "e1"), ("k2", "e4"), ("k2", "e2"), ("k2", "e3"), ("k3", "e5")]
    ]

    found = diff_versions(version(tmp_path, "a", before), version(tmp_path, "b", after), examples=0)

    expected = metrics.adjusted_rand_score([1, 2, 2, 1, 3], [1, 2, 2, 2, 3])  # e1, e2, e3, e4, e5
    assert found["communities"]["ari"] == pytest.approx(expected, abs=1e-6)


def test_a_damaged_table_is_one_clear_line(tmp_path: Path) -> None:
    a, b = version(tmp_path, "a", small_rows()), version(tmp_path, "b", small_rows())
    path = b.directory / "tables" / "entities.parquet"
    said = {"bytes": path.stat().st_size, "sha256": file_checksum(path)}
    a, b = (
        replace(a, manifest={"files": {}}),
        replace(b, manifest={"files": {"tables/entities.parquet": said}}),
    )
    path.write_bytes(b"PAR1 and then nothing")

    with pytest.raises(StoreError, match=r"b/tables/entities\.parquet: 21 bytes where .*--repair"):
        diff_versions(a, b, examples=1)
