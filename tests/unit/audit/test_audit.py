"""Whatever is damaged is named in one line, nothing else is harmed, and what can be mended is mended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hornbeam.audit.findings import Audit
from hornbeam.audit.repair import repair_index
from hornbeam.audit.run import audit_index
from hornbeam.errors import StoreError
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.opening import open_knowledge_base
from hornbeam.progress import Progress
from hornbeam.settings import Settings
from hornbeam.store.ledger import Ledger
from hornbeam.store.lock import write_lock
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
    with write_lock(index), Ledger(index, create=False) as ledger:
        done = repair_index(index, ledger, audit(index), lambda _: HashedEmbedder(), QUIET)
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


def test_a_damaged_ledger_is_one_line(index: Path) -> None:
    (index / "ledger.sqlite").write_bytes(b"SQLite format 3\x00" + b"\x00" * 5000)
    for left in index.glob("ledger.sqlite-*"):
        left.unlink()

    found = audit(index)

    assert [finding.where for finding in found.findings] == ["ledger.sqlite"]


def test_what_is_no_index_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no index"):
        audit(tmp_path)
