import json
import multiprocessing
import os
import signal
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from hornbeam.errors import StoreError
from hornbeam.store.lock import Holder, write_lock


def _hold(index: Path, ready: Connection) -> None:
    with write_lock(index):
        ready.send(os.getpid())
        signal.pause()


def _holder(index: Path) -> Holder:
    return Holder(**json.loads((index / ".lock").read_text("utf-8")))


def test_only_one_process_writes_an_index_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(tmp_path, theirs))
    process.start()
    pid = ours.recv()

    with pytest.raises(StoreError, match=rf"pid {pid}, '.*', started 20\d\d-"), write_lock(tmp_path):
        pass

    process.kill()
    process.join()
    with write_lock(tmp_path) as left:
        assert left is not None
        assert left.pid == pid
        assert left.runs() is False
    with write_lock(tmp_path) as left:
        assert left is None, "the last one ended in order"


def test_the_lock_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with write_lock(tmp_path / "index"), pytest.raises(StoreError), write_lock(tmp_path / "index"):
            pass


def test_an_error_inside_lets_go_in_order(tmp_path: Path) -> None:
    with pytest.raises(KeyError), write_lock(tmp_path):
        raise KeyError
    with write_lock(tmp_path) as left:
        assert left is None


def test_a_pid_that_another_process_has_now_is_told_from_the_holder(tmp_path: Path) -> None:
    with write_lock(tmp_path):
        me = _holder(tmp_path)
    assert replace(me, started=me.started - 3600).runs() is False
    assert (me.pid, me.runs()) == (os.getpid(), True)
    assert replace(me, host="elsewhere").runs() is None


def test_a_lock_that_only_a_child_of_its_holder_keeps_says_so(tmp_path: Path) -> None:
    with write_lock(tmp_path):
        gone = replace(_holder(tmp_path), started=0.0)
        (tmp_path / ".lock").write_text(json.dumps(asdict(gone)), "utf-8")
        with pytest.raises(StoreError, match="has ended, but one that it started"), write_lock(tmp_path):
            pass


def test_what_another_machine_left_is_told(tmp_path: Path) -> None:
    elsewhere = Holder(7, 0.0, "elsewhere", "hornbeam index x")
    (tmp_path / ".lock").write_text(json.dumps(asdict(elsewhere)), "utf-8")
    with write_lock(tmp_path) as left:
        assert left == elsewhere
        assert "pid 7 on elsewhere" in str(left)


def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot be written"), write_lock(tmp_path / "file" / "index"):
        pass
