"""kill -9 with the real model: other batches after the stop, the same version in the end.

HORNBEAM_TEST_MODEL_KILLS=10 kills one build ten times.
"""

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
#: Of one build.
KILLS = int(os.environ.get("HORNBEAM_TEST_MODEL_KILLS", "1"))


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


def kill_at(command: list[str], index: Path, results: int) -> int:
    """Start the build, kill it as soon as so many results are durable; how many there are then."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    while results_in(index) < results:
        assert child.poll() is None, "it ended before it could be killed"
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    return results_in(index)


def test_a_build_that_is_killed_ends_with_the_version_of_one_that_is_not(
    indexed: Indexed, hornbeam: list[str], tmp_path: Path
) -> None:
    """One after the other, at moments that are spread over the chunks."""
    index = tmp_path / "index"
    command = [*hornbeam, "index", str(indexed.corpus), "--index", str(index), "--json"]
    chunks = indexed.report["chunks"]["total"]
    kept = 0
    for number in range(1, KILLS + 1):
        # A poll may have brought more than was waited for.
        wanted = max(kept + 1, chunks * number // (KILLS + 2))
        if wanted < chunks:
            kept = kill_at(command, index, wanted)

    resumed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)

    assert resumed.returncode == 1, resumed.stderr  # one file cannot be read
    report = json.loads(resumed.stdout)
    assert report["chunks"]["reused"] == kept < chunks
    assert report["tokens"]["entities"]["calls"] <= chunks - kept
    assert open_current(index).version_id == indexed.version.version_id
