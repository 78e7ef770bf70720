"""One budget of device memory for everything that the kernels use, and blocks that shrink where it ends.

CuPy, cuML and pylibcugraph take from one pool with one limit: RMM's where it is installed (CuPy is told to
use it), else CuPy's own. faiss for GPUs keeps a scratch space of its own, a tenth of what is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from hornbeam_kernels.backend import BLOCK_CAP, Backend, block_rows

FAISS_SHARE = 0.1
"""Of what is free, for faiss's scratch space."""
KEPT_BACK = 0.1
"""Of what no model holds: CUDA contexts, modules, what libraries take past any pool."""


def device_budget(total: int, model_share: float) -> int:
    """Bytes for the kernels on a device of ``total`` bytes of which an engine holds ``model_share``.

    (1 − model_share) · (1 − KEPT_BACK) · total. Raises ``ValueError`` unless 0 ≤ model_share ≤ 1.
    """
    if not 0.0 <= model_share <= 1.0:
        raise ValueError(f"model_share must be within 0 and 1, not {model_share}")
    return int(total * (1.0 - model_share) * (1.0 - KEPT_BACK))


@contextmanager
def within_budget(backend: Backend, budget: int | None) -> Iterator[None]:
    """Let the kernels inside take ``budget`` bytes of the device at most, and give back at the end what they
    held. ``None``: no limit, but what was held is given back. Nothing on the CPU."""
    if not backend.on_device:
        yield
        return
    if budget is not None:
        _limit(backend, budget)
    try:
        yield
    finally:
        release(backend)
        if budget is not None:
            _limit(backend, 0)


def release(backend: Backend) -> None:
    """Give back to the driver what the pools hold and nobody uses."""
    if backend.on_device:
        backend.xp.get_default_memory_pool().free_all_blocks()
        backend.xp.get_default_pinned_memory_pool().free_all_blocks()


def _limit(backend: Backend, budget: int) -> None:
    """``budget`` bytes for all pools; 0: as before."""
    if find_spec("rmm") is None:
        backend.xp.get_default_memory_pool().set_limit(size=budget)
        return
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    pool: Any = rmm.mr.CudaMemoryResource()
    if budget:
        pool = rmm.mr.LimitingResourceAdaptor(pool, budget)
    rmm.mr.set_current_device_resource(pool)
    # Both take from one: CuPy's own pool would have a limit of its own beside it.
    backend.xp.cuda.set_allocator(rmm_cupy_allocator if budget else None)


class RowBlocks:
    """Blocks of the rows 0..n−1 that are halved where memory ends::

        blocks = RowBlocks(n, bytes_per_row, memory_limit, backend)
        for rows in blocks:
            with blocks.halving():
                out[rows] = f(x[rows])

    What is inside is done again, with half the rows, when it runs out of memory: it must write its results
    last, or over what it wrote before. A block of one row that does not fit raises. Block shapes, and with
    them the last bits of products, then follow the memory.
    """

    def __init__(
        self, n: int, bytes_per_row: int, memory_limit: int | None = None, backend: Backend | None = None
    ) -> None:
        self._n = n
        self._step = min(BLOCK_CAP, block_rows(bytes_per_row, memory_limit, backend))
        self._backend = backend
        self._start = 0
        self._size = 0
        self.halved = 0

    def __iter__(self) -> Iterator[slice]:
        self._start = 0
        while self._start < self._n:
            self._size = min(self._step, self._n - self._start)
            before = self.halved
            yield slice(self._start, self._start + self._size)
            if self.halved == before:
                self._start += self._size

    @contextmanager
    def halving(self) -> Iterator[None]:
        """The work on one block."""
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error) or self._size <= 1:
                raise
            self._step = self._size // 2
            self.halved += 1
            if self._backend is not None:
                release(self._backend)


def is_out_of_memory(error: BaseException) -> bool:
    """Of the host, of CuPy (a ``MemoryError``), of RMM or of CUDA itself."""
    text = str(error)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("out_of_memory" in text or "out of memory" in text)
    )
