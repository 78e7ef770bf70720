"""`kill -9` at moments drawn by chance, of a build and of an update.

A few by default; HORNBEAM_TEST_KILLS=50 tries fifty of each.
"""

import os
import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import open_current
from support.building import build, update, walker
from support.interrupted_build import ANSWERS_PER_POLL, ANY, SETTINGS, seal_often
from support.invariants import check_invariants
from support.stopping_builds import stop_build

KILLS = int(os.environ.get("HORNBEAM_TEST_KILLS", "3"))
CHANCE = random.Random(29)

BEFORE = {
    "hopper.txt": "Grace Hopper served in the Navy.\n\nShe wrote the first compiler in Philadelphia.",
    "curie.txt": "Marie Curie met Pierre Curie in Paris.",
    "meitner.txt": "Lise Meitner met Otto Hahn in Berlin.",
}
AFTER = {
    "hopper.txt": "Grace Hopper served in the Navy.\n\nShe taught in Philadelphia.",
    "curie.txt": "Marie Curie met Pierre Curie in Paris.",
    "lise.txt": "Lise Meitner met Otto Hahn in Berlin.",
    "noether.txt": "Emmy Noether met David Hilbert in Göttingen.\n\nЛев Толстой жил в Москве.",
}


@dataclass(frozen=True)
class Undisturbed:
    corpus: Path
    start: Path  # the index before
    before: str | None  # its version
    after: str  # the version that the work ends with
    calls: int
    moments: int


def write(folder: Path, texts: dict[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")


@pytest.fixture(scope="module", params=["build", "update"])
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, forks: ForkServerContext
) -> Iterator[Undisturbed]:
    folder = tmp_path_factory.mktemp(request.param)
    corpus, start, whole = folder / "corpus", folder / "start", folder / "whole"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Ledger, "seal", Ledger.seal)  # put back at the end
        seal_often()
        before = None
        start.mkdir()
        if request.param == "update":
            write(corpus, BEFORE)
            before = build(start, [corpus], model=walker(), settings=SETTINGS).version
        write(corpus, AFTER)
        shutil.copytree(start, whole)
        # Killed at a moment that never comes: the work is done, and all moments are counted.
        done = stop_build(forks, whole, corpus if before is None else None, ANY, "before", -1)
        assert done.exit_code == 0
        yield Undisturbed(corpus, start, before, open_current(whole).version_id, done.calls, done.moments)


@pytest.mark.parametrize("chance", [CHANCE.random() for _ in range(KILLS)])
def test_work_killed_at_any_moment_ends_with_the_version_of_the_undisturbed(
    forks: ForkServerContext, undisturbed: Undisturbed, tmp_path: Path, chance: float
) -> None:
    index = tmp_path / "index"
    shutil.copytree(undisturbed.start, index)
    number = 1 + int(chance * undisturbed.moments)
    paths = undisturbed.corpus if undisturbed.before is None else None

    stopped = stop_build(forks, index, paths, ANY, "before", number)

    assert stopped.exit_code == -signal.SIGKILL, "the moment did not come"
    versions = {undisturbed.before, undisturbed.after} - {None}
    current = index / "CURRENT"
    assert not current.exists() or current.read_text().strip() in versions

    model = walker(per_poll=ANSWERS_PER_POLL)
    if paths is None and undisturbed.before is not None:
        report = update(index, model=model, settings=SETTINGS)
    else:
        report = build(index, [undisturbed.corpus], model=model, settings=SETTINGS)

    assert report.version == undisturbed.after == open_current(index).version_id
    check_invariants(index / "versions" / undisturbed.after)
    # Asked again: at most what was in flight; of a chunk, the call that was and the one before it.
    assert stopped.calls + model.calls <= undisturbed.calls + 2 * max(stopped.peak, 1)
    assert {path.name for path in (index / "versions").iterdir()} == versions
