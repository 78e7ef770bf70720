"""One kernel on both backends: compared, and the device timed beside its memory's speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from device.checks import Check
from device.report import Row
from hornbeam_kernels import cuda_libraries
from hornbeam_kernels.backend import Backend

REPEATS = 5
"""Timed runs of a kernel; the median counts."""


def run_check(check: Check, device: Backend, cpu: Backend, bandwidth: float) -> Row:
    """Both sides of one kernel, compared and timed. A kernel that raises on the device fails."""
    if device.on_device and check.part:
        library = cuda_libraries.chosen_libraries()[check.part]
        if library.startswith("none"):
            return Row(check.name, "skip", library)
    try:
        before = time.perf_counter()
        expected = check.run(cpu)
        cpu_seconds = time.perf_counter() - before
    except ImportError as error:
        return Row(check.name, "skip", f"the CPU's side lacks a package: {error}")
    try:
        found = check.run(device)
        comparison = check.compare(found, expected)
        seconds = float(np.median([timed(lambda: check.run(device), device) for _ in range(REPEATS)]))
    except Exception as error:  # noqa: BLE001 - a failed check, and the next one runs
        words = str(error).strip().splitlines() or [""]
        return Row(check.name, "fail", f"{type(error).__name__}: {words[0][:200]}", cpu_seconds=cpu_seconds)
    return Row(
        check.name,
        "pass" if comparison.agrees else "fail",
        comparison.measured,
        seconds,
        check.bytes_moved / bandwidth,
        cpu_seconds,
    )


def timed(call: Callable[[], Any], backend: Backend) -> float:
    """Seconds of one call: between two CUDA events on a device, by the clock on the CPU."""
    if not backend.on_device:
        before = time.perf_counter()
        call()
        return time.perf_counter() - before
    cuda = backend.xp.cuda
    start, end = cuda.Event(), cuda.Event()
    cuda.Device().synchronize()
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(cuda.get_elapsed_time(start, end)) / 1000.0


def copy_bandwidth(backend: Backend) -> float:
    """Bytes a second, read and written, of the best of a few large copies in the backend's memory."""
    xp = backend.xp
    size = min(1 << 30 if backend.on_device else 1 << 26, backend.free_memory() // 8)
    source = xp.ones(size // 4, dtype=xp.float32)
    target = xp.zeros_like(source)

    def copy() -> None:
        target[...] = source

    copy()
    return 2.0 * source.nbytes / min(timed(copy, backend) for _ in range(REPEATS))
