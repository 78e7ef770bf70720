"""A sparse module over arrays that are not NumPy's: SciPy's arithmetic, the dense parts in the other library.

Kernels get matrices of this module where they would get SciPy's or cupyx's, so that their dense code meets
the other library's arrays everywhere, and no host array slips through a product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

PLAIN = {"shape", "nnz", "ndim", "dtype", "format"}


@dataclass(frozen=True)
class DeviceSparse:
    """Looks like ``scipy.sparse``; ``wrap`` and ``unwrap`` carry arrays over, ``check`` sees every call."""

    wrap: Callable[[np.ndarray], Any]
    unwrap: Callable[[Any], Any]
    """The other library's array as NumPy's; raises on an array of NumPy's own."""
    check: Callable[[str, str, tuple[Any, ...], dict[str, Any]], None] = lambda *call: None
    """(sparse format or "", function, arguments, keywords): raises where the other library lacks the call."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(scipy.sparse, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            self.check("", name, arguments, keywords)
            given = {keyword: self.inside(value) for keyword, value in keywords.items()}
            return self.carry(function(*map(self.inside, arguments), **given))

        return call

    def inside(self, value: Any) -> Any:
        """What SciPy is given for ``value``."""
        if isinstance(value, DeviceMatrix):
            return value.host
        if isinstance(value, tuple | list):
            return type(value)(map(self.inside, value))
        if value is None or isinstance(value, slice | int | float | str | type | np.dtype | np.generic):
            return value
        return self.unwrap(value)

    def carry(self, value: Any) -> Any:
        """What the kernel is given for SciPy's ``value``."""
        if scipy.sparse.issparse(value):
            return DeviceMatrix(self, value)
        return self.wrap(value) if isinstance(value, np.ndarray) else value


class DeviceMatrix:
    """A sparse matrix of ``module``; ``host`` is SciPy's."""

    __array_ufunc__ = None  # NumPy's operators leave the product to us

    def __init__(self, module: DeviceSparse, host: Any) -> None:
        self.module, self.host = module, host

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN:
            return getattr(self.host, name)
        value = getattr(self.host, name)
        if not callable(value):
            return self.module.carry(value)

        def call(*arguments: Any, **keywords: Any) -> Any:
            self.module.check(self.host.format, name, arguments, keywords)
            return self.module.carry(value(*map(self.module.inside, arguments), **keywords))

        return call

    def __matmul__(self, other: Any) -> Any:
        return self.module.carry(self.host @ self.module.inside(other))

    def __rmatmul__(self, other: Any) -> Any:
        return self.module.carry(self.module.inside(other) @ self.host)

    def __getitem__(self, key: Any) -> Any:
        return self.module.carry(self.host[self.module.inside(key)])
