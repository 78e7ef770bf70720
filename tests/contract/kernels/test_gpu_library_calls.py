"""What the kernels call of CuPy, cuML, cuVS, pylibcugraph and faiss for GPUs is in the real packages.

The calls are not listed here: ``cuda_libraries`` runs against fakes that keep what they are called with, and
the same arguments are bound to the installed packages' signatures. All of these import without a device.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy", reason="cupy is not installed (extra dev)")
pytest.importorskip("faiss", reason="faiss is not installed (extra cpu)")
pytest.importorskip("graspologic_native", reason="graspologic-native is not installed (extra cpu)")
pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra cpu)")

import faiss

from hornbeam_kernels import cuda_libraries
from hornbeam_kernels.backend import BackendUnavailableError
from hornbeam_kernels.partition import connected_components, leiden
from hornbeam_kernels.search import build_index, least_effort, search
from support.fake_rapids import FakeRapids, fake_faiss_gpu, fake_rapids
from support.pretend_cupy import DeviceArray, pretend_backend

FAISS_HAS_GPUS = hasattr(faiss, "StandardGpuResources")
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def use(fakes: FakeRapids, patch: pytest.MonkeyPatch, *absent: str) -> None:
    """The fakes in place of the packages, and ``absent`` packages as if never installed."""
    for name, module in fakes.modules.items():
        patch.setitem(sys.modules, name, module)
    real = cuda_libraries.find_spec
    patch.setattr(cuda_libraries, "find_spec", lambda name: None if name in absent else real(name))


def rows(n: int, d: int = 6) -> np.ndarray:
    x = np.random.default_rng(n).normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def recorded_calls() -> list[Call]:
    """Every call that ``cuda_libraries`` makes, by running all of it against the fakes."""
    backend, calls = pretend_backend(), []
    for absent in ((), ("cuml",)):  # cuML's K-means, then cuVS's
        with pytest.MonkeyPatch.context() as patch:
            fakes = fake_rapids(*({"cuml", "cuvs", "pylibcugraph"} - set(absent)))
            use(fakes, patch, *absent)
            cuda_libraries.kmeans(rows(30), 3, backend=backend, restarts=2)
            if not absent:
                cuda_libraries.dbscan_cores(rows(9), np.ones(9), eps=0.3, min_samples=2, backend=backend)
            leiden([0, 1, 2], [1, 2, 3], None, 5, backend=backend)
            connected_components([0, 1], [1, 2], 4, backend=backend)
            search(build_index(rows(20), backend=backend), rows(2), 3)
            for index in cuda_libraries.approximate_indexes(rows(300), 17, backend=backend):
                index.effort = 2
                search(index, rows(2), 3)
            calls += fakes.calls
    return calls


def refusal(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
    """Why ``function`` does not take these arguments; None when it does."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a Cython class names its parameters to nobody: it is called
        if function.__module__.startswith("pylibcugraph"):
            arguments = tuple(real_counterpart(argument) for argument in arguments)
        try:
            function(*arguments, **keywords)
        except Exception as error:  # noqa: BLE001 - whatever it is
            # All that may be missing is the device: its arrays are asked for once the arguments are in place.
            return None if "__cuda_array_interface__" in str(error) else str(error)
        return None
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        return str(error)
    return None


def real_counterpart(argument: Any) -> Any:
    # pylibcugraph's graph wants its own handle and properties, both of which can be had without a device.
    import pylibcugraph

    if isinstance(argument, dict):
        return pylibcugraph.GraphProperties(**argument)
    if isinstance(argument, DeviceArray):
        return argument
    return pylibcugraph.ResourceHandle()


CALLS = recorded_calls()
PATHS = sorted({path for path, _, _ in CALLS})


def test_the_fakes_saw_every_library() -> None:
    assert {path.split(".")[0] for path in PATHS} == {"cuml", "cuvs", "pylibcugraph"}
    assert len(PATHS) == 22, PATHS


