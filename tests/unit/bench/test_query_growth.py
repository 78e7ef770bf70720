"""The benchmark of a question at sizes where it is quick: the index that it makes, what it reports."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hornbeam.retrieve.engines import ENGINES
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import Settings
from support.version_by_hand import HashedWords

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import query as script
    from query_growth.generated import RandomVectors, questions, write_index
    from query_growth.plots import draw
    from query_growth.timing import time_engines
finally:
    sys.path.remove(str(BENCH))

ENTITIES = 60


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    counts = write_index(tmp_path / "version", ENTITIES, HashedWords.dimension)
    assert counts["entities"] == counts["chunks"] == counts["documents"] == ENTITIES
    assert counts["relations"] == 3 * ENTITIES
    return tmp_path / "version"


def test_a_generated_index_is_grounded_and_whole(directory: Path) -> None:
    kb = KnowledgeBase.open(directory, HashedWords())
    for entity in range(ENTITIES):
        for chunk, (start, end) in zip(kb.mentions.of(entity), kb.mentions.spans_of(entity), strict=True):
            assert kb.chunks.text("text", int(chunk))[start:end] == kb.entity_name(entity)
    assert sorted(kb.members.targets.tolist()) == list(range(ENTITIES))


def test_vectors_lie_around_centres_and_come_again() -> None:
    once, again = (RandomVectors(64, 1, 3).encode(["text"] * 50) for _ in range(2))
    assert (once == again).all()
    assert np.linalg.norm(once, axis=1) == pytest.approx(np.ones(50), abs=1e-5)
    assert np.quantile(once @ once.T, 0.7) > 0.3  # two of three pairs have different centres


def test_every_engine_is_timed_by_step(directory: Path, tmp_path: Path) -> None:
    kb = KnowledgeBase.open(directory, HashedWords())
    asked = questions(directory, 4)
    assert len(set(asked)) == 4
    point = time_engines(kb, asked, Settings(), lambda text: len(text.split()))
    assert set(point["engines"]) == set(ENGINES)
    for row in point["engines"].values():
        assert 0 < row["p50_ms"] <= row["p99_ms"]
        assert 0 < row["cpu_p50_ms"] <= row["cpu_p99_ms"]
    assert point["first_evidence"]["p50_ms"] > 0
    assert {"encode", "pagerank", "fuse"} <= set(point["engines"]["mix"]["steps"])
    assert point["p99_ms"] >= point["p50_ms"] > 0
    counts = {"entities": ENTITIES, "relations": 180, "chunks": ENTITIES}
    report = {"machine": "m", "sizes": [counts | point, counts | point]}
    assert "mix" in script.as_text(report)
    pytest.importorskip("matplotlib")
    assert draw(report, tmp_path).read_text("utf-8").startswith("<?xml")
