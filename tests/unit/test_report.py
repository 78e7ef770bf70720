"""The reports that people read hold what the JSON holds: nothing that was lost is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hornbeam.report import render_report, render_status

REPORT: dict[str, Any] = {
    "documents": {
        "seen": 4,
        "indexed": 2,
        "unchanged": 1,
        "duplicates": 0,
        "changed": 1,
        "moved": 0,
        "removed": 3,
        "excluded": 0,
        "rejected": [{"path": "papers/[draft].pdf", "reason": "encrypted PDF"}],
    },
    "chunks": {
        "total": 5,
        "done": 3,
        "degraded": 1,
        "failed": 1,
        "reused": 2,
        "reused_from_parent": 1,
        "dropped": 6,
        "reasons": {"model_error": 1, "relations_cut": 1},
        "lost": [
            {
                "chunk_id": "c1",
                "source": "a.txt",
                "start": 0,
                "end": 90,
                "state": "failed",
                "reason": "model_error",
            }
        ],
    },
    "entities": 7,
    "relations": 6,
    "attributes": 5,
    "communities": {
        "levels": 2,
        "leaf": 3,
        "coverage": 1.0,
        "modularity": 0.5,
        "unnamed": [{"community_id": "k9", "reason": "the answer was cut"}],
    },
    "tokens": {"entities": {"calls": 4, "prompt": 100, "cached": 75, "output": 20}},
    "seconds": {"extract": 2.0},
    "tokens_per_second": 10.0,
    "cost": {
        "total": 0.002,
        "per_document": 0.001,
        "per_1000_chunks": None,
        "per_million_tokens": 16.5,
        "energy_kwh": 0.25,
        "currency": "EUR",
    },
    "model_time": {"extract": {"seconds": 40.0, "idle_seconds": 1.0, "idle_share": 0.025}},
    "serving": {
        "enforces": "json schema",
        "servers": [
            {"url": "http://a", "answered": 3, "faults": 0, "last_fault": ""},
            {"url": "http://b", "answered": 1, "faults": 2, "last_fault": "503: overloaded"},
        ],
    },
    "gates": {
        "coverage": {"value": 1.0, "threshold": 1.0, "passed": True},
        "failed_chunks": {"value": 0.2, "threshold": 0.0, "passed": False, "offenders": ["c1"]},
    },
    "version": "v1",
    "proposals": None,
    "promoted": False,
    "unchanged": False,
}


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> str:
    render_report(REPORT, Path("idx"))
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "said",
    [
        "4 seen: 2 indexed, 1 unchanged, 0 duplicates, 1 rejected, 1 changed, 3 removed",
        "papers/[draft].pdf: encrypted PDF",
        "5: 3 done, 1 degraded, 1 failed (2 from earlier runs, 1 under an older schema)",
        "1 chunks: relations_cut",
        "a.txt:0-90: failed (model_error)",
        "community k9: the answer was cut",
        "4 calls, 100 prompt (75% from cache), 20 output",
        "0.002 EUR in all, 0.001 a document, 16.5 for a million tokens",
        "0.25 kWh of the GPUs",
        "2.5% of extract: 1.0 of 40.0 s",
        "6 items of answers that no grammar shaped",
        "servers that enforce no grammar (json schema)",
        "http://b: 2 beside 1 answers, the last: 503: overloaded",
        "1 of 2 passed",
        "failed_chunks: 0.2000, threshold 0.0; c1",
        "v1 (kept, not promoted)",
    ],
)
def test_the_report_says(printed: str, said: str) -> None:
    assert said in printed


def test_a_status_without_a_version_is_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    render_status(
        {
            "index": "idx",
            "version": None,
            "documents": {"indexed": 2, "rejected": []},
            "chunks": {"known": 5},
            "counts": {},
            "communities": {},
            "tokens": {},
            "seconds": {},
            "tokens_per_second": None,
            "cost": {},
            "serving": None,
            "gates": {},
            "model": {},
            "embedder": {},
        }
    )
    assert "version none" in capsys.readouterr().out
