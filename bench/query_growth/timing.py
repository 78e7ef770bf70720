"""Milliseconds of a question, by engine and by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hornbeam.retrieve.engines import ENGINES
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.settings import RetrieveSettings

WARM_UP = 5


def time_engines(kb: KnowledgeBase, asked: Sequence[str], settings: RetrieveSettings) -> dict[str, Any]:
    """p50_ms and p99_ms over all engines' answers, and of each; the engines take turns at every question."""
    for question in asked[:WARM_UP]:
        for routes in ENGINES.values():
            search(kb, question, settings, routes=routes)
    spent: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    for question in asked:
        for engine, routes in ENGINES.items():
            spent[engine].append(search(kb, question, settings, routes=routes).milliseconds)
    rows = {engine: _row(laps) for engine, laps in spent.items()}
    every = [laps["total"] for of_engine in spent.values() for laps in of_engine]
    return {"p50_ms": _at(every, 50), "p99_ms": _at(every, 99), "engines": rows}


def _row(laps: list[dict[str, float]]) -> dict[str, Any]:
    totals = [lap["total"] for lap in laps]
    steps = dict.fromkeys(step for lap in laps for step in lap)
    return {
        "p50_ms": _at(totals, 50),
        "p99_ms": _at(totals, 99),
        "steps": {step: _at([lap.get(step, 0.0) for lap in laps], 50) for step in steps if step != "total"},
    }


def _at(milliseconds: list[float], share: float) -> float:
    return round(float(np.percentile(milliseconds, share)), 3)
