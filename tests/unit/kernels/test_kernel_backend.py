"""Backends, index arrays, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import psutil
import pytest

from hornbeam_kernels.backend import (
    BLOCK_CAP,
    BackendUnavailableError,
    block_rows,
    row_blocks,
    select_backend,
)
from hornbeam_kernels.indexing import index_array, label_array, members_by_community, renumber, triple_arrays


def test_auto_takes_the_cpu_and_says_why() -> None:
    backend = select_backend("auto")
    assert backend.name == "cpu"
    assert backend.xp is np
    assert "CUDA" in backend.reason


def test_cuda_is_refused_with_a_remedy() -> None:
    with pytest.raises(BackendUnavailableError, match='use device = "auto" or "cpu"'):
        select_backend("cuda")


def test_an_unknown_device_is_an_error() -> None:
    with pytest.raises(ValueError, match="tpu"):
        select_backend("tpu")  # type: ignore[arg-type]


def test_hidden_devices_count_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert select_backend("auto").reason.startswith("no CUDA device")


def test_blocks_fit_the_budget_and_never_fall_below_one_row() -> None:
    assert block_rows(100, 1_000) == 10
    assert block_rows(100, 1) == 1
    assert block_rows(0, 10) == 10
    assert 1 <= block_rows(1) <= psutil.virtual_memory().total // 4
    with pytest.raises(ValueError, match="positive"):
        block_rows(10, 0)


def test_blocks_cover_every_row_once() -> None:
    assert row_blocks(0, 8) == []
    assert row_blocks(5, 100, 200) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert row_blocks(10**4, 1, 10**9)[0] == slice(0, BLOCK_CAP)


def test_renumbering_follows_the_first_occurrence() -> None:
    assert renumber([7, 2, 7, 5]).tolist() == [0, 1, 0, 2]
    assert renumber([]).tolist() == []
    assert [m.tolist() for m in members_by_community(renumber([7, 2, 7]))] == [[0, 2], [1]]


@pytest.mark.parametrize("bad", [[3], [-1], [[0]], [0.5]])
def test_indices_that_point_nowhere_are_errors(bad: list[object]) -> None:
    with pytest.raises(ValueError, match="heads must"):
        index_array(bad, 3, "heads")


def test_columns_of_unequal_length_are_errors() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        triple_arrays([0], [], [0], 1, 1)
    with pytest.raises(ValueError, match="one entry per row"):
        label_array([0], 2)


def test_importing_the_package_loads_no_library() -> None:
    code = (
        "import sys, hornbeam_kernels;"
        "print([m for m in ('numpy','scipy','sklearn','faiss','hornbeam') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
    code = (
        "import sys, pkgutil, importlib, hornbeam_kernels as h;"
        "[importlib.import_module('hornbeam_kernels.' + m.name) for m in pkgutil.iter_modules(h.__path__)];"
        "print([m for m in ('scipy','sklearn','faiss','hornbeam') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
