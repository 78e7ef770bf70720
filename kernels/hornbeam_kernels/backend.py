"""The only place that knows which array library and device the kernels run on.

The array code is written against the namespace ``Backend.xp`` and the sparse module ``Backend.sparse`` and
keeps to what NumPy and CuPy share: on the CPU these are ``numpy`` and ``scipy.sparse``, on a CUDA device
``cupy`` and ``cupyx.scipy.sparse``. What a library does better than array code (K-means, Leiden, …) is in
``cuda_libraries``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
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
CUPY_REQUIREMENT = "cupy-cuda13x>=14.0.1,!=14.1.0"
"""What ``pip install`` needs for the CUDA backend (the extra ``rapids`` names it too)."""


class BackendUnavailableError(RuntimeError):
    """The device that was asked for cannot run the kernels; the message says why and what to do."""


@dataclass(frozen=True)
class Backend:
    """An array namespace with its sparse module."""

    name: str
    """``"cpu"`` or ``"cuda"``."""
    xp: Any
    """Dense array namespace: ``numpy`` or ``cupy``."""
    sparse: Any
    """Module with ``csr_matrix``: ``scipy.sparse`` or ``cupyx.scipy.sparse``."""
    reason: str
    """Why this backend was taken, for people and for the manifest."""

    @property
    def on_device(self) -> bool:
        """Whether arrays live on a CUDA device, where the calls of ``cuda_libraries`` replace the CPU's."""
        return self.name == "cuda"

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """``values`` on this backend's device, copied only where that is needed."""
        return self.xp.asarray(values, dtype=dtype)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """``array`` on the host, copied only where that is needed.

        From a CUDA device by ``cupy.asnumpy``, which waits for the kernels that write ``array``; CuPy refuses
        to turn an array into a NumPy one by accident.
        """
        host: NDArray[Any] = self.xp.asnumpy(array) if self.on_device else np.asarray(array)
        return host

    def free_memory(self) -> int:
        """Bytes free now where this backend's arrays live: the host's, or the device's.

        On a device also what CuPy's pool holds and has handed to nobody: the driver counts that as taken.
        """
        if self.on_device:
            free, _total = self.xp.cuda.runtime.memGetInfo()
            return int(free) + int(self.xp.get_default_memory_pool().free_bytes())
        return _free_host_memory()


def select_backend(device: Literal["auto", "cpu", "cuda"] = "auto") -> Backend:
    """The backend for ``device``, with the reason for the choice in ``Backend.reason``.

    ``"auto"`` takes CUDA where a device file is there, no ``CUDA_VISIBLE_DEVICES`` hides it, CuPy can use it
    and every part has its library (``cuda_libraries``), and the CPU otherwise; CuPy is not imported where no
    device file is there. ``"cuda"`` asks for CuPy alone: a part whose library is missing says so when it is
    called. Raises
    ``BackendUnavailableError`` for ``"cuda"`` where it cannot be had (the message says what is missing) and
    ``ValueError`` for any other word.
    """
    if device == "cpu":
        return _cpu("cpu asked for")
    if device not in ("auto", "cuda"):
        raise ValueError(f"device must be auto, cpu or cuda, not {device!r}")
    missing = _missing_for_cuda()
    if device == "cuda":
        if missing is None:
            return _cuda()
        raise BackendUnavailableError(
            f'device = "cuda" asked for, but {missing}; or use device = "auto" or "cpu"'
        )
    missing = missing or _missing_libraries()
    return _cuda() if missing is None else _cpu(missing)


def _cpu(reason: str) -> Backend:
    import scipy.sparse

    return Backend(name="cpu", xp=np, sparse=scipy.sparse, reason=reason)


def _cuda() -> Backend:
    import cupy
    import cupyx.scipy.sparse

    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["name"]
    reason = f"CUDA device {name.decode(errors='replace')}, CuPy {cupy.__version__}"
    return Backend(name="cuda", xp=cupy, sparse=cupyx.scipy.sparse, reason=reason)


def _missing_for_cuda() -> str | None:
    # Device files are looked at first: loading a CUDA library costs seconds, in vain where there is no
    # device.
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "no CUDA device: CUDA_VISIBLE_DEVICES hides them all (unset it to use them)"
    devices = _device_files()
    if not devices:
        return "no CUDA device: no /dev/nvidia* or /dev/dxg on this machine"
    try:
        import cupy
    except ImportError as error:
        return (
            f"{devices} CUDA device file(s) but no CuPy ({error}): pip install '{CUPY_REQUIREMENT}' "
            "(or the extra rapids)"
        )
    if not cupy.cuda.is_available():
        return (
            f"{devices} CUDA device file(s), but CuPy {cupy.__version__} can use none: the driver may be too "
            "old for CUDA 13, or this user may not open the device (nvidia-smi tells)"
        )
    return None


def _missing_libraries() -> str | None:
    # "auto" must not begin on the device what it cannot end there.
    from hornbeam_kernels.cuda_libraries import chosen_libraries

    missing = [f"{part}: {found[6:]}" for part, found in chosen_libraries().items() if found[:6] == "none: "]
    return "a CUDA device, but not all libraries: " + "; ".join(missing) if missing else None


def _device_files() -> int:
    # /dev/dxg is the device under the Windows Subsystem for Linux.
    found = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("dxg")]
    return len(found)


def _free_host_memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


def block_rows(bytes_per_row: int, memory_limit: int | None = None, backend: Backend | None = None) -> int:
    """How many rows of ``bytes_per_row`` bytes fit the budget; at least 1.

    ``memory_limit`` is the budget in bytes; without one it is a quarter of the memory that is free now: of
    the host's, or, for a ``backend`` on a CUDA device, of the device's.
    """
    if memory_limit is None:
        memory_limit = max(1, (backend.free_memory() if backend else _free_host_memory()) // 4)
    if memory_limit <= 0:
        raise ValueError(f"memory_limit must be positive, not {memory_limit}")
    return max(1, memory_limit // max(1, bytes_per_row))


def row_blocks(
    n: int, bytes_per_row: int, memory_limit: int | None = None, backend: Backend | None = None
) -> list[slice]:
    """Slices that cover rows 0..n−1 in blocks within the budget, none above ``BLOCK_CAP`` rows."""
    step = min(BLOCK_CAP, block_rows(bytes_per_row, memory_limit, backend))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and OpenMP on one thread inside: the same bits everywhere, where that is not the bulk."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
