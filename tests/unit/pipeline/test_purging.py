"""After a delete and a purge nothing of a deleted text is left in the index directory."""

import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from hornbeam.audit.run import audit_index
from hornbeam.cli import app
from hornbeam.errors import StoreError
from hornbeam.pipeline import purging
from hornbeam.pipeline.forgetting import forget_named
from hornbeam.pipeline.purging import Purged, purge
from hornbeam.progress import Progress
from hornbeam.store import database
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import list_versions, open_pinned
from support.building import build, delete, table_bytes, update, walker

TEXTS = {
    "one.txt": "Marie Curie was born in Warsaw. She worked in Paris with Pierre Curie.",
    "two.txt": "Grace Hopper served in the Navy. She wrote a compiler in Philadelphia with Marie Curie.",
    "three.txt": "Ada Lovelace wrote to Charles Babbage in London.",
}
#: Words of the second text alone.
SECRET = ("hopper", "navy", "compiler", "philadelphia")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture
def index(tmp_path: Path, corpus: Path) -> Path:
    """Built, and its results sealed, so that the texts share a segment."""
    index = tmp_path / "index"
    build(index, [corpus])
    with Ledger(index, create=False) as ledger:
        ledger.seal(rows=1)
    return index


def at_rest(index: Path) -> str:
    """All that the files say, out of their compression and in small letters."""
    told = []
    for path in sorted(index.rglob("*")):
        if path.suffix == ".parquet":
            told.append(str(pq.read_table(path).to_pylist()))
        elif path.is_file():
            told.append(path.read_bytes().decode("latin-1"))
    return "\n".join(told).casefold()


def left_of(index: Path) -> list[str]:
    told = at_rest(index)
    return [word for word in SECRET if word in told]


def run(index: Path) -> Purged:
    with Ledger(index, create=False) as ledger:
        return purge(index, ledger, Progress(quiet=True))


def test_no_word_of_a_deleted_text_is_left(corpus: Path, index: Path, tmp_path: Path) -> None:
    delete(index, [str(corpus / "two.txt")])
    assert left_of(index) == list(SECRET)
    done = run(index)
    assert left_of(index) == []
    assert (done.documents, len(done.versions), done.left) == (1, 1, [])
    assert done.segments
    assert done.bytes > 0
    assert audit_index(index, None, Progress(quiet=True)).findings == []

    (corpus / "two.txt").unlink()
    model = walker()
    again = update(index, model=model, full=True)
    assert again.chunks["reused"] == again.chunks["total"]
    fresh = build(tmp_path / "fresh", [corpus])
    assert table_bytes(index, again.version) == table_bytes(tmp_path / "fresh", fresh.version)
    assert left_of(index) == []


def test_an_edit_leaves_nothing_of_the_text_that_was_there(corpus: Path, index: Path) -> None:
    (corpus / "two.txt").write_text("Nobody was here.", "utf-8")
    update(index)
    run(index)
    assert left_of(index) == []


def test_what_is_still_held_stays(corpus: Path, index: Path) -> None:
    kept = {version.version_id for version in list_versions(index)}
    assert run(index).versions == []
    assert {version.version_id for version in list_versions(index)} == kept
    assert left_of(index) == list(SECRET)
    assert audit_index(index, None, Progress(quiet=True)).findings == []


def test_nothing_is_erased_while_readers_are_shown_a_deleted_document(corpus: Path, index: Path) -> None:
    with Ledger(index, create=False) as ledger:
        forget_named(ledger, [str(corpus / "two.txt")], allow_empty=False)
    with pytest.raises(StoreError, match="still has documents that were deleted"):
        run(index)
    assert left_of(index) == list(SECRET)


def test_a_version_that_is_read_stays_and_is_told(corpus: Path, index: Path) -> None:
    version = open_pinned(index)
    delete(index, [str(corpus / "two.txt")])
    said = CliRunner().invoke(app, ["purge", "--index", str(index), "--quiet"])
    assert said.exit_code == 1
    assert f"not erased: versions/{version.version_id}: somebody reads it" in said.stdout
    assert version.pin is not None
    version.pin.release()
    said = CliRunner().invoke(app, ["purge", "--index", str(index), "--quiet", "--json"])
    assert said.exit_code == 0
    assert left_of(index) == []


def test_a_log_that_is_read_stays_and_is_told(
    corpus: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.1)
    delete(index, [str(corpus / "two.txt")])
    reader = sqlite3.connect(index / "ledger.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM documents").fetchone()
    assert run(index).left == ["ledger.sqlite-wal: another process reads the index"]
    reader.close()
    assert run(index).left == []
    assert left_of(index) == []


def test_a_purge_that_was_stopped_is_finished_by_the_next(
    corpus: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete(index, [str(corpus / "two.txt")])
    with monkeypatch.context() as patched:

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(purging, "remove_segments", stop)
        with pytest.raises(KeyboardInterrupt):
            run(index)
    assert left_of(index)
    run(index)
    assert left_of(index) == []
    assert audit_index(index, None, Progress(quiet=True)).findings == []
