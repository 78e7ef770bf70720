"""An index that follows its documents: update and delete."""

import os
from pathlib import Path

import pytest

from hornbeam.build import BuildReport
from hornbeam.cli import main
from hornbeam.errors import UsageError
from hornbeam.pipeline import publishing, recipe
from hornbeam.store.ledger import Ledger
from hornbeam.store.promotions import promote
from hornbeam.store.versions import open_current, read_version
from support.building import GRAPH_TABLES, build, delete, table, table_bytes, update, walker
from support.invariants import check_invariants

TEXTS = {
    "curie.txt": "Marie Curie was born in Warsaw. She worked in Paris with Pierre Curie.",
    "hopper.txt": "Grace Hopper served in the Navy. She wrote a compiler in Philadelphia.",
    "ada.txt": "Ada Lovelace wrote to Charles Babbage in London.",
    "notes/warsaw.txt": "Warsaw lies on the Vistula. Marie Curie left Warsaw for Paris.",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "corpus", TEXTS)


@pytest.fixture
def index(tmp_path: Path, corpus: Path) -> Path:
    build(tmp_path / "index", [corpus])
    return tmp_path / "index"


def write(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def graph(index: Path) -> dict[str, bytes]:
    """The tables of the graph, with documents and chunks, as bytes."""
    version = open_current(index)
    check_invariants(version.directory)
    return table_bytes(index, version.version_id, ("documents", "chunks", *GRAPH_TABLES))


def scratch(folder: Path, corpus: Path) -> dict[str, bytes]:
    build(folder, [corpus])
    return graph(folder)


def test_an_update_follows_added_changed_moved_and_removed_documents(
    corpus: Path, index: Path, tmp_path: Path
) -> None:
    write(corpus, {"noether.txt": "Emmy Noether taught in Göttingen."})
    write(corpus, {"ada.txt": TEXTS["ada.txt"] + " Her notes were printed in London."})
    (corpus / "curie.txt").rename(corpus / "notes" / "marie.txt")
    (corpus / "hopper.txt").unlink()
    model = walker()

    report = update(index, model=model)

    said = report.documents
    assert (said["indexed"], said["changed"], said["moved"], said["removed"]) == (2, 1, 1, 1)
    assert said["seen"] == said["indexed"] + said["unchanged"] + said["moved"] == 4
    assert graph(index) == scratch(tmp_path / "scratch", corpus)
    assert report.tokens["entities"]["calls"] == 2, "only what is new is read"


def test_an_update_of_nothing_finds_the_version_that_is_there(index: Path) -> None:
    before = open_current(index).version_id
    model = walker()
    report = update(index, model=model)
    assert (report.version, report.unchanged, model.calls) == (before, True, 0)


def test_documents_that_come_and_go_lead_back_to_the_version_that_was(corpus: Path, index: Path) -> None:
    before = open_current(index).version_id
    write(corpus, {"noether.txt": "Emmy Noether taught in Göttingen."})
    assert update(index).version != before
    (corpus / "noether.txt").unlink()
    model = walker()
    assert update(index, model=model).version == before == open_current(index).version_id
    assert model.calls == 0


def test_a_path_means_the_same_from_every_working_directory(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    monkeypatch.chdir(tmp_path)
    first = build(index, [Path("corpus")])
    monkeypatch.chdir(corpus / "notes")
    for paths in ([Path("..")], [corpus], [Path("../../corpus/ada.txt"), tmp_path / "corpus" / "notes"]):
        again = build(index, paths)
        assert again.version == first.version
        assert again.documents["indexed"] == again.documents["duplicates"] == 0
    sources = {row["source"] for row in table(index, first.version, "documents")}
    assert sources == {f"corpus/{name}" for name in TEXTS}
    assert update(index).version == first.version


def test_two_folders_of_one_name_are_told_apart(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "other" / "corpus", {"ada.txt": "Ada met Lise Meitner."})
    monkeypatch.chdir(tmp_path)
    build(tmp_path / "index", [Path("corpus")])
    monkeypatch.chdir(tmp_path / "other")
    report = build(tmp_path / "index", [Path("corpus")])
    sources = {row["source"] for row in table(tmp_path / "index", report.version, "documents")}
    assert {"corpus/ada.txt", str(tmp_path / "other" / "corpus" / "ada.txt")} <= sources


def test_an_update_may_look_at_some_paths_only(corpus: Path, index: Path) -> None:
    (corpus / "hopper.txt").unlink()
    write(corpus, {"notes/lise.txt": "Lise Meitner lived in Vienna."})
    report = update(index, [corpus / "notes"])
    assert (report.documents["indexed"], report.documents["removed"]) == (1, 0)
    gone = update(index, [corpus / "hopper.txt"])
    assert gone.documents["removed"] == 1


def test_a_folder_that_is_not_there_or_empty_lets_go_of_nothing(corpus: Path, index: Path) -> None:
    before = open_current(index).version_id
    corpus.rename(corpus.with_name("elsewhere"))
    with pytest.raises(UsageError, match="is not there"):
        update(index)
    corpus.mkdir()
    with pytest.raises(UsageError, match="--allow-empty"):
        update(index)
    assert open_current(index).version_id == before
    assert update(index, allow_empty=True).documents["removed"] == 4
    assert table(index, open_current(index).version_id, "entities") == []


def test_what_cannot_be_looked_at_is_not_gone(
    corpus: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests may run as root, for whom nothing is forbidden: the refusal is played."""
    lstat, stat, listdir = os.lstat, Path.stat, os.listdir

    def refused(path: object) -> bool:
        return str(path).startswith(str(corpus / "notes" / ""))

    def forbidden_lstat(path: str) -> os.stat_result:
        if refused(path):
            raise PermissionError(13, "Permission denied")
        return lstat(path)

    def forbidden_list(path: Path) -> list[str]:
        if Path(path) == corpus / "notes":
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "lstat", forbidden_lstat)
    monkeypatch.setattr(os, "listdir", forbidden_list)
    report = update(index)
    assert report.documents["removed"] == 0
    assert [row["path"] for row in report.documents["rejected"]] == [str(corpus / "notes")]
    assert stat(corpus / "notes" / "warsaw.txt")


def test_delete_forgets_what_only_that_document_states(corpus: Path, index: Path, tmp_path: Path) -> None:
    report = delete(index, [str(corpus / "curie.txt"), str(corpus / "not*")])
    assert report.documents["removed"] == 2
    for name in ("curie.txt", "notes/warsaw.txt"):
        (corpus / name).unlink()
    assert graph(index) == scratch(tmp_path / "scratch", corpus)


def test_a_full_delete_is_the_version_that_never_knew(corpus: Path, index: Path, tmp_path: Path) -> None:
    before = open_current(index).version_id
    write(corpus, {"noether.txt": "Emmy Noether taught in Göttingen, where Marie Curie never was."})
    build(index, [corpus])
    (document,) = [
        row["document_id"]
        for row in table(index, open_current(index).version_id, "documents")
        if row["source"].endswith("noether.txt")
    ]
    for version in (index / "versions").iterdir():  # or it would simply be found
        if version.name == before:
            (version / "manifest.json").unlink()
    assert delete(index, [document], full=True).version == before


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_not_the_working_directory(
    corpus: Path, index: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(corpus / "notes")
    with pytest.raises(UsageError, match="empty name"):
        delete(index, [name])
    with Ledger(index, create=False) as ledger:
        assert ledger.counts()["documents"] == 4


@pytest.mark.parametrize("command", [["update"], ["delete", "ada.txt"]])
def test_an_index_without_a_version_is_not_gone_on_with_by_default_settings(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    with Ledger(tmp_path / "stopped", create=True):  # all that a first build that was killed may leave
        pass
    monkeypatch.setattr("sys.argv", ["hornbeam", *command, "--index", str(tmp_path / "stopped")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 4
    assert "has no version yet" in capsys.readouterr().err


def test_an_unknown_name_deletes_nothing(corpus: Path, index: Path) -> None:
    before = open_current(index).version_id
    with pytest.raises(UsageError, match=r"'nothing\.txt'"):
        delete(index, [str(corpus / "ada.txt"), "nothing.txt"])
    with Ledger(index, create=False) as ledger:
        assert ledger.counts()["documents"] == 4
    assert open_current(index).version_id == before


def test_what_was_deleted_stays_out_until_it_is_indexed_again(corpus: Path, index: Path) -> None:
    delete(index, [str(corpus / "ada.txt")])
    report = update(index)
    assert (report.documents["excluded"], report.documents["indexed"]) == (1, 0)
    assert delete(index, [str(corpus / "ada.txt")]).unchanged, "a run that was killed is repeated"
    assert build(index, [corpus / "ada.txt"]).documents["indexed"] == 1


def test_an_edit_brings_a_deleted_document_back(corpus: Path, index: Path) -> None:
    delete(index, [str(corpus / "ada.txt")])
    write(corpus, {"ada.txt": "Ada Lovelace wrote to Mary Somerville."})
    assert update(index).documents["indexed"] == 1


def test_a_text_that_another_file_holds_stays(corpus: Path, index: Path) -> None:
    write(corpus, {"copy.txt": TEXTS["ada.txt"]})
    update(index)
    report = delete(index, [str(corpus / "ada.txt")])
    (row,) = [r for r in table(index, report.version, "documents") if "Babbage" in r["text"]]
    assert row["sources"] == [str(corpus / "copy.txt")]
    assert delete(index, [row["document_id"]]).documents["removed"] == 1


def test_the_last_document_is_deleted_only_on_purpose(corpus: Path, index: Path) -> None:
    with pytest.raises(UsageError, match="--allow-empty"):
        delete(index, [str(corpus)])
    assert delete(index, [str(corpus)], allow_empty=True).entities == 0


def clustering(report: BuildReport) -> dict[str, object]:
    found: dict[str, object] = report.communities["clustering"]
    return found


def test_an_update_says_how_its_communities_were_found(corpus: Path, index: Path) -> None:
    before = open_current(index).version_id
    write(corpus, {"noether.txt": "Emmy Noether taught in Göttingen."})
    options = {"update": {"max_drift": 1.0}}
    carried = clustering(update(index, options=options))
    assert carried["carried_from"] == before
    assert 0 < float(str(carried["drift"])) < 1
    signals = [
        read_version(index, version).manifest["communities"]["signals"]
        for version in (before, open_current(index).version_id)
    ]
    assert signals[0] == signals[1], "what was measured is taken over"
    assert clustering(update(index, full=True)) == {"carried_from": None, "drift": 0.0}
    write(corpus, {"lise.txt": "Lise Meitner lived in Vienna."})
    assert clustering(update(index, options={"update": {"max_drift": 0.0}}))["carried_from"] is None


def test_vectors_of_texts_as_they_were_written_before_are_not_taken_over(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    with monkeypatch.context() as before:
        for module in (publishing, recipe):
            before.setattr(module, "TEXTS_VERSION", "1")
        first = build(index, [corpus])
    same_documents = update(index)
    assert same_documents.version != first.version, "its vectors are of other texts"
    assert clustering(same_documents)["carried_from"] is None

    promote(index, str(first.version))
    write(corpus, {"noether.txt": "Emmy Noether taught in Göttingen."})
    assert clustering(update(index, options={"update": {"max_drift": 1.0}}))["carried_from"] is None


def test_an_older_ledger_is_taken_over(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    index = tmp_path / "index"
    first = build(index, [Path("corpus")])
    with Ledger(index, create=False) as ledger, ledger.transaction():
        ledger._run("UPDATE sources SET source = shown, file = shown, shown = ''")
        for name in ("roots", "files"):
            ledger._run(f"DELETE FROM {name}")
    with pytest.raises(UsageError, match="does not remember"):
        update(index)
    again = build(index, [Path("corpus")])
    assert (again.version, again.documents["unchanged"]) == (first.version, 4)
    with Ledger(index, create=False) as ledger:
        assert ledger.source_count() == 4
