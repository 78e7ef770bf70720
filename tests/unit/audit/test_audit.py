"""Whatever is damaged is named in one line, nothing else is harmed, and what can be mended is mended."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hornbeam.audit.findings import Audit
from hornbeam.audit.repair import mend_ledger, repair_index
from hornbeam.audit.run import audit_index
from hornbeam.audit.tables import check_tables
from hornbeam.errors import StoreError, UnknownVersion
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.opening import open_knowledge_base
from hornbeam.progress import Progress
from hornbeam.schema.formats import read_schema
from hornbeam.settings import Settings
from hornbeam.store.ledger import Ledger
from hornbeam.store.lock import write_lock
from hornbeam.store.segments import segment_keys
from hornbeam.store.versions import current_version_id
from support.importing import import_triples

QUIET = Progress(quiet=True)
LINES = "".join(f"town {i}\tnear\ttown {i % 7}\nperson {i}\tlives_in\ttown {i % 5}\n" for i in range(8, 60))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "graph.tsv").write_text(LINES, "utf-8")
    import_triples(folder / "index", folder / "graph.tsv")
    with Ledger(folder / "index", create=False) as ledger:
        ledger.seal(rows=1)
    return folder / "index"


@pytest.fixture
def index(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "index"))


def version_of(index: Path) -> Path:
    current = current_version_id(index)
    assert current is not None
    return index / "versions" / current


def audit(index: Path) -> Audit:
    return audit_index(index, None, QUIET)


def repaired(index: Path) -> Audit:
    found = audit(index)
    with write_lock(index):
        done = mend_ledger(index, found)
        with Ledger(index, create=False) as ledger:
            done += repair_index(index, ledger, found, lambda _: HashedEmbedder(), QUIET)
    found = audit(index)
    found.repaired = done
    return found


def flip(path: Path, at: int = -40) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x55
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_sound_index_passes_every_check(index: Path) -> None:
    found = audit(index)

    assert found.sound, found.findings
    assert set(found.checks.values()) == {"passed"}
    assert {"files", "grounding", "levels_partition", "stores", "segments", "same_documents"} <= set(
        found.checks
    )


DAMAGE: dict[str, Callable[[Path], object]] = {
    "tables/entities.parquet": truncate,
    "tables/documents.parquet": flip,
    "tables/communities.parquet": lambda path: path.unlink(),
    "tables/community_members.parquet": truncate,
    "vectors/entities.faiss": flip,
    "vectors/chunks.faiss": truncate,
    "rows/relations.arrow": lambda path: path.unlink(),
    "graph/mentions.npz": flip,
    "lexical/entities/index.json": lambda path: path.write_text("{}"),
    "schema.json": lambda path: path.write_text("{}"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_named_alone_and_made_again(index: Path, name: str) -> None:
    path = version_of(index) / name
    before = path.read_bytes()
    DAMAGE[name](path)

    found = audit(index)
    assert [finding.where for finding in found.findings] == [name]
    assert "\n" not in found.findings[0].line()

    after = repaired(index)
    assert after.sound, after.findings
    assert after.repaired
    assert path.read_bytes() == before
    open_knowledge_base(index, Settings())


def test_several_damaged_files_at_once(index: Path) -> None:
    for name in ("tables/entities.parquet", "rows/entities.arrow", "vectors/triples.faiss"):
        truncate(version_of(index) / name)

    assert len(audit(index).findings) == 3
    assert repaired(index).sound


def test_a_deleted_segment_is_named_and_its_texts_come_back(index: Path) -> None:
    for path in (index / "segments").glob("document-*"):
        path.unlink()

    found = audit(index)
    assert [finding.check for finding in found.findings] == ["segments"]
    assert found.findings[0].problem == "missing"

    assert repaired(index).sound


def test_a_lost_result_cannot_be_mended_and_is_said_to_be_lost(index: Path) -> None:
    (segment,) = (index / "segments").glob("extraction-*")
    flip(segment, segment.stat().st_size // 2)

    assert [finding.where for finding in audit(index).findings] == [f"segments/{segment.name}"]
    after = repaired(index)

    assert [finding.check for finding in after.findings] == ["results"]
    assert "have no result" in after.findings[0].problem
    # Imported again, all is there again.
    import_triples(index, next(index.parents[0].glob("*.tsv"), _source(index)))
    assert audit(index).sound


def _source(index: Path) -> Path:
    with Ledger(index, create=False) as ledger:
        (row,) = ledger.documents()
    return Path(row.sources[0].rpartition("#")[0])


def test_a_missing_current_is_named_and_set_again(index: Path) -> None:
    version = current_version_id(index)
    (index / "CURRENT").unlink()

    found = audit(index)
    assert [finding.where for finding in found.findings] == ["CURRENT"]

    repaired(index)
    assert current_version_id(index) == version
    assert audit(index).sound


def rewrite(index: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a table and let the manifest agree, as a faulty build would."""
    from hornbeam.store.versions import read_version, rewrite_files

    path = version_of(index) / "tables" / f"{table}.parquet"
    changed = change(pq.read_table(path))
    pq.write_table(changed, path)
    rewrite_files(read_version(index, path.parents[1].name), [f"tables/{table}.parquet"])


