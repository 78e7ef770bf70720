import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from hornbeam.errors import StoreError
from hornbeam.store.lock import write_lock


def _hold(index: Path, ready: Connection) -> None:
    with write_lock(index):
        ready.send(os.getpid())
        signal.pause()


def test_only_one_process_writes_an_index_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(tmp_path, theirs))
    process.start()
    pid = ours.recv()

    with pytest.raises(StoreError, match=f"pid {pid}"), write_lock(tmp_path):
        pass

    process.kill()
    process.join()
    with write_lock(tmp_path):
        pass


def test_the_lock_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with write_lock(tmp_path / "index"), pytest.raises(StoreError), write_lock(tmp_path / "index"):
            pass


def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot be written"), write_lock(tmp_path / "file" / "index"):
        pass
