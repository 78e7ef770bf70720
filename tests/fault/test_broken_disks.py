"""Full, read-only and damaged disks, clocks that go back, memory that runs out: one clear line, and the next
run goes on from what was finished."""

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.errors import StoreError
from hornbeam.exchange.writing import WRITERS, export_version
from hornbeam.resolve import consolidate
from hornbeam.status import index_status
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import open_current
from support.building import build, update, walker
from support.importing import import_triples
from support.interrupted_build import SETTINGS, seal_often
from support.invariants import check_invariants

TEXT = "Grace Hopper served in the Navy.\n\nShe wrote the first compiler in Philadelphia."


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "hopper.txt").write_text(TEXT, "utf-8")
    (folder / "curie.txt").write_text("Marie Curie met Pierre Curie in Paris.", "utf-8")
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte; only root can make one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def _build_with_small_files(index: Path, corpus: Path, limit: int, said: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        build(index, [corpus], settings=SETTINGS)
        said.send("done")
    except StoreError as error:
        said.send(str(error))


@pytest.mark.parametrize("limit", [1 << 12, 50_000, 150_000])
def test_files_that_may_not_grow_stop_the_build_with_one_line(
    forks: ForkServerContext, corpus: Path, tmp_path: Path, limit: int
) -> None:
    index = tmp_path / "index"
    ours, theirs = forks.Pipe()
    process = forks.Process(target=_build_with_small_files, args=(index, corpus, limit, theirs))
    process.start()
    theirs.close()
    said = ours.recv()
    process.join()
    assert "no space left" in said, said
    assert "\n" not in said
    assert not list((index / "versions").glob("*") if (index / "versions").exists() else [])

    whole = build(tmp_path / "whole", [corpus], settings=SETTINGS)
    assert build(index, [corpus], settings=SETTINGS).version == whole.version


def test_a_full_disk_stops_the_build_and_room_lets_it_go_on(corpus: Path, small_disk: Path) -> None:
    index = small_disk / "index"
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * 700_000)
    with pytest.raises(StoreError, match="no space left"):
        build(index, [corpus], settings=SETTINGS)
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    report = build(index, [corpus], settings=SETTINGS)
    assert report.promoted
    check_invariants(open_current(index).directory)


TRIPLES = "".join(f"town {i}\tnear\ttown {i % 7}\n" for i in range(8, 60))


def fill(disk: Path, room: int) -> Path:
    """Leave about that many bytes free."""
    there = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(b"\0" * (there.f_bavail * there.f_frsize - room))
    return filler


def test_a_full_disk_stops_an_import_with_one_line(tmp_path: Path, small_disk: Path) -> None:
    (tmp_path / "graph.tsv").write_text(TRIPLES, "utf-8")
    filler = fill(small_disk, 200_000)
    with pytest.raises(StoreError, match="no space left") as caught:
        import_triples(small_disk / "index", tmp_path / "graph.tsv")
    assert "\n" not in str(caught.value)
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert import_triples(small_disk / "index", tmp_path / "graph.tsv")["promoted"]


@pytest.mark.parametrize("form", WRITERS)
def test_a_full_disk_stops_an_export_with_one_line_and_leaves_nothing(
    tmp_path: Path, small_disk: Path, form: str
) -> None:
    (tmp_path / "graph.tsv").write_text(TRIPLES, "utf-8")
    import_triples(tmp_path / "index", tmp_path / "graph.tsv")
    filler = fill(small_disk, 4096)
    with pytest.raises(StoreError, match="no space left") as caught:
        export_version(open_current(tmp_path / "index").directory, form, small_disk / "out")
    assert "\n" not in str(caught.value)
    assert list(small_disk.iterdir()) == [filler]


def test_a_full_disk_stops_a_repair_with_one_line(tmp_path: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    (tmp_path / "graph.tsv").write_text(TRIPLES, "utf-8")
    index = small_disk / "index"
    import_triples(index, tmp_path / "graph.tsv")
    (open_current(index).directory / "vectors" / "entities.faiss").unlink()
    filler = fill(small_disk, 8192)
    command = ["audit", "--index", str(index), "--repair", "--quiet"]
    said = CliRunner().invoke(app, command)
    assert isinstance(said.exception, StoreError)
    assert "no space left" in str(said.exception)
    assert "\n" not in str(said.exception)
    filler.unlink()
    assert CliRunner().invoke(app, command).exit_code == 0


def test_a_disk_that_cannot_be_written_is_read_all_the_same(corpus: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    index = small_disk / "index"
    report = build(index, [corpus], settings=SETTINGS)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            update(index, settings=SETTINGS)
        assert open_current(index).version_id == report.version
        assert index_status(index)["documents"]["indexed"] == 2
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_a_segment_that_is_gone_is_named_and_readers_go_on(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "seal", Ledger.seal)  # put back at the end
    seal_often()
    index = tmp_path / "index"
    (corpus / "more.txt").write_text("Lise Meitner met Otto Hahn.\n\nAda wrote notes.", "utf-8")
    before = build(index, [corpus], settings=SETTINGS).version
    segment = sorted((index / "segments").iterdir())[0]
    segment.rename(tmp_path / "kept")
    (corpus / "noether.txt").write_text("Emmy Noether taught in Göttingen.", "utf-8")

    with pytest.raises(StoreError, match=segment.name):
        update(index, settings=SETTINGS)

    assert open_current(index).version_id == before
    (tmp_path / "kept").rename(segment)
    assert update(index, settings=SETTINGS).promoted


def test_a_clock_that_goes_back_changes_nothing(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    first = build(index, [corpus], settings=SETTINGS)
    (corpus / "noether.txt").write_text("Emmy Noether taught in Göttingen.", "utf-8")
    os.utime(corpus / "noether.txt", (0, 0))
    (corpus / "curie.txt").write_text("Marie Curie met Pierre Curie in Sceaux.", "utf-8")
    os.utime(corpus / "curie.txt", (0, 0))
    back = time.time() - 10 * 365 * 86400
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: back)
        second = update(index, settings=SETTINGS)
    assert (second.documents["indexed"], second.promoted) == (2, True)
    assert open_current(index).version_id == second.version != first.version
    model = walker()
    again = update(index, settings=SETTINGS, model=model)
    assert (again.version, model.calls) == (second.version, 0)


def test_memory_that_runs_out_is_one_line(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise MemoryError

    monkeypatch.setattr(consolidate, "write_query", fails)
    with pytest.raises(StoreError, match="memory has run out"):
        build(tmp_path / "index", [corpus], settings=SETTINGS)
    monkeypatch.undo()
    report = build(tmp_path / "index", [corpus], settings=SETTINGS)
    assert report.promoted
    assert report.chunks["reused"] == report.chunks["total"]
