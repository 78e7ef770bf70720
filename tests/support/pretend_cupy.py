"""CuPy without a device: NumPy's arithmetic behind CuPy's signatures and its rules about the host's arrays.

A kernel that runs on ``pretend_backend()`` calls nothing that CuPy lacks, passes no argument that CuPy does
not take, and mixes no host array with a device array. Every call is bound to the signature of the installed
CuPy, which imports without a device; what only a device can show (values, speed) is not shown here.
"""

from __future__ import annotations

import inspect
import time
import types
from typing import Any

import cupy
import cupyx.scipy.sparse
import numpy as np

from hornbeam_kernels.backend import Backend
from support.device_sparse import DeviceSparse

UFUNC_KEYWORDS = {"out", "dtype", "casting", "where"}
FROM_HOST = {"array", "asarray"}
"""The functions that carry a host array over; all others refuse it."""


class HostArrayError(TypeError):
    """A host array where a device array belongs, or the other way round."""


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for ``cupy.ndarray``."""

    def __init__(self, host: np.ndarray) -> None:
        self.host = host

    def __array__(self, *arguments: Any, **keywords: Any) -> np.ndarray:
        raise HostArrayError("implicit conversion of a device array to a NumPy array; use Backend.to_numpy")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method != "__call__":
            raise TypeError(f"{ufunc.__name__}.{method} does not carry over to CuPy")
        check_call(ufunc.__name__, getattr(cupy, ufunc.__name__), inputs, keywords)
        return wrap(ufunc(*map(unwrap, inputs), **{name: unwrap(value) for name, value in keywords.items()}))

    def __array_function__(self, function: Any, kinds: Any, arguments: Any, keywords: Any) -> Any:
        return getattr(PretendCupy(), function.__name__)(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(cupy.ndarray, name):
            raise AttributeError(f"cupy.ndarray has no {name}")
        value = getattr(self.host, name)
        if not callable(value):
            return wrap(value)
        return lambda *arguments, **keywords: wrap(value(*map(unwrap, arguments), **keywords))

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.host[unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[unwrap(key)] = unwrap(value)

    def __len__(self) -> int:
        return len(self.host)

    def __int__(self) -> int:
        return int(self.host)

    def __float__(self) -> float:
        return float(self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def get(self) -> np.ndarray:
        """The array on the host."""
        return self.host.copy()


def wrap(value: Any) -> Any:
    """NumPy's arrays as device arrays; a reduction to one number stays on the device, as CuPy's does."""
    if isinstance(value, tuple) and not isinstance(value, DeviceArray):
        return tuple(map(wrap, value)) if any(isinstance(part, np.ndarray) for part in value) else value
    return DeviceArray(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def unwrap(value: Any) -> Any:
    """Device arrays as NumPy's. Raises ``HostArrayError`` on an array of the host."""
    if isinstance(value, DeviceArray):
        return value.host
    if isinstance(value, np.ndarray):
        raise HostArrayError(f"a host array of shape {value.shape} where a device array belongs")
    if isinstance(value, tuple | list):
        return type(value)(map(unwrap, value))
    return value


def check_call(name: str, real: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raises ``TypeError`` where ``real``, CuPy's function, does not take these arguments."""
    if isinstance(real, cupy.ufunc):
        unknown = keywords.keys() - UFUNC_KEYWORDS
        if unknown:
            raise TypeError(f"cupy.{name} takes no {', '.join(sorted(unknown))}")
        return
    try:
        inspect.signature(real).bind(*arguments, **keywords)
    except TypeError as error:
        raise TypeError(f"cupy.{name}: {error}") from None
    if name == "repeat" and isinstance(
        arguments[1] if len(arguments) > 1 else keywords["repeats"], DeviceArray
    ):
        raise TypeError("cupy.repeat takes no array of counts")
    if name == "lexsort" and not isinstance(arguments[0], DeviceArray):
        raise TypeError("cupy.lexsort takes one stacked array of keys")


class PretendCupy:
    """Stands for the module ``cupy`` (or one inside it)."""

    def __init__(self, real: types.ModuleType = cupy, numpy: types.ModuleType = np) -> None:
        self._real, self._numpy = real, numpy

    def __getattr__(self, name: str) -> Any:
        if name == "random":
            raise AssertionError("random numbers of NumPy and CuPy differ: draw them on the host")
        real = getattr(self._real, name)  # AttributeError: CuPy has no such thing
        mine = getattr(self._numpy, name)
        if isinstance(real, types.ModuleType):
            return PretendCupy(real, mine)
        if isinstance(real, type) or not callable(real):
            return mine

        def call(*arguments: Any, **keywords: Any) -> Any:
            check_call(name, real, arguments, keywords)
            if name in FROM_HOST and not isinstance(arguments[0], DeviceArray):
                array = mine(*arguments, **keywords)
                if array.dtype.kind not in "biufc":
                    raise TypeError(f"CuPy has no arrays of {array.dtype}")
                return DeviceArray(array.copy())
            given = {keyword: unwrap(value) for keyword, value in keywords.items()}
            return wrap(mine(*map(unwrap, arguments), **given))

        return call

    @staticmethod
    def asnumpy(array: Any) -> np.ndarray:
        """``cupy.asnumpy``: host arrays pass."""
        return array.get() if isinstance(array, DeviceArray) else np.asarray(array)

    class cuda:
        """``cupy.cuda``, as far as a memory budget and a stop-watch ask."""

        class runtime:
            """A gibibyte free of two."""

            memGetInfo = staticmethod(lambda: (1 << 30, 2 << 30))

        class Event:
            """The clock when it was recorded."""

            def record(self) -> None:
                self.at = time.perf_counter()

            def synchronize(self) -> None:
                assert self.at

        class Device:
            """Always done."""

            def synchronize(self) -> None:
                pass

        @staticmethod
        def get_elapsed_time(start: Any, end: Any) -> float:
            """Milliseconds."""
            return 1000.0 * (end.at - start.at)

    @staticmethod
    def get_default_memory_pool() -> Any:
        """A pool that holds nothing."""
        return types.SimpleNamespace(
            free_bytes=lambda: 0, free_all_blocks=lambda: None, set_limit=lambda size: None
        )

    @staticmethod
    def get_default_pinned_memory_pool() -> Any:
        return types.SimpleNamespace(free_all_blocks=lambda: None)


def check_sparse_call(kind: str, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raises where cupyx.scipy.sparse has no such function or method, or does not take these arguments."""
    if kind:
        real = getattr(getattr(cupyx.scipy.sparse, f"{kind}_matrix"), name)
        arguments = (None, *arguments)  # self
    else:
        real = getattr(cupyx.scipy.sparse, name)
        if isinstance(real, type):
            # The class's own constructor passes everything on to the one that names its arguments.
            constructors = [base.__init__ for base in real.__mro__ if "__init__" in vars(base)]
            real = next(c for c in constructors if "arg1" in inspect.signature(c).parameters)
            check_matrix_data(arguments[0])
            arguments = (None, *arguments)
    inspect.signature(real).bind(*arguments, **keywords)


def check_matrix_data(given: Any) -> None:
    """Raises ``TypeError`` on entries that cupyx's matrices cannot hold."""
    data = given[0] if isinstance(given, tuple) else given
    if isinstance(data, DeviceArray) and data.dtype.kind not in "bfc":
        raise TypeError(f"cupyx.scipy.sparse holds no {data.dtype}")


def pretend_backend() -> Backend:
    """A backend that says it is CUDA."""
    return Backend("cuda", PretendCupy(), DeviceSparse(wrap, unwrap, check_sparse_call), "pretended")
