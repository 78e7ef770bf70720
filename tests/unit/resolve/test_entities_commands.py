"""`hornbeam entities`: the log of merges, undoing them, and a build that respects it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.errors import UsageError
from hornbeam.extract.result import ChunkExtraction, FoundEntity
from hornbeam.resolve.merge_log import allow_merges, read_merge_log, undo_merges
from hornbeam.store.ledger import Ledger
from support.building import build, table
from support.invariants import check_invariants

TEXT = "Ramey Idriss wrote songs. Idriss lived long."
FOUND = ChunkExtraction(
    entities=(
        FoundEntity(name="Ramey Idriss", type="person", confidence=0.9, spans=((0, 12),)),
        FoundEntity(name="Idriss", type="person", confidence=0.9, spans=((26, 32),)),
    )
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "songs.txt"
    file.write_text(TEXT)
    return file


@pytest.fixture
def index(tmp_path: Path, corpus: Path) -> Path:
    """An index whose only chunk has `FOUND` as its stored extraction."""
    build(tmp_path / "elsewhere", [corpus])
    with Ledger(tmp_path / "elsewhere", create=False) as ledger:
        ((key,),) = ledger._run("SELECT key FROM journal WHERE kind = 'extraction'")
    with Ledger(tmp_path / "index", create=True) as ledger:
        ledger.put("extraction", key, FOUND.model_dump_json().encode())
    build(tmp_path / "index", [corpus])
    return tmp_path / "index"


def names(index: Path, version: str | None) -> list[str]:
    return sorted(row["name"] for row in table(index, version, "entities"))


def test_an_undone_merge_is_not_made_by_the_next_build_which_extracts_nothing(
    index: Path, corpus: Path
) -> None:
    log = read_merge_log(index)
    (merge,) = log.merges
    assert (merge.name, merge.merged_name, merge.kind) == ("Ramey Idriss", "Idriss", "partial")
    assert names(index, log.version_id) == ["Ramey Idriss"]
    check_invariants(index / "versions" / log.version_id)

    undo_merges(index, [merge.merge_id])
    report = build(index, [corpus])

    assert report.chunks["reused"] == 1
    assert set(report.tokens) <= {"summaries"}
    assert names(index, report.version) == ["Idriss", "Ramey Idriss"]
    assert report.version != log.version_id
    after = read_merge_log(index)
    assert after.merges == []
    assert [one.merge_id for one in after.undone] == [merge.merge_id]

    allow_merges(index, [merge.merge_id])
    assert build(index, [corpus]).version == log.version_id


def test_an_id_that_is_no_merge_is_refused_and_nothing_written(index: Path) -> None:
    (merge,) = read_merge_log(index).merges
    with pytest.raises(UsageError, match="no merge 'm0'"):
        undo_merges(index, [merge.merge_id, "m0"])
    with pytest.raises(UsageError, match="was not undone"):
        allow_merges(index, [merge.merge_id])
    assert read_merge_log(index).undone == []


def test_undoing_twice_is_undoing_once(index: Path) -> None:
    (merge,) = read_merge_log(index).merges
    first = undo_merges(index, [merge.merge_id])
    assert undo_merges(index, [merge.merge_id]) == first


def test_the_commands_list_undo_and_allow(index: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["entities", "merges", "--index", str(index), "--json"])
    document = json.loads(listed.stdout)
    (merge,) = document["merges"]
    assert merge["merged_name"] == "Idriss"
    assert TEXT[merge["start"] : merge["end"]] == "Idriss"

    undone = runner.invoke(app, ["entities", "undo", "--index", str(index), merge["merge_id"], "--json"])
    assert (undone.exit_code, json.loads(undone.stdout)) == (0, {"undone": [merge["merge_id"]]})
    shown = runner.invoke(app, ["entities", "merges", "--index", str(index)])
    assert "undone: ramey idriss (person) is not idriss (person)" in shown.stdout
    assert "Ramey Idriss (person) = Idriss" in shown.stdout
    other = runner.invoke(app, ["entities", "merges", "--index", str(index), "--kind", "acronym", "--json"])
    assert json.loads(other.stdout)["merges"] == []

    allowed = runner.invoke(app, ["entities", "undo", "--allow", "--index", str(index), merge["merge_id"]])
    assert allowed.exit_code == 0
    assert "no text is extracted again" in " ".join(allowed.stdout.split())


def test_an_unknown_kind_of_evidence_is_a_usage_error(index: Path) -> None:
    result = CliRunner().invoke(app, ["entities", "merges", "--index", str(index), "--kind", "guess"])
    assert result.exit_code == 2
