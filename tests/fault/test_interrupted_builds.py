"""`kill -9` at any moment of a build: the next run ends where an undisturbed one would have."""

import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from hornbeam.build import BuildReport
from hornbeam.store import versions
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import open_current
from support.building import build, walker
from support.interrupted_build import (
    ANSWERS_PER_POLL,
    MOMENTS,
    SETTINGS,
    seal_often,
)
from support.invariants import check_invariants
from support.stopping_builds import stop_build

BASE = "Grace Hopper served in the Navy. She wrote the first compiler in Philadelphia."
PLACES = ["Warsaw", "Paris", "Vienna", "London", "Göttingen", "Москва", "北京"]
PEOPLE = ["Marie Curie", "Pierre Curie", "Lise Meitner", "Ada Lovelace", "Emmy Noether", "Лев Толстой"]


@dataclass(frozen=True)
class Undisturbed:
    corpus: Path
    start: Path  # an index that holds the first document only
    before: str  # its version
    after: str  # the version with all documents
    calls: int  # between the two


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    folder = tmp_path_factory.mktemp("undisturbed")
    corpus, start = folder / "corpus", folder / "start"
    corpus.mkdir()
    (corpus / "0.txt").write_text(BASE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Ledger, "seal", Ledger.seal)  # put back at the end
        seal_often()
        before = build(start, [corpus / "0.txt"], model=walker(), settings=SETTINGS)
        chance = random.Random(5)
        for number in range(1, 6):
            sentences = [
                f"{chance.choice(PEOPLE)} met {chance.choice(PEOPLE)} in {chance.choice(PLACES)}."
                for _ in range(5)
            ]
            (corpus / f"{number}.txt").write_text("\n\n".join(sentences), "utf-8")
        whole = folder / "whole"
        shutil.copytree(start, whole)
        model = walker(per_poll=ANSWERS_PER_POLL)
        after = build(whole, [corpus], model=model, settings=SETTINGS)
        assert before.version
        assert after.version
        assert after.promoted
        yield Undisturbed(corpus, start, before.version, after.version, model.calls)


def finish(index: Path, corpus: Path) -> tuple[BuildReport, int]:
    model = walker(per_poll=ANSWERS_PER_POLL)
    report = build(index, [corpus], model=model, settings=SETTINGS)
    return report, model.calls


#: (moment, side of it, which one of them): every stage of a build, and four polls of the model by chance.
KILLS: list[tuple[str | None, str, int]] = [
    ("a document's source is written", "after", 3),
    ("a result is put, not yet committed", "after", 7),
    ("a segment is written", "after", 1),
    ("a segment is renamed", "before", 2),
    ("a segment is renamed", "after", 3),
    ("pointers go in, journal rows out", "after", 9),
    ("staged rows are kept", "before", 1),
    ("staged rows are kept", "after", 1),
    ("a table is written", "after", 3),
    ("communities are found", "after", 1),
    ("community tables are written", "before", 1),
    ("vectors are written", "after", 2),
    ("gates are evaluated", "after", 1),
    ("the version's files are synced", "after", 5),
    ("the version has its name", "before", 1),
    ("the version is promoted", "before", 1),
    ("the version is promoted", "after", 1),
    ("the run is finished", "before", 1),
    *((None, "", number) for number in sorted(random.Random(11).sample(range(1, 10), 4))),
]


def test_every_moment_is_tried() -> None:
    assert {moment for moment, _, _ in KILLS} == {*MOMENTS, None}


@pytest.mark.parametrize(("moment", "when", "number"), KILLS)
def test_a_killed_build_is_continued_to_the_same_version(
    forks: ForkServerContext,
    undisturbed: Undisturbed,
    tmp_path: Path,
    moment: str | None,
    when: str,
    number: int,
) -> None:
    index = tmp_path / "index"
    shutil.copytree(undisturbed.start, index)

    stopped = stop_build(forks, index, undisturbed.corpus, moment, when, number)

    assert stopped.exit_code == -signal.SIGKILL, "the moment did not come"
    current = open_current(index)
    assert current.version_id in (undisturbed.before, undisturbed.after)
    check_invariants(current.directory)

    report, calls = finish(index, undisturbed.corpus)
    assert report.version == undisturbed.after
    assert open_current(index).version_id == undisturbed.after
    check_invariants(index / "versions" / undisturbed.after)
    # At most what was in flight is asked again: of a chunk, the call that was and the one before it.
    assert stopped.calls + calls <= undisturbed.calls + 2 * stopped.peak
    # Nothing half-made is left.
    assert {path.name for path in (index / "versions").iterdir()} == {undisturbed.before, undisturbed.after}


def test_a_build_killed_again_and_again_gets_there(
    forks: ForkServerContext, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    shutil.copytree(undisturbed.start, index)
    calls = 0
    for _ in range(3):
        stopped = stop_build(forks, index, undisturbed.corpus, None, "", 6)
        assert stopped.exit_code == -signal.SIGKILL
        calls += stopped.calls
        assert open_current(index).version_id == undisturbed.before

    report, last_calls = finish(index, undisturbed.corpus)

    assert report.version == undisturbed.after
    assert 0 < last_calls < undisturbed.calls, "every run must get further"
    assert calls + last_calls <= undisturbed.calls + 3 * 2 * SETTINGS.extract.window


@pytest.mark.parametrize("number", [3, 9])
def test_an_interrupt_from_the_keyboard_leaves_a_whole_index(
    forks: ForkServerContext, undisturbed: Undisturbed, tmp_path: Path, number: int
) -> None:
    index = tmp_path / "index"
    shutil.copytree(undisturbed.start, index)

    stopped = stop_build(forks, index, undisturbed.corpus, None, "", number, signal.SIGINT)

    assert stopped.exit_code not in (0, None)
    assert open_current(index).version_id == undisturbed.before
    with Ledger(index, create=False) as ledger:
        assert all(row["calls"] >= 0 for row in ledger.runs.usage().values())
    assert finish(index, undisturbed.corpus)[0].version == undisturbed.after


def test_a_reader_sees_a_whole_version_at_every_moment_of_a_build(
    undisturbed: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    shutil.copytree(undisturbed.start, index)
    seen: list[str] = []
    sync = versions.sync_file

    def read() -> None:
        current = open_current(index)
        if not seen or current.version_id != seen[-1]:
            check_invariants(current.directory)
        seen.append(current.version_id)

    def sync_and_read(path: Path) -> None:
        """Of every file of the new version, and of what CURRENT is replaced by."""
        read()
        sync(path)
        read()

    monkeypatch.setattr(versions, "sync_file", sync_and_read)
    model = walker(per_poll=ANSWERS_PER_POLL, before_poll=read)
    build(index, [undisturbed.corpus], model=model, settings=SETTINGS)
    read()

    assert set(seen[:-1]) == {undisturbed.before}
    assert seen[-1] == undisturbed.after
    assert len(seen) > 50
