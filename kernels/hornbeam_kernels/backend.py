"""The only place that knows which array library and device the kernels run on.

This version runs every kernel on the CPU with NumPy and SciPy. The array code is written against the
namespace ``Backend.xp`` and the sparse module ``Backend.sparse`` and keeps to what NumPy and CuPy share.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = Any
"""A dense array of the backend's namespace (there is no common static type)."""
Sparse: TypeAlias = Any
"""A CSR matrix of the backend's sparse module."""

BLOCK_CAP = 4096
"""Rows of a block at most, so that block shapes, and with them the last bits of a product, do not follow the
memory that happens to be free."""


class BackendUnavailableError(RuntimeError):
    """The device that was asked for cannot run the kernels; the message says why and what to do."""


@dataclass(frozen=True)
class Backend:
    """An array namespace with its sparse module."""

    name: str
    """``"cpu"``."""
    xp: Any
    """Dense array namespace: ``numpy``."""
    sparse: Any
    """Module with ``csr_matrix``: ``scipy.sparse``."""
    reason: str
    """Why this backend was taken, for people and for the manifest."""

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """``values`` on this backend's device, copied only where that is needed."""
        return self.xp.asarray(values, dtype=dtype)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """``array`` on the host, copied only where that is needed."""
        return np.asarray(array)


def select_backend(device: Literal["auto", "cpu", "cuda"] = "auto") -> Backend:
    """The backend for ``device``, with the reason for the choice in ``Backend.reason``.

    Raises ``BackendUnavailableError`` for ``"cuda"`` (these kernels have no CUDA backend in this version) and
    ``ValueError`` for any other word.
    """
    if device == "cuda":
        raise BackendUnavailableError(
            f'device = "cuda" asked for, but the kernels run on the CPU in this version ({_cuda_state()}); '
            'use device = "auto" or "cpu"'
        )
    if device == "auto":
        return _cpu(_cuda_state())
    if device == "cpu":
        return _cpu("cpu asked for")
    raise ValueError(f"device must be auto, cpu or cuda, not {device!r}")


def _cpu(reason: str) -> Backend:
    import scipy.sparse

    return Backend(name="cpu", xp=np, sparse=scipy.sparse, reason=reason)


def _cuda_state() -> str:
    # Device files are looked at rather than a CUDA library: loading one costs seconds and may not be
    # installed.
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "no CUDA device: CUDA_VISIBLE_DEVICES hides them all"
    devices = sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*"))
    if not devices:
        return "no CUDA device: no /dev/nvidia* on this machine"
    return f"{len(devices)} CUDA device(s) visible; these kernels run on the CPU in this version"


def block_rows(bytes_per_row: int, memory_limit: int | None = None) -> int:
    """How many rows of ``bytes_per_row`` bytes fit the budget; at least 1.

    ``memory_limit`` is the budget in bytes; without one it is a quarter of the memory that is free now.
    """
    if memory_limit is None:
        import psutil

        memory_limit = psutil.virtual_memory().available // 4
    if memory_limit <= 0:
        raise ValueError(f"memory_limit must be positive, not {memory_limit}")
    return max(1, memory_limit // max(1, bytes_per_row))


def row_blocks(n: int, bytes_per_row: int, memory_limit: int | None = None) -> list[slice]:
    """Slices that cover rows 0..n−1 in blocks within the budget, none above ``BLOCK_CAP`` rows."""
    step = min(BLOCK_CAP, block_rows(bytes_per_row, memory_limit))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
