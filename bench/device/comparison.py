"""Does a device's result agree with the CPU's? Each comparison says what it measured and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """Whether a device's result agrees with the CPU's."""

    agrees: bool
    measured: str
    """What was measured, beside what is allowed."""


def relative_error(tolerance: float) -> Callable[[Any, Any], Comparison]:
    """‖device − cpu‖ / ‖cpu‖ ≤ tolerance in float64; a NaN or another shape never passes."""

    def compare(device: Any, cpu: Any) -> Comparison:
        got, expected = np.asarray(device, dtype=np.float64), np.asarray(cpu, dtype=np.float64)
        if got.shape != expected.shape:
            return Comparison(False, f"shape {got.shape}, not {expected.shape}")
        error = float(np.linalg.norm(got - expected) / max(float(np.linalg.norm(expected)), 1e-30))
        return Comparison(error <= tolerance, f"relative error {error:.1e}, allowed {tolerance:.0e}")

    return compare


def same_labels(share: float) -> Callable[[Any, Any], Comparison]:
    """At least ``share`` of the labels (in normal form) equal."""

    def compare(device: Any, cpu: Any) -> Comparison:
        if device.shape != cpu.shape:
            return Comparison(False, f"shape {device.shape}, not {cpu.shape}")
        equal = float((device == cpu).mean()) if cpu.size else 1.0
        return Comparison(equal >= share, f"{equal:.4%} of labels equal, required {share:.2%}")

    return compare


def no_worse(measure: Callable[[Any], float], slack: float, what: str) -> Callable[[Any, Any], Comparison]:
    """``measure`` of the device's result at least that of the CPU's, less ``slack``; more is better."""

    def compare(device: Any, cpu: Any) -> Comparison:
        got, expected = measure(device), measure(cpu)
        allowed = math.isfinite(got) and got >= expected - slack
        return Comparison(allowed, f"{what} {got:.4f}, cpu {expected:.4f}, slack {slack:.4f}")

    return compare


def neighbours_found(recall: float) -> Callable[[Any, Any], Comparison]:
    """At least ``recall`` of the CPU's neighbours found, by score: duplicates are as good as one another."""

    def compare(device: Any, cpu: Any) -> Comparison:
        found = float((np.asarray(device[0]) >= np.asarray(cpu[0])[:, -1:] - 1e-4).mean())
        return Comparison(found >= recall, f"recall {found:.4f}, required {recall:.3f}")

    return compare