@pytest.mark.parametrize("path", PATHS)
def test_the_real_package_takes_the_arguments(path: str) -> None:
    package = path.split(".")[0]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed (extra rapids; 4 GB, needs no device)")
    function = importlib.import_module(package)
    for position, name in enumerate(path.split(".")[1:], 2):
        if not hasattr(function, name):
            importlib.import_module(".".join(path.split(".")[:position]))
        function = getattr(function, name)
    for called, arguments, keywords in CALLS:
        if called == path:
            assert refusal(function, arguments, keywords) is None


@pytest.mark.parametrize(
    ("path", "arguments", "keywords"),
    [
        ("cuml.cluster.KMeans", (), {"clusters": 3}),
        ("cuml.cluster.KMeans", (3,), {}),
        ("cuml.cluster.DBSCAN", (), {"epsilon": 0.3}),
        ("cuvs.cluster.kmeans.KMeansParams", (), {"clusters": 3}),
        ("cuvs.neighbors.ivf_flat.IndexParams", (), {"lists": 3}),
        ("cuvs.neighbors.brute_force.search", (None, None), {}),
        ("pylibcugraph.leiden", (None, 42, None, 100, 1.0), {}),
        ("pylibcugraph.SGGraph", (None, {}, DeviceArray(np.zeros(1)), DeviceArray(np.zeros(1))), {"w": None}),
    ],
)
def test_an_argument_that_the_real_package_lacks_is_seen(
    path: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    package, _, name = path.rpartition(".")
    if find_spec(package.split(".")[0]) is None:
        pytest.skip(f"{package.split('.')[0]} is not installed (extra rapids; 4 GB, needs no device)")
    assert refusal(getattr(importlib.import_module(package), name), arguments, keywords) is not None


@pytest.mark.skipif(not FAISS_HAS_GPUS, reason="this faiss was built without GPUs")
def test_faiss_takes_the_arguments_and_misses_only_the_device() -> None:
    """The overloads are resolved before a device is looked for: wrong arguments would be a TypeError."""
    if faiss.get_num_gpus() > 0:
        pytest.skip("a GPU is there: the contract tests run the calls themselves")
    resources = faiss.StandardGpuResources()
    for index in (faiss.IndexFlatIP(4), faiss.IndexIVFFlat(faiss.IndexFlatIP(4), 4, 2)):
        with pytest.raises(RuntimeError, match="getNumDevices"):
            faiss.index_cpu_to_gpu(resources, 0, index)
    with pytest.raises(TypeError):
        faiss.index_cpu_to_gpu(resources, index)


@pytest.mark.parametrize("exact_below", [10**6, 100])
def test_a_faiss_with_gpus_is_taken_before_cuvs(monkeypatch: pytest.MonkeyPatch, exact_below: int) -> None:
    fakes = fake_faiss_gpu(monkeypatch)
    use(fakes, monkeypatch, "cuvs")
    x = rows(900)
    index = build_index(x, exact_below=exact_below, backend=pretend_backend())
    assert index.kind == ("faiss flat" if exact_below > 900 else "faiss ivf")
    assert [path for path, _, _ in fakes.calls].count("faiss.index_cpu_to_gpu") == (
        1 if exact_below > 900 else 2
    )
    truth = search(build_index(x), x[:50], 11)[1]
    found = search(index, x[:50], 11)[1]
    assert np.mean([len(set(a) & set(b)) / 11 for a, b in zip(truth, found, strict=True)]) >= 0.95
    with pytest.raises(ValueError, match="at most 2048"):
        index.search(x[:1], 2049)


def test_cuvs_graph_gives_way_to_lists_when_it_misses_the_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    use(fake_rapids("cuvs"), monkeypatch)
    x, backend = rows(900), pretend_backend()
    assert build_index(x, exact_below=100, backend=backend).kind == "cuvs cagra"
    graph = sys.modules["cuvs.neighbors.cagra"]
    nothing = DeviceArray(np.full((1, 1), 2**32 - 1, dtype=np.uint32))
    monkeypatch.setattr(graph, "search", lambda params, index, q, k: (None, nothing_found(nothing, q, k)))
    index = build_index(x, exact_below=100, backend=backend)
    assert index.kind == "cuvs ivf_flat"
    assert index.effort > 1


def test_few_vectors_are_compared_all(monkeypatch: pytest.MonkeyPatch) -> None:
    use(fake_rapids("cuvs"), monkeypatch)
    assert build_index(rows(255), exact_below=0, backend=pretend_backend()).kind == "cuvs brute_force"


def test_libraries_wait_for_the_arrays_that_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """No library call may follow CuPy's without a synchronisation in between."""
    fakes, backend = fake_rapids(), pretend_backend()
    use(fakes, monkeypatch)
    monkeypatch.setattr(
        backend.xp.cuda.Device, "synchronize", lambda device: fakes.calls.append(("settled", (), {}))
    )
    starters = {
        "cuml.cluster.KMeans.fit": lambda: cuda_libraries.kmeans(rows(30), 3, backend=backend),
        "cuml.cluster.DBSCAN.fit": lambda: cuda_libraries.dbscan_cores(
            rows(9), np.ones(9), eps=0.3, min_samples=2, backend=backend
        ),
        "pylibcugraph.SGGraph": lambda: connected_components([0], [1], 3, backend=backend),
        "cuvs.neighbors.brute_force.build": lambda: build_index(rows(9), backend=backend),
    }
    for path, run in starters.items():
        fakes.calls.clear()
        run()
        made = [called for called, _, _ in fakes.calls]
        assert "settled" in made[: made.index(path)], path


def test_dbscan_without_cuml_is_array_code(monkeypatch: pytest.MonkeyPatch) -> None:
    use(fake_rapids("cuvs"), monkeypatch, "cuml")
    for name in ("cuml", "cuml.cluster"):  # nor where it is installed
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    assert cuda_libraries.chosen_libraries()["dbscan"] == "array code"
    with pytest.raises(ImportError):
        cuda_libraries.dbscan_cores(rows(9), np.ones(9), eps=0.3, min_samples=2, backend=pretend_backend())


def nothing_found(nothing: DeviceArray, queries: DeviceArray, k: int) -> DeviceArray:
    return DeviceArray(np.broadcast_to(nothing.host, (queries.shape[0], k)))


@pytest.mark.parametrize(
    ("part", "absent", "command"),
    [
        ("kmeans", ("cuml", "cuvs"), "pip install 'cuml-cu13==26.10.*' or pip install 'cuvs-cu13==26.10.*'"),
        ("leiden", ("pylibcugraph",), "pip install 'pylibcugraph-cu13==26.10.*'"),
        ("components", ("pylibcugraph",), "pip install 'pylibcugraph-cu13==26.10.*'"),
        (
            "neighbours",
            ("cuvs", "faiss"),
            "pip install 'cuvs-cu13==26.10.*' or pip install 'faiss-gpu==1.15.1'",
        ),
    ],
)
def test_a_part_without_a_library_is_refused_with_the_command(
    monkeypatch: pytest.MonkeyPatch, part: str, absent: tuple[str, ...], command: str
) -> None:
    use(fake_rapids(), monkeypatch, *absent)
    backend = pretend_backend()
    calls = {
        "kmeans": lambda: cuda_libraries.kmeans(rows(9), 3, backend=backend),
        "leiden": lambda: leiden([0], [1], None, 2, backend=backend),
        "components": lambda: connected_components([0], [1], 2, backend=backend),
        "neighbours": lambda: build_index(rows(9), backend=backend),
    }
    with pytest.raises(BackendUnavailableError) as error:
        calls[part]()
    assert command in str(error.value)
    assert cuda_libraries.chosen_libraries()[part] == f"none: {error.value}"


@pytest.mark.parametrize(("enough", "most", "expected"), [(1, 1, 1), (1, 40, 1), (7, 40, 7), (40, 40, 40)])
def test_the_least_effort_is_found(enough: int, most: int, expected: int) -> None:
    asked = []

    def recall(effort: int) -> float:
        asked.append(effort)
        return float(effort >= enough)

    assert least_effort(recall, most) == expected
    assert len(asked) <= 2 * most.bit_length()
    assert least_effort(lambda effort: 0.5, most) is None
