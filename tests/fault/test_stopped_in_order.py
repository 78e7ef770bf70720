"""Ctrl-C: what is in flight is finished and kept, and the next run asks for nothing twice."""

import signal
from pathlib import Path

import pytest

from hornbeam.build import Build
from hornbeam.errors import Interrupted
from hornbeam.progress import Progress
from hornbeam.schema import load_schema
from hornbeam.stopping import StopRequest, stop_on_signal
from hornbeam.store.ledger import Ledger
from support.building import build, walker
from support.interrupted_build import SETTINGS
from support.version_by_hand import HashedWords


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_text(f"Grace Hopper met Ada Byron {number} in Paris.", "utf-8")
    return folder


@pytest.mark.parametrize("polls", [0, 3, 12])
def test_a_stopped_build_keeps_all_it_asked_for(corpus: Path, tmp_path: Path, polls: int) -> None:
    undisturbed = walker(per_poll=1)
    whole = build(tmp_path / "whole", [corpus], model=undisturbed, settings=SETTINGS)
    stop, seen = StopRequest(requested=polls == 0), 0

    def before_poll() -> None:
        nonlocal seen
        seen += 1
        stop.requested = seen >= polls

    model = walker(per_poll=1, before_poll=before_poll)
    stopped = Build(
        tmp_path / "index",
        SETTINGS,
        load_schema("general"),
        model,
        HashedWords(),
        Progress(quiet=True),
        stop,
    )
    with pytest.raises(Interrupted, match="run the same command again") as caught:
        stopped.run([corpus])
    assert caught.value.exit_code == 1
    assert model.in_flight == 0

    rest = walker(per_poll=1)
    report = build(tmp_path / "index", [corpus], model=rest, settings=SETTINGS)
    assert report.version == whole.version
    assert model.calls + rest.calls == undisturbed.calls, "nothing is asked twice"
    with Ledger(tmp_path / "index", create=False) as ledger:
        assert sum(row["calls"] for row in ledger.runs.usage().values()) == undisturbed.calls


def test_the_first_signal_asks_and_the_second_stops(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_signal() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(Interrupted):
            stop.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before
    assert "Ctrl-C again" in capfd.readouterr().err
