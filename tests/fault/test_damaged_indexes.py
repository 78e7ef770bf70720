"""Files of an index that are cut off, changed, gone or not to be read: each command says which file it is and
what to do, in one line, and does not touch the rest."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.errors import HornbeamError
from hornbeam.exchange.writing import WRITERS
from hornbeam.store.versions import current_version_id, open_current
from support.importing import import_triples

LINES = "".join(f"town {i}\tnear\ttown {i % 7}\nperson {i}\tlives_in\ttown {i % 5}\n" for i in range(8, 60))
NOBODY = 65534


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "graph.tsv").write_text(LINES, "utf-8")
    import_triples(folder / "index", folder / "graph.tsv")
    return folder / "index"


@pytest.fixture
def index(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "index"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def blur(path: Path) -> None:
    """The first and the last bytes, where formats say what is between."""
    content = bytearray(path.read_bytes())
    ends = min(64, len(content) // 2)
    for at in (*range(ends), *range(len(content) - ends, len(content))):
        content[at] ^= 0xA5
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


def said_by(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert isinstance(done.exception, HornbeamError), (arguments, done.output, done.exception)
    said = str(done.exception)
    assert "\n" not in said
    return said


FILES = (
    "graph/adjacency.npz",
    "graph/walk.npz",
    "graph/mentions.npz",
    "rows/entities.arrow",
    "lexical/chunks/index.json",
    "lexical/entities/indices.csc.index.npy",
    "lexical/chunks/vocab.index.json",
    "vectors/chunks.faiss",
)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [cut, blur, remove])
def test_a_search_names_the_file_and_the_remedy(
    index: Path, name: str, damage: Callable[[Path], None]
) -> None:
    path = open_current(index).directory / name
    damage(path)
    said = said_by("search", "town 3", "--index", str(index))
    assert str(path) in said or f"{path.parent} is damaged" in said
    assert f"'hornbeam audit --index {index} --repair'" in said


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("damage", [cut, remove])
def test_an_export_names_the_table_and_leaves_nothing(
    index: Path, tmp_path: Path, form: str, damage: Callable[[Path], None]
) -> None:
    path = open_current(index).directory / "tables" / "relations.parquet"
    damage(path)
    said = said_by("export", str(tmp_path / "out"), "--format", form, "--index", str(index))
    assert str(path) in said
    assert f"'hornbeam audit --index {index} --repair'" in said
    assert not (tmp_path / "out").exists()


def test_a_comparison_names_the_table(index: Path) -> None:
    version = open_current(index)
    blur(version.directory / "tables" / "entities.parquet")
    said = said_by("diff", version.version_id, version.version_id, "--index", str(index))
    assert "tables/entities.parquet" in said
    assert "--repair" in said


def test_a_damage_that_shows_late_is_named_by_its_checksum(index: Path) -> None:
    """Offsets and headers are whole, the text is no UTF-8 any more."""
    path = open_current(index).directory / "rows" / "entities.arrow"
    content = path.read_bytes()
    assert content.count(b"town 30") >= 1
    path.write_bytes(content.replace(b"town 30", b"\xff\xfe\xfd\xfc 30"))
    said = said_by("search", "town 30", "--index", str(index))
    assert str(path) in said
    assert "--repair" in said


@pytest.mark.parametrize("command", ["status", "update", "versions"])
def test_a_damaged_ledger_is_named_with_the_remedy_and_searches_go_on(index: Path, command: str) -> None:
    for left in index.glob("ledger.sqlite-*"):
        left.unlink()
    blur(index / "ledger.sqlite")
    said = said_by(command, "--index", str(index))
    assert str(index / "ledger.sqlite") in said
    assert f"'hornbeam audit --index {index} --repair'" in said
    assert CliRunner().invoke(app, ["search", "town 3", "--index", str(index)]).exit_code == 0


# Permission denied: as somebody who is not root


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that everybody may enter."""
    place = Path(tempfile.mkdtemp(prefix="hornbeam-denied-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def _as_nobody(commands: list[list[str]], said: Connection) -> None:
    runner = CliRunner()
    runner.invoke(app, commands[0])  # what is imported late is imported: nobody may not read our libraries
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    for command in commands[1:]:
        done = runner.invoke(app, command)
        error = done.exception
        shown = str(error) if isinstance(error, HornbeamError) else f"{type(error).__name__}: {error}"
        said.send((done.exit_code, shown if error and not isinstance(error, SystemExit) else done.output))


@pytest.fixture
def as_nobody(forks: ForkServerContext) -> Callable[..., list[tuple[int, str]]]:
    """(exit code, error or output) of commands run by a user without rights; the first is run by root."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")

    def run(*commands: list[str]) -> list[tuple[int, str]]:
        ours, theirs = forks.Pipe()
        process = forks.Process(target=_as_nobody, args=(list(commands), theirs))
        process.start()
        theirs.close()
        try:
            return [ours.recv() for _ in commands[1:]]
        finally:
            process.join()

    return run


def test_files_that_may_not_be_read_are_named_and_nothing_is_harmed(
    sound: Path, open_place: Path, as_nobody: Callable[..., list[tuple[int, str]]]
) -> None:
    index = Path(shutil.copytree(sound, open_place / "index"))
    version = open_current(index)
    before = {path: path.read_bytes() for path in index.rglob("*") if path.is_file()}
    search = ["search", "town 3", "--index", str(index)]
    audit = ["audit", "--index", str(index), "--quiet"]
    for name in ("graph/adjacency.npz", "vectors/chunks.faiss", "rows/chunks.arrow", "manifest.json"):
        path = version.directory / name
        path.chmod(0o000)
        (searched, audited) = as_nobody(search, search, audit)
        assert searched == (1, f"{path} cannot be read: Permission denied")
        assert audited[0] == 1
        assert name in audited[1]
        path.chmod(0o644)
    (index / "ledger.sqlite").chmod(0o000)
    status = ["status", "--index", str(index)]
    (told, audited) = as_nobody(status, status, audit)
    assert str(index) in told[1]
    assert "\n" not in told[1]
    assert "ledger.sqlite" in audited[1]
    (index / "ledger.sqlite").chmod(0o644)
    assert {path: path.read_bytes() for path in before} == before


def test_an_index_that_may_not_be_written_is_read_all_the_same(
    sound: Path, open_place: Path, as_nobody: Callable[..., list[tuple[int, str]]]
) -> None:
    index = Path(shutil.copytree(sound, open_place / "index"))
    (open_place / "more.tsv").write_text("Osterby\tnear\ttown 3\n", "utf-8")
    search = ["search", "town 3", "--index", str(index)]
    adding = ["import", "triples", str(open_place / "more.tsv"), "--index", str(index), "--quiet"]
    mending = ["audit", "--index", str(index), "--quiet"]
    version = current_version_id(index)
    done = as_nobody(search, search, ["status", "--index", str(index)], mending, adding)
    assert [code for code, _ in done[:3]] == [0, 0, 0], done
    assert done[3][1].startswith(f"{index} cannot be written")
    assert current_version_id(index) == version


def test_an_import_that_may_not_be_read_is_a_mistake(
    open_place: Path, as_nobody: Callable[..., list[tuple[int, str]]]
) -> None:
    for name in ("open.tsv", "shut.tsv"):
        (open_place / name).write_text(LINES, "utf-8")
    (open_place / "shut.tsv").chmod(0o000)
    place = open_place / "indexes"
    place.mkdir()
    first = ["import", "triples", str(open_place / "open.tsv"), "--index", str(place / "a"), "--quiet"]
    shut = ["import", "triples", str(open_place / "shut.tsv"), "--index", str(place / "b"), "--quiet"]
    place.chmod(0o777)
    ((code, said),) = as_nobody(first, shut)
    assert (code, f"'{open_place / 'shut.tsv'}' is not readable" in said) == (2, True), said
