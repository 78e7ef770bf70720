import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hornbeam.errors import StoreError
from hornbeam.store import database, documents
from hornbeam.store import results as results_module
from hornbeam.store.ledger import ChunkRow, Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path, create=True) as opened:
        yield opened


def results(number: int, prefix: str = "k") -> dict[str, bytes]:
    return {f"{prefix}{i:04}": f"payload {i}".encode() * (i % 7 + 1) for i in range(number)}


def segments(index: Path) -> list[Path]:
    return sorted((index / "segments").glob("*.parquet"))


def add_document(ledger: Ledger, document_id: str, source: str, *, title: str = "T", run: int = 1) -> None:
    chunk = ChunkRow(f"c-{document_id}", document_id, 0, 5, 2, f"hash of {document_id}")
    ledger.add_document(document_id, "en", 5, "chunking", [chunk])
    ledger.add_source(source, document_id, title, run)


def held(ledger: Ledger) -> dict[str, tuple[str, ...]]:
    return {row.document_id: row.sources for row in ledger.documents()}


# Results


def test_a_result_is_there_for_another_connection_as_soon_as_put_returns(tmp_path: Path) -> None:
    with Ledger(tmp_path, create=True) as writer:
        writer.put("extraction", "k", b"found")
        # Not after the writer has closed: a killed process closes nothing.
        with Ledger(tmp_path, create=False) as reader:
            assert reader.get_many("extraction", ["k"]) == {"k": b"found"}


def test_a_transaction_that_fails_leaves_nothing_of_itself(ledger: Ledger) -> None:
    ledger.put("extraction", "before", b"1")

    def write_and_stop() -> None:
        with ledger.transaction():
            ledger.put("extraction", "inside", b"2")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_and_stop()

    assert ledger.present("extraction", ["before", "inside"]) == {"before"}


def test_sealed_results_read_the_same_as_before(tmp_path: Path, ledger: Ledger) -> None:
    stored = results(1000)
    with ledger.transaction():
        for key, payload in stored.items():
            ledger.put("extraction", key, payload)
    before = ledger.get_many("extraction", stored)

    ledger.seal(rows=1)

    assert ledger.get_many("extraction", stored) == before == stored
    assert ledger.present("extraction", [*stored, "unknown"]) == set(stored)
    assert len(segments(tmp_path)) == 1


def test_results_of_several_segments_and_the_journal_are_read_together(
    tmp_path: Path, ledger: Ledger
) -> None:
    stored: dict[str, bytes] = {}
    for prefix in ("b", "a", "c"):
        some = results(40, prefix)
        stored |= some
        for key, payload in some.items():
            ledger.put("summary", key, payload)
        if prefix != "c":
            ledger.seal(rows=1)

    assert len(segments(tmp_path)) == 2
    assert ledger.get_many("summary", reversed(stored)) == stored


def test_a_large_journal_becomes_several_segments(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_module, "_JOURNAL_BYTES", 5_000)
    stored = {f"k{i:02}": bytes([i]) * 1_000 for i in range(23)}
    for key, payload in stored.items():
        ledger.put("document", key, payload)

    ledger.seal(rows=1)

    assert len(segments(tmp_path)) == 5
    assert ledger.get_many("document", stored) == stored


def test_the_journal_is_sealed_by_bytes_as_well_as_by_rows(tmp_path: Path, ledger: Ledger) -> None:
    ledger.put("document", "a", b"x" * 600)
    ledger.seal(rows=10, size=1_000)
    assert segments(tmp_path) == []

    ledger.put("document", "b", b"x" * 600)
    ledger.seal(rows=10, size=1_000)
    assert len(segments(tmp_path)) == 1


def test_a_reopened_ledger_still_knows_how_much_waits_in_the_journal(tmp_path: Path) -> None:
    with Ledger(tmp_path, create=True) as first:
        for key, payload in results(10).items():
            first.put("extraction", key, payload)
    with Ledger(tmp_path, create=False) as second:
        second.seal(rows=10)

    assert len(segments(tmp_path)) == 1


