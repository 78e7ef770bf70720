"""Promote, roll back, prune: what readers open, and what may go."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hornbeam.errors import GateRefused, StoreError
from hornbeam.store.catalogue import catalogue
from hornbeam.store.ledger import Ledger
from hornbeam.store.promotions import promote, promote_passed, rollback
from hornbeam.store.retention import Pruned, prune
from hornbeam.store.versions import (
    begin_version,
    current_version_id,
    list_versions,
    open_pinned,
    publish_version,
    read_version,
)


def publish(index: Path, number: int, *, passed: bool = True) -> str:
    building = begin_version(index)
    (building / "tables" / "entities.parquet").write_text(str(number))
    version_id = f"v{number:016x}"
    manifest = {
        "inputs": str(number),
        "created": float(number),
        "gates": {"coverage": {"value": 0.5, "threshold": 1.0, "passed": passed}},
        "counts": {},
        "communities": {"leaf": 0},
        "schema": {},
        "model": {"name": "none"},
        "embedder": {"name": "none"},
    }
    publish_version(index, building, version_id, manifest)
    return version_id


def pruned(index: Path, keep: int) -> Pruned:
    with Ledger(index, create=True) as ledger:
        return prune(index, ledger, keep)


def test_rolling_back_goes_back_step_by_step(tmp_path: Path) -> None:
    a, b, c = (publish(tmp_path, number) for number in (1, 2, 3))
    for version in (a, b, c):
        promote(tmp_path, version)

    assert [rollback(tmp_path).version_id, rollback(tmp_path).version_id] == [b, a]
    with pytest.raises(StoreError, match="no earlier promoted version"):
        rollback(tmp_path)
    promote(tmp_path, c)
    assert rollback(tmp_path).version_id == a
    assert current_version_id(tmp_path) == a


def test_rolling_back_passes_over_what_is_gone(tmp_path: Path) -> None:
    a, b, c = (publish(tmp_path, number) for number in (1, 2, 3))
    for version in (a, b, c):
        promote(tmp_path, version)
    (tmp_path / "versions" / b / "manifest.json").unlink()

    assert rollback(tmp_path).version_id == a


def test_a_history_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    a, b = publish(tmp_path, 1), publish(tmp_path, 2)
    promote(tmp_path, a)
    with (tmp_path / "promotions.jsonl").open("a") as file:
        file.write('{"version": "v00')
    promote(tmp_path, b)

    assert rollback(tmp_path).version_id == a


def test_a_refused_version_is_promoted_only_by_force(tmp_path: Path) -> None:
    refused = publish(tmp_path, 1, passed=False)

    with pytest.raises(GateRefused, match=r"coverage 0\.5000 \(threshold 1\.0\)"):
        promote_passed(tmp_path, refused)
    assert current_version_id(tmp_path) is None
    promote_passed(tmp_path, refused, force=True)
    assert current_version_id(tmp_path) == refused


def test_the_newest_and_the_promoted_stay(tmp_path: Path) -> None:
    a, b, c, d = (publish(tmp_path, number) for number in (1, 2, 3, 4))
    promote(tmp_path, a)

    done = pruned(tmp_path, keep=2)

    assert done.versions == [b]
    assert done.bytes > 0
    assert [version.version_id for version in list_versions(tmp_path)] == [a, c, d]
    assert {path.name for path in (tmp_path / "versions").iterdir()} == {a, c, d}


def test_a_version_that_is_read_stays_until_its_reader_ends(tmp_path: Path) -> None:
    a, b = publish(tmp_path, 1), publish(tmp_path, 2)
    promote(tmp_path, a)
    reading = open_pinned(tmp_path)
    promote(tmp_path, b)

    assert pruned(tmp_path, keep=1).in_use == [a]
    assert [entry["in_use"] for entry in catalogue(tmp_path)["versions"]] == [True, False]
    read_version(tmp_path, a)
    assert reading.pin is not None
    reading.pin.release()
    assert pruned(tmp_path, keep=1).versions == [a]


def test_another_process_that_reads_keeps_a_version(tmp_path: Path) -> None:
    a, b = publish(tmp_path, 1), publish(tmp_path, 2)
    promote(tmp_path, a)
    program = (
        "import sys; from pathlib import Path; from hornbeam.store.versions import open_pinned\n"
        "version = open_pinned(Path(sys.argv[1])); print(version.version_id, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline().strip() == a
        promote(tmp_path, b)
        assert pruned(tmp_path, keep=1).in_use == [a]
        reader.kill()
    assert pruned(tmp_path, keep=1).versions == [a]


def test_segments_that_no_result_lies_in_go(tmp_path: Path) -> None:
    with Ledger(tmp_path, create=True) as ledger:
        ledger.put("document", "d1", b"text")
        ledger.seal(rows=1)
        (kept,) = (path.name for path in (tmp_path / "segments").iterdir())
        (tmp_path / "segments" / "document-orphan.parquet").write_bytes(b"left by a killed run")

        done = prune(tmp_path, ledger, 1)

        assert done.segments == ["document-orphan.parquet"]
        assert [path.name for path in (tmp_path / "segments").iterdir()] == [kept]
        assert ledger.get_many("document", ["d1"]) == {"d1": b"text"}


def test_the_list_names_what_cannot_be_read(tmp_path: Path) -> None:
    a, b = publish(tmp_path, 1), publish(tmp_path, 2, passed=False)
    promote(tmp_path, a)
    manifest = tmp_path / "versions" / b / "manifest.json"
    found = catalogue(tmp_path)
    assert [entry["refused"] for entry in found["versions"]] == [[], ["coverage"]]
    assert [entry["current"] for entry in found["versions"]] == [True, False]

    manifest.write_text(json.dumps({"format": 0}))

    assert [entry["version"] for entry in catalogue(tmp_path)["unreadable"]] == [b]
