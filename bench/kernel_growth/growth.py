"""All measurements of all sizes, each in a process of its own and within a time limit; and how they grow."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernel_growth.kernels import KERNELS
from kernel_growth.peers import PEERS
from kernel_growth.planted import write_graph_of_triples
from kernel_growth.worker import GENERATE, NOT_INSTALLED

_WORKER = Path(__file__).with_name("worker.py")

OF_TRIPLES = (
    "leiden",
    "components",
    "pagerank_graph",
    "pagerank",
    "pagerank_batch",
    "paths",
    "paths_hub",
    "networkx_pagerank",
    "igraph_pagerank",
)
"""Measurements that need no vectors: what a graph of a file is measured with."""

Point = dict[str, Any]
"""One kernel at one size: n, and either seconds, peak_mib and more, or one of cut_off, failed, skipped."""


def closure(names: Iterable[str]) -> list[str]:
    """The measurements of these names and those whose results they read, in the order of running."""
    every: dict[str, Any] = KERNELS | PEERS
    wanted: set[str] = set()

    def add(name: str) -> None:
        wanted.add(name)
        for other in every[name].after:
            add(other)

    for name in names:
        add(name)
    return [name for name in every if name in wanted]


def measure_growth(
    sizes: Sequence[int],
    names: Sequence[str],
    *,
    limit: float,
    peer_limit: float,
    work: Path | None,
    tell: Callable[[str], None],
) -> dict[str, list[Point]]:
    """The points of each measurement, by size. A size's inputs lie in a folder of `work` while it lasts."""
    points: dict[str, list[Point]] = {name: [] for name in names}
    for n in sorted(sizes):
        with _folder(str(n), work) as folder:
            start = time.perf_counter()
            made = _in_process([GENERATE, str(folder), str(n)], None)
            if "failed" in made:
                raise RuntimeError(f"no graph of {n} entities: {made['failed']}")
            tell(f"{n:>9,}  planted graph written in {time.perf_counter() - start:.1f} s")
            _measure_all(n, folder, points, limit, peer_limit, tell)
    return points


def measure_triples(
    file: Path,
    names: Sequence[str],
    *,
    limit: float,
    peer_limit: float,
    work: Path | None,
    tell: Callable[[str], None],
) -> dict[str, list[Point]]:
    """The point of each measurement that needs triples alone, on a graph of a file."""
    points: dict[str, list[Point]] = {name: [] for name in names if name in OF_TRIPLES}
    with _folder(file.stem, work) as folder:
        n = write_graph_of_triples(folder, file)
        _measure_all(n, folder, points, limit, peer_limit, tell)
    return points


@contextmanager
def _folder(name: str, work: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f"hornbeam-bench-{name}-", dir=work))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _measure_all(
    n: int,
    folder: Path,
    points: dict[str, list[Point]],
    limit: float,
    peer_limit: float,
    tell: Callable[[str], None],
) -> None:
    for name in points:
        point = {"n": n} | _one(name, folder, points, peer_limit if name in PEERS else limit)
        points[name].append(point)
        tell(f"{n:>9,}  {name:22} {outcome(point)}")


def _one(name: str, folder: Path, points: dict[str, list[Point]], limit: float) -> Point:
    if (smaller := next((p for p in points[name] if "cut_off" in p), None)) is not None:
        return {"skipped": f"cut off at {smaller['n']} entities"}
    for other in (KERNELS | PEERS)[name].after:
        if "seconds" not in points[other][-1]:
            return {"skipped": f"needs {other}, which gave no result"}
    return _in_process([name, str(folder)], limit)


def _in_process(arguments: list[str], limit: float | None) -> Point:
    # A session of its own, so that a measurement that is cut off leaves no child behind.
    child = subprocess.Popen(
        [sys.executable, str(_WORKER), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return {"cut_off": True, "limit_seconds": limit}
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    last = (errors.strip().splitlines() or [f"exit code {child.returncode}, nothing said"])[-1]
    if child.returncode == NOT_INSTALLED:
        return {"skipped": last}
    if child.returncode:
        return {"failed": last}
    return dict(json.loads(output)) if output else {}


def outcome(point: Point) -> str:
    """A point in words."""
    if point.get("cut_off"):
        return f"cut off after {point['limit_seconds']:g} s"
    for state in ("failed", "skipped"):
        if state in point:
            return f"{state}: {point[state]}"
    told = [f"{seconds_in_words(point['seconds']):>9}", f"{point['peak_mib']:,.0f} MiB"]
    for key in ("coverage", "recall_at_10", "times_faster_than_one_after_another", "p95_ms"):
        if key in point:
            told.append(f"{key.replace('_', ' ')} {point[key]:.3g}")
    return ", ".join(told)


def seconds_in_words(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def exponent(points: Sequence[Point]) -> float | None:
    """The slope of log seconds over log n by least squares; None with fewer than two sizes measured."""
    measured = [(math.log(p["n"]), math.log(p["seconds"])) for p in points if "seconds" in p]
    if len(measured) < 2:
        return None
    middle_x = sum(x for x, _ in measured) / len(measured)
    middle_y = sum(y for _, y in measured) / len(measured)
    over = sum((x - middle_x) * (y - middle_y) for x, y in measured)
    return over / sum((x - middle_x) ** 2 for x, _ in measured)


def summary(points: Sequence[Point]) -> dict[str, Any]:
    """Exponents over all sizes and between the two largest, and the largest size that was measured."""
    measured = [p for p in points if "seconds" in p]
    found: dict[str, Any] = {
        "exponent": exponent(measured),
        "exponent_of_the_two_largest": exponent(measured[-2:]),
        "reached": measured[-1]["n"] if measured else None,
    }
    if any("coverage" in p for p in measured):
        found["coverage"] = min(p["coverage"] for p in measured if "coverage" in p)
    return found | {"points": list(points)}
