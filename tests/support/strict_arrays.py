"""A backend on ``array-api-strict``, which has what the array API standard has and nothing else."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np

from hornbeam_kernels.backend import Backend
from support.device_sparse import DeviceSparse

Array = type(array_api_strict.asarray(0))
DType = type(array_api_strict.float32)


def unwrap(value: Any) -> Any:
    """Strict arrays as NumPy's. Raises ``TypeError`` on an array of NumPy's own."""
    if isinstance(value, np.ndarray):
        raise TypeError(f"a NumPy array of shape {value.shape} where a strict array belongs")
    if isinstance(value, DType):
        return np.dtype(str(value).rpartition(".")[2])
    return np.asarray(value) if isinstance(value, Array) else value


class StrictNamespace:
    """``array_api_strict``, and the one function beyond the standard that the kernels may call."""

    def __getattr__(self, name: str) -> Any:
        return getattr(array_api_strict, name)

    @staticmethod
    def argpartition(x: Any, kth: int, axis: int = -1) -> Any:
        """NumPy and CuPy have it; the standard has only the full sort."""
        return array_api_strict.argsort(x, axis=axis)


def strict_backend() -> Backend:
    """Strict arrays, and a sparse module over them; the libraries are the CPU's."""
    sparse = DeviceSparse(array_api_strict.asarray, unwrap)
    return Backend("cpu", StrictNamespace(), sparse, "strict arrays")
