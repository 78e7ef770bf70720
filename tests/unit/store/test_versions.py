import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hornbeam.errors import StoreError
from hornbeam.store import promotions
from hornbeam.store.ledger import FORMAT_VERSION, Ledger
from hornbeam.store.promotions import promote
from hornbeam.store.versions import (
    Version,
    begin_version,
    current_version_id,
    list_versions,
    open_current,
    publish_version,
    read_version,
    version_identity,
)


def publish(index: Path, content: str, *, inputs: str = "inputs", created: float = 0.0) -> Version:
    building = begin_version(index)
    (building / "tables" / "entities.parquet").write_text(content)
    (building / "vectors").mkdir()
    (building / "vectors" / "entities.faiss").write_bytes(content.encode() * 3)
    version_id = version_identity(building, inputs=inputs)
    return publish_version(index, building, version_id, {"inputs": inputs, "created": created})


def names(index: Path) -> set[str]:
    return {path.name for path in (index / "versions").iterdir()}


def test_a_version_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    first = publish(tmp_path, "one", created=1.0)
    building = begin_version(tmp_path)
    (building / "tables" / "entities.parquet").write_text("half")
    # Even with a manifest: only the name makes a version.
    (building / "manifest.json").write_text(json.dumps({"format": FORMAT_VERSION, "inputs": "inputs"}))

    assert [version.version_id for version in list_versions(tmp_path)] == [first.version_id]
    with pytest.raises(StoreError):
        read_version(tmp_path, building.name)


def test_the_last_step_of_publishing_is_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Path, target: Path) -> None:
        assert (self / "manifest.json").is_file()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path, "one")

    assert list_versions(tmp_path) == []


def test_a_folder_left_by_a_killed_build_is_cleared_away(tmp_path: Path) -> None:
    left = tmp_path / "versions" / ".building-1"
    left.mkdir(parents=True)
    (left / "rubbish").write_text("x")

    building = begin_version(tmp_path)

    assert not left.exists()
    assert list(building.rglob("*")) == [building / "tables"]


def test_the_same_content_is_the_same_version_and_its_copy_is_dropped(tmp_path: Path) -> None:
    first = publish(tmp_path, "one", created=1.0)
    second = publish(tmp_path, "one", created=2.0)

    assert second == first  # with the first one's manifest
    assert names(tmp_path) == {first.version_id}


@pytest.mark.parametrize(
    ("content", "inputs"), [("two", "inputs"), ("one", "other inputs")], ids=["tables", "inputs"]
)
def test_another_content_is_another_version(tmp_path: Path, content: str, inputs: str) -> None:
    first = publish(tmp_path, "one")

    assert publish(tmp_path, content, inputs=inputs).version_id != first.version_id
    assert len(list_versions(tmp_path)) == 2


def test_a_damaged_version_is_replaced_by_the_build_that_makes_it_again(tmp_path: Path) -> None:
    first = publish(tmp_path, "one")
    (first.directory / "manifest.json").write_text("{")

    again = publish(tmp_path, "one")

    assert again.version_id == first.version_id
    assert names(tmp_path) == {first.version_id}


def test_the_manifest_names_every_file_with_its_checksum(tmp_path: Path) -> None:
    version = publish(tmp_path, "one")

    assert set(version.manifest["files"]) == {"tables/entities.parquet", "vectors/entities.faiss"}
    for name, said in version.manifest["files"].items():
        content = (version.directory / name).read_bytes()
        assert said == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_promotion_decides_what_readers_open(tmp_path: Path) -> None:
    first, second = publish(tmp_path, "one"), publish(tmp_path, "two")
    assert current_version_id(tmp_path) is None

    promote(tmp_path, second.version_id)
    assert open_current(tmp_path) == second
    promote(tmp_path, first.version_id)
    assert open_current(tmp_path) == first


def test_an_interrupted_promotion_leaves_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = publish(tmp_path, "one"), publish(tmp_path, "two")
    promote(tmp_path, first.version_id)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(promotions, "sync_file", stop)
    with pytest.raises(KeyboardInterrupt):
        promote(tmp_path, second.version_id)

    assert open_current(tmp_path) == first


@pytest.mark.parametrize("version_id", ["v0123456789abcdef", "../elsewhere", ""])
def test_what_is_no_version_cannot_be_promoted(tmp_path: Path, version_id: str) -> None:
    first = publish(tmp_path, "one")
    promote(tmp_path, first.version_id)

    with pytest.raises(StoreError):
        promote(tmp_path, version_id)
    assert open_current(tmp_path) == first


def test_opening_without_a_promoted_version_says_why(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="it is no index"):
        open_current(tmp_path)

    with Ledger(tmp_path, create=True):
        pass
    with pytest.raises(StoreError, match="no build was finished yet"):
        open_current(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "says"),
    [({"format": 999}, "has format 999"), ([], "is damaged"), (None, "is damaged")],
)
def test_a_version_of_another_format_is_refused_and_not_listed(
    tmp_path: Path, manifest: Any, says: str
) -> None:
    version = publish(tmp_path, "one")
    promote(tmp_path, version.version_id)
    text = "" if manifest is None else json.dumps(manifest)
    (version.directory / "manifest.json").write_text(text)

    with pytest.raises(StoreError, match=says):
        open_current(tmp_path)
    assert list_versions(tmp_path) == []


def test_versions_are_listed_by_age(tmp_path: Path) -> None:
    publish(tmp_path, "two", created=2.0)
    publish(tmp_path, "one", created=1.0)
    publish(tmp_path, "three", created=3.0)

    assert [version.manifest["created"] for version in list_versions(tmp_path)] == [1.0, 2.0, 3.0]
