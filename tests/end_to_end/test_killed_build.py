"""kill -9 with the real model: other batches after the stop, the same version in the end."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from end_to_end.conftest import Indexed
from hornbeam.store.versions import open_current

pytestmark = pytest.mark.model

PATIENCE_S = 600


def results_in(index: Path) -> int:
    """Extractions that are durable now."""
    if not (index / "ledger.sqlite").is_file():
        return 0
    try:
        with sqlite3.connect(f"file:{index}/ledger.sqlite?mode=ro", uri=True) as connection:
            count = "SELECT count(*) FROM journal WHERE kind = 'extraction'"
            return int(connection.execute(count).fetchone()[0])
    except sqlite3.OperationalError:  # its tables are not made yet
        return 0


def test_a_build_that_is_killed_ends_with_the_version_of_one_that_is_not(
    indexed: Indexed, hornbeam: list[str], tmp_path: Path
) -> None:
    index = tmp_path / "index"
    command = [*hornbeam, "index", str(indexed.corpus), "--index", str(index), "--json"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    chunks = indexed.report["chunks"]["total"]
    began = time.monotonic()
    while results_in(index) < chunks // 3:
        assert child.poll() is None, "it ended before it could be killed"
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = results_in(index)

    resumed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)

    assert resumed.returncode == 1, resumed.stderr  # one file cannot be read
    report = json.loads(resumed.stdout)
    assert report["chunks"]["reused"] == kept < chunks
    assert report["tokens"]["entities"]["calls"] <= chunks - kept
    assert open_current(index).version_id == indexed.version.version_id
