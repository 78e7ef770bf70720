"""The stand-in for CuPy sees what CuPy would refuse; the contract tests run every kernel on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy", reason="cupy is not installed (extra dev)")

from hornbeam_kernels.propagation import unit_rows
from support.pretend_cupy import HostArrayError, pretend_backend

BACKEND = pretend_backend()
XP, SPARSE = BACKEND.xp, BACKEND.sparse
HOST = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)

REFUSED: dict[str, tuple[type[Exception], Callable[[Any, Any], Any]]] = {
    "a keyword that NumPy has and CuPy has not": (TypeError, lambda x, m: XP.sort(x, stable=True)),
    "a keyword of a sort by partition": (TypeError, lambda x, m: XP.argpartition(x, 0, kind="introselect")),
    "a keyword of a ufunc": (TypeError, lambda x, m: XP.add(x, x, order="C")),
    "a keyword by way of NumPy's ufunc": (TypeError, lambda x, m: np.add(x, x, order="C")),
    "a keyword by way of NumPy's function": (TypeError, lambda x, m: np.isin(x, x, kind="sort")),
    "a function that CuPy lacks": (AttributeError, lambda x, m: XP.vecdot(x, x)),
    "a function in a module of CuPy's": (AttributeError, lambda x, m: XP.linalg.vecdot(x, x)),
    "an array of counts": (TypeError, lambda x, m: XP.repeat(x, XP.asarray([1, 2]), axis=0)),
    "keys one by one": (TypeError, lambda x, m: XP.lexsort((x[0], x[1]))),
    "random numbers": (AssertionError, lambda x, m: XP.random.normal(size=2)),
    "a method that NumPy's arrays have": (AttributeError, lambda x, m: x.newbyteorder()),
    "a host array in an operator": (HostArrayError, lambda x, m: x + HOST),
    "a host array in a product": (HostArrayError, lambda x, m: HOST @ x),
    "a host array in a function": (HostArrayError, lambda x, m: XP.sqrt(HOST)),
    "a host array as an index": (HostArrayError, lambda x, m: x[np.array([0])]),
    "a host array stored": (HostArrayError, lambda x, m: x.__setitem__(0, HOST[0])),
    "a device array taken for a host array": (HostArrayError, lambda x, m: np.asarray(x)),
    "words": (TypeError, lambda x, m: XP.asarray(["a"])),
    "a matrix of whole numbers": (TypeError, lambda x, m: SPARSE.csr_matrix(XP.asarray([[1]]))),
    "a matrix from host arrays": (HostArrayError, lambda x, m: SPARSE.csr_matrix(HOST)),
    "a keyword of a matrix": (TypeError, lambda x, m: m.toarray(dtype=np.float64)),
    "a method that SciPy's matrices have": (AttributeError, lambda x, m: m.nanmin_(0)),
    "a sparse product with a host array": (HostArrayError, lambda x, m: m @ HOST),
    "rows of a matrix by a host array": (HostArrayError, lambda x, m: m[np.array([0])]),
}


@pytest.mark.parametrize(("error", "call"), REFUSED.values(), ids=REFUSED)
def test_what_cupy_would_refuse_is_seen(error: type[Exception], call: Callable[[Any, Any], Any]) -> None:
    x = XP.asarray(HOST)
    with pytest.raises(error):
        call(x, SPARSE.csr_matrix(x))


def test_what_cupy_takes_gives_numpys_values() -> None:
    x = XP.asarray(HOST)
    matrix = SPARSE.csr_matrix(x)
    order = XP.argsort(-x, axis=1)[:, :1]
    for got, expected in (
        (unit_rows(x, XP), [[0.6, 0.8], [0, 0]]),
        (matrix @ x, HOST @ HOST),
        (x @ x.T, HOST @ HOST.T),
        (np.sqrt(x), np.sqrt(HOST)),
        (order, [[1], [0]]),
        (matrix.minimum(matrix).toarray(), HOST),
        (matrix[XP.asarray([1, 0])].toarray(), HOST[::-1]),
        (SPARSE.vstack((matrix, matrix), format="csr").toarray(), np.vstack((HOST, HOST))),
        (XP.where(x > 0, x, XP.zeros_like(x)), HOST),
        (x.sum(axis=1), HOST.sum(axis=1)),
    ):
        np.testing.assert_allclose(BACKEND.to_numpy(got), expected, rtol=1e-6)
    assert float(XP.sum(x)) == 7.0


def test_a_device_array_is_a_copy() -> None:
    host = HOST.copy()
    x = XP.asarray(host)
    x[0] = 0.0
    assert host[0, 0] == 3.0
