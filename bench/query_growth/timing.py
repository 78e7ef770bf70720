"""Milliseconds of a question, by engine and by step.

Wall time is what a user waits; beside other work it is mostly the other work. Processor time of the process
is what an idle core would take, nearly: a question runs on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hornbeam.retrieve.engines import ENGINES
from hornbeam.retrieve.evidence import pack_evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.settings import Settings

WARM_UP = 5
#: The engine whose evidence is packed.
_PACKED = "mix"


def time_engines(
    kb: KnowledgeBase, asked: Sequence[str], settings: Settings, count_tokens: Callable[[str], int]
) -> dict[str, Any]:
    """p50_ms and p99_ms over all engines' answers, and of each; the engines take turns at every question.

    `first_evidence` is the time from the question to its packed evidence, all routes.
    """
    for question in asked[:WARM_UP]:
        for routes in ENGINES.values():
            search(kb, question, settings.retrieve, routes=routes)
    spent: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    packed: list[dict[str, float]] = []
    for question in asked:
        for engine, routes in ENGINES.items():
            clock, processor = time.perf_counter(), time.process_time()
            result = search(kb, question, settings.retrieve, routes=routes)
            spent[engine].append(result.milliseconds | {"cpu": 1000 * (time.process_time() - processor)})
            if engine == _PACKED:
                pack_evidence(
                    kb, result, token_budget=settings.answer.evidence_tokens, count_tokens=count_tokens
                )
                packed.append(
                    {
                        "total": 1000 * (time.perf_counter() - clock),
                        "cpu": 1000 * (time.process_time() - processor),
                    }
                )
    rows = {engine: _row(laps) for engine, laps in spent.items()}
    every = [laps["total"] for of_engine in spent.values() for laps in of_engine]
    return {
        "p50_ms": _at(every, 50),
        "p99_ms": _at(every, 99),
        "engines": rows,
        "first_evidence": _row(packed),
    }


def _row(laps: list[dict[str, float]]) -> dict[str, Any]:
    steps = dict.fromkeys(step for lap in laps for step in lap if step not in ("total", "cpu"))
    return {
        "p50_ms": _at([lap["total"] for lap in laps], 50),
        "p99_ms": _at([lap["total"] for lap in laps], 99),
        "cpu_p50_ms": _at([lap["cpu"] for lap in laps], 50),
        "cpu_p99_ms": _at([lap["cpu"] for lap in laps], 99),
        "steps": {step: _at([lap.get(step, 0.0) for lap in laps], 50) for step in steps},
    }


def _at(milliseconds: list[float], share: float) -> float:
    return round(float(np.percentile(milliseconds, share)), 3)
