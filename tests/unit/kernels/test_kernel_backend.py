"""Backends, index arrays, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import types
from pathlib import Path

import numpy as np
import psutil
import pytest

from hornbeam_kernels import backend, cuda_libraries
from hornbeam_kernels.backend import (
    BLOCK_CAP,
    CUPY_REQUIREMENT,
    BackendUnavailableError,
    block_rows,
    row_blocks,
    select_backend,
)
from hornbeam_kernels.cuda_libraries import REQUIREMENTS
from hornbeam_kernels.indexing import index_array, label_array, members_by_community, renumber, triple_arrays


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(backend, "_device_files", lambda: 0)


@pytest.fixture
def a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(backend, "_device_files", lambda: 1)


def fake_cupy(monkeypatch: pytest.MonkeyPatch, available: bool) -> types.ModuleType:
    """A module ``cupy`` with one device that holds 400 bytes, 100 of them free, and a pool that holds 20."""
    cupy, sparse = types.ModuleType("cupy"), types.ModuleType("cupyx.scipy.sparse")
    runtime = types.SimpleNamespace(
        getDevice=lambda: 0, getDeviceProperties=lambda n: {"name": b"H200"}, memGetInfo=lambda: (100, 400)
    )
    parts = {
        "__version__": "14.2.0",
        "cuda": types.SimpleNamespace(is_available=lambda: available, runtime=runtime),
        "asnumpy": lambda array: np.array([array.value]),
        "get_default_memory_pool": lambda: types.SimpleNamespace(free_bytes=lambda: 20),
    }
    for name, part in parts.items():
        setattr(cupy, name, part)
    cupyx, scipy = types.ModuleType("cupyx"), types.ModuleType("cupyx.scipy")
    cupyx.scipy, scipy.sparse = scipy, sparse  # type: ignore[attr-defined]
    for module in (cupy, cupyx, scipy, sparse):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return cupy


@pytest.mark.usefixtures("no_device")
def test_auto_takes_the_cpu_and_says_why() -> None:
    chosen = select_backend("auto")
    assert chosen.name == "cpu"
    assert chosen.xp is np
    assert not chosen.on_device
    assert chosen.reason == "no CUDA device: no /dev/nvidia* or /dev/dxg on this machine"


@pytest.mark.usefixtures("no_device")
def test_cuda_is_refused_with_a_remedy() -> None:
    with pytest.raises(BackendUnavailableError, match='use device = "auto" or "cpu"'):
        select_backend("cuda")


def test_an_unknown_device_is_an_error() -> None:
    with pytest.raises(ValueError, match="tpu"):
        select_backend("tpu")  # type: ignore[arg-type]


@pytest.mark.usefixtures("a_device")
@pytest.mark.parametrize("hidden", ["", "-1", " "])
def test_hidden_devices_count_as_none(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert select_backend("auto").reason.startswith("no CUDA device: CUDA_VISIBLE_DEVICES hides them all")


@pytest.mark.usefixtures("a_device")
def test_a_device_without_cupy_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)  # an import of it fails
    assert f"pip install '{CUPY_REQUIREMENT}'" in select_backend("auto").reason
    with pytest.raises(BackendUnavailableError, match="no CuPy"):
        select_backend("cuda")


@pytest.mark.usefixtures("a_device")
def test_a_device_that_cupy_cannot_use_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, available=False)
    chosen = select_backend("auto")
    assert chosen.name == "cpu"
    assert "CuPy 14.2.0 can use none" in chosen.reason


@pytest.mark.usefixtures("a_device")
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_device_that_cupy_can_use_is_taken(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    cupy = fake_cupy(monkeypatch, available=True)
    monkeypatch.setattr(
        cuda_libraries, "chosen_libraries", lambda: {"kmeans": "cuml", "leiden": "pylibcugraph"}
    )
    chosen = select_backend(device)  # type: ignore[arg-type]
    assert chosen.on_device
    assert chosen.xp is cupy
    assert chosen.sparse is sys.modules["cupyx.scipy.sparse"]
    assert chosen.reason == "CUDA device H200, CuPy 14.2.0"
    assert chosen.to_numpy(types.SimpleNamespace(value=7)).tolist() == [7]
    assert chosen.free_memory() == 120  # what the pool has to give counts
    assert block_rows(10, backend=chosen) == 3
    assert row_blocks(5, 10, backend=chosen) == [slice(0, 3), slice(3, 5)]
    assert block_rows(10, 50, chosen) == 5


@pytest.mark.usefixtures("a_device")
def test_auto_does_not_begin_on_a_device_what_it_cannot_end_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, available=True)
    found = {"kmeans": "cuml", "neighbours": "none: neither; pip install 'cuvs'"}
    monkeypatch.setattr(cuda_libraries, "chosen_libraries", lambda: found)
    chosen = select_backend("auto")
    assert not chosen.on_device
    assert chosen.reason == ("a CUDA device, but not all libraries: neighbours: neither; pip install 'cuvs'")
    assert select_backend("cuda").on_device


def test_cupy_is_not_loaded_where_no_device_file_is() -> None:
    code = (
        "import sys; from hornbeam_kernels import backend; backend._device_files = lambda: 0;"
        "backend.select_backend('auto'); print('cupy' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


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
        "print([m for m in ('numpy','scipy','sklearn','faiss','cupy','hornbeam') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
    code = (
        "import sys, pkgutil, importlib, hornbeam_kernels as h;"
        "[importlib.import_module('hornbeam_kernels.' + m.name) for m in pkgutil.iter_modules(h.__path__)];"
        "print([m for m in ('scipy','sklearn','faiss','cupy','hornbeam') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_the_packages_that_messages_name_are_those_of_the_extra() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text("utf-8"))
    extra = project["project"]["optional-dependencies"]["rapids"]
    for requirement in (CUPY_REQUIREMENT, *(REQUIREMENTS[name] for name in ("cuml", "cuvs", "pylibcugraph"))):
        assert requirement in extra
