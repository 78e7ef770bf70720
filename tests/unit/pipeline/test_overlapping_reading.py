"""Documents are read when the model has room for their chunks, and the result is the one of reading first."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from hornbeam.build import Build
from hornbeam.errors import Interrupted
from hornbeam.pipeline import reading
from hornbeam.progress import Progress
from hornbeam.schema import load_schema
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import Ledger
from support.building import GRAPH_TABLES, build, table_bytes, walker, walking_settings
from support.invariants import check_invariants
from support.version_by_hand import HashedWords

DOCUMENTS, BATCH, WINDOW = 24, 4, 2


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    lines = [json.dumps({"text": f"Grace Hopper {n} met Ada Byron in Paris."}) for n in range(DOCUMENTS - 1)]
    (folder / "many.jsonl").write_text("\n".join(lines), "utf-8")
    (folder / "again.txt").write_text("Grace Hopper 3 met Ada Byron in Paris.", "utf-8")
    return folder


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_ITEMS_AT_ONCE", BATCH)


def _settings() -> Settings:
    return walking_settings(extract={"window": WINDOW})


@pytest.mark.usefixtures("small_batches")
def test_the_model_works_while_documents_are_read_and_nothing_piles_up(corpus: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    seen: list[tuple[int, int]] = []  # documents read, results kept, at every poll

    def before_poll() -> None:
        with contextlib.closing(sqlite3.connect(index / "ledger.sqlite")) as db:
            (read,) = db.execute("SELECT count(*) FROM documents").fetchone()
            (kept,) = db.execute("SELECT count(*) FROM journal WHERE kind = 'extraction'").fetchone()
            seen.append((read, kept))

    model = walker(per_poll=1, before_poll=before_poll)
    report = build(index, [corpus], model=model, settings=_settings())
    assert 0 < seen[0][0] <= BATCH
    assert seen[0][1] == 0
    assert max(read - kept for read, kept in seen if kept < DOCUMENTS - 1) <= BATCH + WINDOW
    assert report.chunks["total"] == report.chunks["done"] + report.chunks["degraded"] == DOCUMENTS - 1
    assert report.documents["seen"] == DOCUMENTS
    assert {"read", "extract"} <= report.seconds.keys()
    check_invariants(index / "versions" / str(report.version))


def test_the_version_is_the_one_of_reading_first(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = build(tmp_path / "together", [corpus], settings=_settings())
    monkeypatch.setattr(reading, "_ITEMS_AT_ONCE", 1)
    model = walker()
    piecewise = build(tmp_path / "piecewise", [corpus], model=model, settings=_settings())
    assert piecewise.version == together.version
    for name in GRAPH_TABLES:
        assert table_bytes(tmp_path / "piecewise", piecewise.version, [name]) == table_bytes(
            tmp_path / "together", together.version, [name]
        )
    again = walker()
    assert build(tmp_path / "piecewise", [corpus], model=again, settings=_settings()).version == (
        together.version
    )
    assert again.calls == 0


@pytest.mark.usefixtures("small_batches")
def test_a_run_that_is_stopped_while_it_reads_goes_on_where_it_was(corpus: Path, tmp_path: Path) -> None:
    whole = walker()
    expected = build(tmp_path / "whole", [corpus], model=whole, settings=_settings()).version
    stop, polls = StopRequest(), 0

    def before_poll() -> None:
        nonlocal polls
        polls += 1
        stop.requested = polls >= 3

    first = walker(per_poll=1, before_poll=before_poll)
    index = tmp_path / "index"
    stopped = Build(
        index, _settings(), load_schema("general"), first, HashedWords(), Progress(quiet=True), stop
    )
    with pytest.raises(Interrupted):
        stopped.run([corpus])
    with Ledger(index, create=False) as ledger:
        assert 0 < ledger.counts()["documents"] < DOCUMENTS - 1
    rest = walker()
    assert build(index, [corpus], model=rest, settings=_settings()).version == expected
    assert first.calls + rest.calls == whole.calls
