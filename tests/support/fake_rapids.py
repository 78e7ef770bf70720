"""cuML, cuVS, pylibcugraph and a faiss for GPUs, as far as the kernels call them, without a device.

Each fake does the work on the host and keeps what it was called with, so that a test can bind the very same
arguments to the real package's signatures (where it is installed). Results come back as the real ones do: on
the device, vertices in an order of their own, empty places marked as that library marks them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from typing import Any

import faiss
import graspologic_native
import numpy as np
import scipy.sparse.csgraph
import sklearn.cluster

from support.pretend_cupy import DeviceArray

NOWHERE = 2**32 - 1
"""How CAGRA marks an empty place, in uint32."""


@dataclass
class FakeRapids:
    """``modules`` for ``sys.modules``, and the ``calls`` made: (dotted path, arguments, keywords)."""

    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    modules: dict[str, types.ModuleType] = field(default_factory=dict)

    def add(self, module: str, name: str, function: Callable[..., Any]) -> None:
        """``module.name``, recorded."""
        path = f"{module}.{name}"

        @functools.wraps(function, updated=())
        def recorded(*arguments: Any, **keywords: Any) -> Any:
            self.calls.append((path, arguments, keywords))
            return function(*arguments, **keywords)

        setattr(self.module(module), name, recorded)

    def module(self, name: str) -> types.ModuleType:
        """The module called ``name``, made with its parents."""
        if name not in self.modules:
            module = types.ModuleType(name)
            module.__spec__ = ModuleSpec(name, None, is_package=True)
            self.modules[name] = module
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(self.module(parent), own, module)
        return self.modules[name]


def fake_rapids(*packages: str) -> FakeRapids:
    """Fakes of ``packages`` among cuml, cuvs, pylibcugraph (all by default)."""
    made = FakeRapids()
    for package in packages or ("cuml", "cuvs", "pylibcugraph"):
        made.module(package)
        {"cuml": _cuml, "cuvs": _cuvs, "pylibcugraph": _pylibcugraph}[package](made)
    return made


def fake_faiss_gpu(monkeypatch: Any) -> FakeRapids:
    """faiss as if one GPU were there: its indexes stay where they are."""
    made = FakeRapids()
    made.add("faiss", "StandardGpuResources", lambda: types.SimpleNamespace(setTempMemory=lambda size: None))
    made.add("faiss", "index_cpu_to_gpu", lambda resources, device, index: index)
    for name, function in vars(made.modules.pop("faiss")).items():
        if callable(function):
            monkeypatch.setattr(faiss, name, function, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    return made


def _cuml(made: FakeRapids) -> None:
    class KMeans:
        def __init__(self, n_clusters: int, max_iter: int, random_state: int, n_init: int, output_type: str):
            assert output_type == "cupy"
            self.fitted = sklearn.cluster.KMeans(
                n_clusters, max_iter=max_iter, random_state=random_state, n_init=n_init
            )

        def fit(self, x: DeviceArray) -> Any:
            made.calls.append(("cuml.cluster.KMeans.fit", (self, x), {}))
            self.fitted.fit(x.host)
            self.labels_ = DeviceArray(self.fitted.labels_)
            self.inertia_ = float(self.fitted.inertia_)
            return self

    class DBSCAN:
        def __init__(
            self, *, eps: float, min_samples: int, metric: str, max_mbytes_per_batch: int, output_type: str
        ):
            assert max_mbytes_per_batch >= 1
            assert output_type == "cupy"
            self.fitted = sklearn.cluster.DBSCAN(eps=eps, min_samples=min_samples, metric=metric)

        def fit(self, x: DeviceArray, sample_weight: DeviceArray) -> Any:
            made.calls.append(("cuml.cluster.DBSCAN.fit", (self, x), {"sample_weight": sample_weight}))
            self.fitted.fit(x.host, sample_weight=sample_weight.host)
            self.labels_ = DeviceArray(self.fitted.labels_.astype(np.int32))
            self.core_sample_indices_ = DeviceArray(self.fitted.core_sample_indices_.astype(np.int32))
            return self

    made.add("cuml.cluster", "KMeans", KMeans)
    made.add("cuml.cluster", "DBSCAN", DBSCAN)


def _cuvs(made: FakeRapids) -> None:
    def fit(params: Any, x: DeviceArray, centroids: DeviceArray) -> tuple[DeviceArray, float, int]:
        assert params.init_method == "Array"
        assert params.n_init == 1
        found = sklearn.cluster.KMeans(
            params.n_clusters, init=centroids.host, n_init=1, max_iter=params.max_iter, tol=params.tol
        ).fit(x.host)
        centroids.host[:] = found.cluster_centers_
        return centroids, float(found.inertia_), int(found.n_iter_)

    def predict(params: Any, x: DeviceArray, centroids: DeviceArray) -> tuple[DeviceArray, float]:
        squares = ((x.host[:, None, :] - centroids.host[None]) ** 2).sum(axis=2)
        return DeviceArray(squares.argmin(axis=1).astype(np.int32)), float(squares.min(axis=1).sum())

    made.add("cuvs.cluster.kmeans", "KMeansParams", lambda **settings: types.SimpleNamespace(**settings))
    made.add("cuvs.cluster.kmeans", "fit", fit)
    made.add("cuvs.cluster.kmeans", "predict", predict)

    def exact(x: DeviceArray, metric: str) -> Any:
        assert metric == "inner_product"
        index = faiss.IndexFlatIP(x.shape[1])
        index.add(x.host)
        return index

    def found(index: Any, queries: DeviceArray, k: int, nowhere: int, dtype: Any) -> Any:
        scores, ids = index.search(np.ascontiguousarray(queries.host), k)
        return DeviceArray(-scores), DeviceArray(np.where(ids < 0, nowhere, ids).astype(dtype))

    made.add("cuvs.neighbors.brute_force", "build", exact)
    made.add("cuvs.neighbors.brute_force", "search", lambda index, q, k: found(index, q, k, -1, np.int64))

    def lists(params: Any, x: DeviceArray) -> Any:
        assert params.metric == "inner_product"
        index = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(x.shape[1]), x.shape[1], params.n_lists, faiss.METRIC_INNER_PRODUCT
        )
        index.cp.min_points_per_centroid = 1
        index.train(x.host)
        index.add(x.host)
        return index

    def probe(params: Any, index: Any, queries: DeviceArray, k: int) -> Any:
        index.nprobe = params.n_probes
        return found(index, queries, k, 2**63 - 1, np.int64)

    made.add("cuvs.neighbors.ivf_flat", "IndexParams", lambda **settings: types.SimpleNamespace(**settings))
    made.add("cuvs.neighbors.ivf_flat", "SearchParams", lambda **settings: types.SimpleNamespace(**settings))
    made.add("cuvs.neighbors.ivf_flat", "build", lists)
    made.add("cuvs.neighbors.ivf_flat", "search", probe)

    def graph(params: Any, x: DeviceArray) -> Any:
        assert params.metric == "inner_product"
        index = faiss.IndexHNSWFlat(x.shape[1], 8, faiss.METRIC_INNER_PRODUCT)
        index.add(x.host)
        return index

    def walk(params: Any, index: Any, queries: DeviceArray, k: int) -> Any:
        assert params.itopk_size % 32 == 0
        assert k <= params.itopk_size <= 512
        index.hnsw.efSearch = params.itopk_size
        return found(index, queries, k, NOWHERE, np.uint32)

    made.add("cuvs.neighbors.cagra", "IndexParams", lambda **settings: types.SimpleNamespace(**settings))
    made.add("cuvs.neighbors.cagra", "SearchParams", lambda **settings: types.SimpleNamespace(**settings))
    made.add("cuvs.neighbors.cagra", "build", graph)
    made.add("cuvs.neighbors.cagra", "search", walk)


def _pylibcugraph(made: FakeRapids) -> None:
    def graph(
        handle: Any,
        properties: Any,
        sources: DeviceArray,
        targets: DeviceArray,
        *,
        weight_array: DeviceArray | None,
        vertices_array: DeviceArray,
        **options: bool,
    ) -> Any:
        assert properties == {"is_symmetric": True, "is_multigraph": False}
        n = vertices_array.shape[0]
        weights = np.ones(sources.shape[0]) if weight_array is None else weight_array.host
        matrix = scipy.sparse.csr_matrix((weights, (sources.host, targets.host)), shape=(n, n))
        assert matrix.nnz == len(weights), "parallel edges"
        assert not matrix.diagonal().any(), "a loop"
        assert abs(matrix - matrix.T).nnz == 0, "an edge without its way back"
        return matrix

    def scattered(values: np.ndarray) -> tuple[DeviceArray, DeviceArray]:
        order = np.random.default_rng(len(values)).permutation(len(values)).astype(np.int32)
        return DeviceArray(order), DeviceArray(values[order].astype(np.int32))

    def leiden(
        handle: Any, seed: int, matrix: Any, levels: int, resolution: float, theta: float, check: bool
    ) -> Any:
        upper = scipy.sparse.triu(matrix).tocoo()
        edges = [(str(a), str(b), float(w)) for a, b, w in zip(upper.row, upper.col, upper.data, strict=True)]
        quality, found = graspologic_native.leiden(
            edges, resolution=resolution, seed=seed, use_modularity=True
        )
        labels = np.arange(matrix.shape[0]) + len(found)  # nodes without edges
        for node, cluster in found.items():
            labels[int(node)] = cluster
        return *scattered(labels), quality

    def components(handle: Any, matrix: Any, *rest: Any) -> Any:
        assert rest == (None, None, None, None, False)
        return scattered(scipy.sparse.csgraph.connected_components(matrix)[1] * 7)

    made.add("pylibcugraph", "ResourceHandle", lambda: types.SimpleNamespace())
    made.add("pylibcugraph", "GraphProperties", lambda **settings: settings)
    made.add("pylibcugraph", "SGGraph", graph)
    made.add("pylibcugraph", "leiden", leiden)
    made.add("pylibcugraph", "weakly_connected_components", components)