def set_first(column: str, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        values[0] = value
        place = table.schema.get_field_index(column)
        return table.set_column(
            place, table.schema.field(column), pa.array(values, table.schema.field(column).type)
        )

    return change


@pytest.mark.parametrize(
    ("table", "change", "check"),
    [
        ("entities", set_first("type", "dragon"), "schema_violations"),
        ("entities", set_first("degree", 99), "entity_counts"),
        ("relations", set_first("tail_id", "e-nowhere"), "dangling_edges"),
        ("relations", set_first("weight", 9.0), "relation_weights"),
        ("relations", set_first("confidence", 1.5), "confidences"),
        ("mentions", set_first("start", 3), "grounding"),
        ("chunks", set_first("text", "other"), "chunk_texts"),
        ("chunks", set_first("state", "pending"), "chunk_states"),
        ("communities", set_first("size", 0), "community_sizes"),
        ("communities", set_first("centre_id", "e-nowhere"), "community_centres"),
        ("community_members", lambda table: table.slice(1), "coverage"),
        ("community_members", lambda table: table.slice(1), "levels_partition"),
        ("entities", lambda table: pa.concat_tables([table, table.slice(0, 1)]), "unique_entity_id"),
        ("chunks", lambda table: table.slice(1), "same_documents"),
    ],
)
def test_a_table_that_breaks_an_invariant_is_found_by_its_check(
    index: Path, table: str, change: Callable[[pa.Table], pa.Table], check: str
) -> None:
    rewrite(index, table, change)

    found = audit(index)

    assert found.checks[check] == "failed", found.checks
    offence = next(finding for finding in found.findings if finding.check == check)
    assert offence.examples


def test_a_stray_file_is_named(index: Path) -> None:
    (version_of(index) / "tables" / "notes.txt").write_text("not ours")

    assert [finding.check for finding in audit(index).findings] == ["foreign_files"]


def overwrite_page(path: Path, table: str) -> None:
    """The first page of a table, as a disk might."""
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def lose_ledger(index: Path) -> None:
    for path in index.glob("ledger.sqlite*"):
        path.unlink()


def zero_ledger(index: Path) -> None:
    for left in index.glob("ledger.sqlite-*"):
        left.unlink()
    (index / "ledger.sqlite").write_bytes(b"SQLite format 3\x00" + b"\x00" * 5000)


@pytest.mark.parametrize("damage", [zero_ledger, lose_ledger])
def test_a_lost_ledger_is_told_and_what_segments_hold_is_found_again(
    index: Path, damage: Callable[[Path], None]
) -> None:
    with Ledger(index, create=False) as ledger:
        stored = {kind: ledger.present(kind, keys) for kind, keys in _keys(index).items()}
    source = _source(index)
    damage(index)

    found = audit(index)
    assert [finding.where for finding in found.findings] == ["ledger.sqlite"]
    assert "hornbeam audit" in found.findings[0].problem
    assert found.checks["segments"] == found.checks["stores"] == "passed"  # the rest is looked at
    with pytest.raises(StoreError, match=r"ledger\.sqlite is (damaged|missing).*audit --index .* --repair"):
        Ledger(index, create=False)
    open_knowledge_base(index, Settings())  # readers need no ledger

    after = repaired(index)

    with Ledger(index, create=False) as ledger:
        assert {kind: ledger.present(kind, keys) for kind, keys in _keys(index).items()} == stored
    # What is left to do is said, and does it: nothing is extracted again.
    assert [finding.check for finding in after.findings] == ["history"]
    assert "'hornbeam index' on the same paths" in after.findings[0].problem
    version = current_version_id(index)
    again = import_triples(index, source)
    assert (again["version"], audit(index).sound) == (version, True)


def _keys(index: Path) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for path in (index / "segments").glob("*.parquet"):
        found.setdefault(path.name.rpartition("-")[0], []).extend(segment_keys(path))
    return found


def test_a_lost_segment_is_found_beside_a_lost_ledger(index: Path) -> None:
    zero_ledger(index)
    (segment,) = (index / "segments").glob("extraction-*")
    flip(segment, segment.stat().st_size // 2)

    assert {finding.where for finding in audit(index).findings} == {
        "ledger.sqlite",
        f"segments/{segment.name}",
    }


def test_of_a_ledger_with_a_damaged_page_all_other_tables_are_kept(index: Path) -> None:
    with Ledger(index, create=False) as ledger:
        before = (list(ledger.documents()), ledger.segments(), ledger.runs.usage())
    with closing(sqlite3.connect(index / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite_page(index / "ledger.sqlite", "sealed")

    assert [finding.where for finding in audit(index).findings] == ["ledger.sqlite"]
    after = repaired(index)

    assert after.sound, after.findings
    assert any("sealed" in line for line in after.repaired)
    with Ledger(index, create=False) as ledger:
        assert (list(ledger.documents()), ledger.segments(), ledger.runs.usage()) == before
    assert (index / "damaged-1" / "ledger.sqlite").is_file()


def test_a_damaged_manifest_is_named_the_rest_is_told_and_the_version_before_comes_back(index: Path) -> None:
    before = current_version_id(index)
    more = index.parent / "more.tsv"
    more.write_text("Osterby\tnear\ttown 3\n", "utf-8")
    import_triples(index, more)
    manifest = version_of(index) / "manifest.json"
    truncate(manifest)

    found = audit(index)
    assert [finding.where for finding in found.findings] == [str(manifest.relative_to(index))]
    assert found.checks["segments"] == "passed"
    with pytest.raises(StoreError, match=r"manifest\.json is damaged .*--repair.*'hornbeam index'"):
        open_knowledge_base(index, Settings())

    after = repaired(index)
    assert current_version_id(index) == before
    assert after.sound, after.findings
    # And the damaged one is made again by the same run as before.
    assert import_triples(index, more)["version"] == manifest.parent.name
    assert audit(index).sound


@pytest.mark.parametrize("said", ["v0000000000000000", "", "../..", "\x80\xff nonsense"])
def test_a_current_that_names_nothing_is_told_and_mended(index: Path, said: str) -> None:
    version = current_version_id(index)
    (index / "CURRENT").write_bytes(said.encode("latin-1"))

    assert [finding.where for finding in audit(index).findings] == ["CURRENT"]
    with pytest.raises(StoreError, match=r"CURRENT (names|is damaged).*--repair"):
        open_knowledge_base(index, Settings())
    repaired(index)

    assert current_version_id(index) == version


def test_a_version_that_there_is_not_is_told_with_the_nearest(index: Path) -> None:
    version = current_version_id(index)
    assert version is not None
    for mistyped in (version[:-1], version[1:], version[:4] + "0" + version[5:-1]):
        with pytest.raises(UnknownVersion, match=f"did you mean {version}"):
            audit_index(index, mistyped, QUIET)
    for other in ("", "latest", "../../etc"):
        with pytest.raises(UnknownVersion, match=version):
            audit_index(index, other, QUIET)


def test_what_is_no_index_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no index"):
        audit(tmp_path)


def test_a_description_that_is_not_in_its_chunk_is_found_and_older_tables_are_not_asked_for_it(
    index: Path,
) -> None:
    path = version_of(index) / "tables" / "mentions.parquet"
    sound = pq.read_table(path)
    schema = read_schema((version_of(index) / "schema.json").read_text("utf-8"), "schema")

    def found(start: int | None, end: int | None) -> list[str]:
        table = sound
        for name, value in (("description_start", start), ("description_end", end)):
            place = table.schema.get_field_index(name)
            column = pa.array([value, *([None] * (len(table) - 1))], pa.int64())
            table = table.set_column(place, table.schema.field(place), column)
        pq.write_table(table, path)
        return [finding.problem for finding in check_tables(version_of(index), schema)["description_spans"]]

    assert found(None, None) == found(0, 1) == []
    for start, end in ((0, None), (None, 1), (-1, 1), (1, 1), (0, 10_000)):
        assert len(found(start, end)) == 1
    pq.write_table(sound.drop_columns(["description_start", "description_end"]), path)
    assert check_tables(version_of(index), schema)["description_spans"] == []
