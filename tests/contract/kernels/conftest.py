"""The backends that the contract tests run on."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from hornbeam_kernels import cuda_libraries
from hornbeam_kernels.backend import Backend, BackendUnavailableError, select_backend


@pytest.fixture(params=["cpu", "pretended-cuda", "cuda"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """The CPU; CUDA's code on NumPy behind CuPy's signatures, with fake libraries; and CUDA itself."""
    if request.param == "pretended-cuda":
        for name in ("cupy", "faiss", "graspologic_native", "sklearn"):
            pytest.importorskip(name, reason=f"{name} is not installed (extras cpu and dev)")
        from support.fake_rapids import fake_rapids
        from support.pretend_cupy import pretend_backend

        for name, module in fake_rapids().modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        return pretend_backend()
    try:
        return select_backend(request.param)
    except BackendUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def part(backend: Backend) -> Callable[[str], None]:
    """``part("kmeans")`` skips the test where the device has no library for it."""

    def needs(name: str) -> None:
        if backend.on_device:
            found = cuda_libraries.chosen_libraries()[name]
            if found.startswith("none"):
                pytest.skip(found)

    return needs
