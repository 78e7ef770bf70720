"""The benchmarks of an index and of consolidation at sizes where they are quick."""

from __future__ import annotations

import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import consolidation
    import index as script
finally:
    sys.path.remove(str(BENCH))


def test_an_index_is_built_followed_audited_and_opened(tmp_path: Path) -> None:
    found = script.measure(24, tmp_path)

    assert found["chunks"] >= 24
    assert found["entities"] > 0
    assert found["audit_sound"]
    assert min(found["update_s"], found["delete_s"]) > 0
    assert 0 < found["open_s"] < found["build_s"]


def test_made_up_mentions_are_consolidated(tmp_path: Path) -> None:
    found = consolidation.measure(2000, 512, tmp_path)

    assert found["mentions"] == 2000
    assert 0 < found["entities"] == found["names"] <= 400
    assert 0 < found["relations"] <= 400