@pytest.mark.parametrize("step", ["write_segment", "transaction"])
def test_a_stop_while_sealing_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before the file is there, and between file and transaction."""
    stored = results(50)
    with Ledger(tmp_path, create=True) as ledger:
        for key, payload in stored.items():
            ledger.put("extraction", key, payload)

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            if step == "write_segment":
                patched.setattr(results_module, "write_segment", stop)
            else:
                patched.setattr(ledger, "transaction", stop)
            with pytest.raises(KeyboardInterrupt):
                ledger.seal(rows=1)
        assert len(segments(tmp_path)) == (0 if step == "write_segment" else 1)

    with Ledger(tmp_path, create=False) as again:
        assert again.get_many("extraction", stored) == stored
        again.seal(rows=1)
        assert again.get_many("extraction", stored) == stored
    assert len(segments(tmp_path)) == 1


def test_a_newer_result_takes_the_place_of_a_sealed_one(ledger: Ledger) -> None:
    ledger.put("extraction", "k", b"old")
    ledger.seal(rows=1)

    ledger.put("extraction", "k", b"new")
    assert ledger.get_many("extraction", ["k"]) == {"k": b"new"}

    ledger.seal(rows=1)
    assert ledger.get_many("extraction", ["k"]) == {"k": b"new"}


def test_results_of_another_kind_are_not_mixed_up(ledger: Ledger) -> None:
    ledger.put("summary", "k", b"a summary")
    ledger.put("extraction", "k", b"an extraction")
    ledger.seal(rows=1)

    assert ledger.get_many("summary", ["k"]) == {"k": b"a summary"}
    assert ledger.present("document", ["k"]) == set()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("damage", [Path.unlink, _cut, _flip])
def test_a_missing_or_damaged_segment_is_named(tmp_path: Path, ledger: Ledger, damage: object) -> None:
    assert callable(damage)
    stored = results(300)
    for key, payload in stored.items():
        ledger.put("extraction", key, payload)
    ledger.seal(rows=1)
    (segment,) = segments(tmp_path)

    damage(segment)

    with pytest.raises(StoreError, match=segment.name):
        ledger.get_many("extraction", stored)


# Documents, sources, rejections


def test_a_source_that_changes_lets_go_of_its_old_document(ledger: Ledger) -> None:
    add_document(ledger, "d1", "a.txt")
    add_document(ledger, "d2", "a.txt", run=2)

    assert held(ledger) == {"d2": ("a.txt",)}
    assert ledger.counts() == {"documents": 1, "chunks": 1, "rejected": 0}


def test_a_text_with_two_sources_is_one_document_until_both_are_gone(ledger: Ledger) -> None:
    add_document(ledger, "d1", "b.txt")
    add_document(ledger, "d1", "a.txt")
    assert held(ledger) == {"d1": ("a.txt", "b.txt")}
    assert ledger.counts()["chunks"] == 1

    ledger.add_rejection("b.txt", "not text", 2)
    assert held(ledger) == {"d1": ("a.txt",)}

    ledger.forget_sources(["a.txt"])
    assert held(ledger) == {}


def test_the_title_is_that_of_the_first_source_whichever_was_read_first(tmp_path: Path) -> None:
    titles = set()
    for order in (["a.txt", "b.txt"], ["b.txt", "a.txt"]):
        with Ledger(tmp_path / order[0], create=True) as ledger:
            for source in order:
                add_document(ledger, "d1", source, title=f"title in {source}")
            titles |= {row.title for row in ledger.documents()}

    assert titles == {"title in a.txt"}


def test_a_rejection_takes_the_place_of_a_document_and_a_document_of_a_rejection(ledger: Ledger) -> None:
    add_document(ledger, "d1", "a.txt")
    ledger.add_rejection("a.txt", "empty", 2)
    assert held(ledger) == {}
    assert ledger.rejections() == [("a.txt", "empty")]

    add_document(ledger, "d2", "a.txt", run=3)
    assert held(ledger) == {"d2": ("a.txt",)}
    assert ledger.rejections() == []


def test_records_that_a_run_did_not_meet_in_a_file_that_it_met_have_vanished(ledger: Ledger) -> None:
    for record in (1, 2, 3):
        add_document(ledger, f"d{record}", f"list.jsonl#{record}", run=1)
    ledger.add_rejection("list.jsonl#4", "no text", 1)
    add_document(ledger, "other", "other.txt", run=1)
    assert ledger.vanished(1) == []

    add_document(ledger, "d1", "list.jsonl#1", run=2)

    assert ledger.vanished(2) == [
        ("list.jsonl#2", "list.jsonl"),
        ("list.jsonl#3", "list.jsonl"),
        ("list.jsonl#4", "list.jsonl"),
    ]


def test_documents_come_by_id_in_pages_while_the_ledger_is_written_to(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (database, documents):
        monkeypatch.setattr(module, "AT_ONCE", 3)
    expected = [f"d{number:02}" for number in range(10)]
    for document_id in reversed(expected):
        add_document(ledger, document_id, f"{document_id}.txt")

    seen = []
    for row in ledger.documents():
        seen.append(row.document_id)
        with ledger.transaction():
            ledger.put("extraction", row.document_id, b"found")

    assert seen == expected


def test_a_document_that_is_cut_anew_has_only_its_new_chunks(ledger: Ledger) -> None:
    add_document(ledger, "d1", "a.txt")
    new = [ChunkRow(f"n{place}", "d1", place, place + 1, 1, f"h{place}") for place in range(12)]
    ledger.add_document("d1", "en", 5, "another chunking", new)

    assert ledger.chunks(["d1", "unknown"]) == {"d1": new, "unknown": []}
    assert ledger.chunking_of("d1") == "another chunking"
    assert ledger.chunking_of("unknown") is None


def test_failures_are_remembered_until_they_are_cleared(ledger: Ledger) -> None:
    ledger.put_failure("k1", "model_error", "the server is gone")
    ledger.put_failure("k2", "prompt_too_long", "")
    ledger.clear_failure("k2")

    assert ledger.failures(["k1", "k2", "k3"]) == {"k1": "model_error"}


# Opening


def test_a_directory_without_a_ledger_is_no_index_and_stays_untouched(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no index"):
        Ledger(tmp_path / "nothing", create=False)
    assert not (tmp_path / "nothing").exists()


def test_another_format_is_refused(tmp_path: Path) -> None:
    with Ledger(tmp_path, create=True) as ledger:
        ledger.set_meta("format", "999")

    with pytest.raises(StoreError, match="has format 999"):
        Ledger(tmp_path, create=True)


def test_a_file_that_is_no_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database " * 100)

    with pytest.raises(StoreError, match=r"ledger\.sqlite is damaged .*audit --index .* --repair"):
        Ledger(tmp_path, create=True)


def test_an_index_path_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot be opened"):
        Ledger(tmp_path / "file", create=True)


def test_a_write_that_the_database_refuses_is_a_store_error(tmp_path: Path, ledger: Ledger) -> None:
    other = sqlite3.connect(tmp_path / "ledger.sqlite")
    other.execute("DROP TABLE journal")
    other.commit()

    with pytest.raises(StoreError, match=r"ledger\.sqlite"):
        ledger.put("extraction", "k", b"found")
    other.close()


# Ledgers of an older Hornbeam


@pytest.mark.parametrize("read_only", [True, False])
def test_an_older_ledger_is_read_and_written(tmp_path: Path, read_only: bool) -> None:
    with Ledger(tmp_path, create=True) as ledger:
        add_document(ledger, "d", "corpus/a.txt")
        ledger.add_rejection("corpus/b.pdf", "damaged", 1)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database:
        for table in ("sources", "rejections"):
            database.execute(f"ALTER TABLE {table} DROP COLUMN shown")

    with Ledger(tmp_path, create=False, read_only=read_only) as ledger:
        assert held(ledger) == {"d": ("corpus/a.txt",)}
        assert ledger.rejections() == [("corpus/b.pdf", "damaged")]
        assert [shown for _, shown, *_ in ledger.sources()] == ["corpus/a.txt"]
        if not read_only:
            ledger.adopt_source("/home/ada/corpus/a.txt", "corpus/a.txt")
            assert [source for source, *_ in ledger.sources()] == ["/home/ada/corpus/a.txt"]
