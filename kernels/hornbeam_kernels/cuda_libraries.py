"""Library calls that only the CUDA backend makes: K-means, DBSCAN, Leiden, components, nearest neighbours.

Each keeps the contract of its CPU counterpart: arrays of the host or of the device in, labels on the host in
normal form out. Which library does what:

=============  =====================================================================
K-means        cuML; cuVS where cuML is not installed
DBSCAN         cuML (the core rows; ``density``'s array code where it is not installed)
Leiden         pylibcugraph (flat; the hierarchy is ``partition``'s)
components     pylibcugraph
neighbours     faiss where it was built for GPUs and sees one; cuVS otherwise
=============  =====================================================================

``chosen_libraries`` says which were found. A part with none raises ``BackendUnavailableError`` with the
package and the command that installs it; nothing falls back to the CPU unasked. The arguments of every call
are checked against the installed packages without a device (``tests/contract/kernels``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hornbeam_kernels.backend import Array, Backend, BackendUnavailableError, block_rows
from hornbeam_kernels.indexing import Labels, renumber
from hornbeam_kernels.memory import FAISS_SHARE, RowBlocks

REQUIREMENTS = {
    "cuml": "cuml-cu13==26.10.*",
    "cuvs": "cuvs-cu13==26.10.*",
    "pylibcugraph": "pylibcugraph-cu13==26.10.*",
    "faiss": "faiss-gpu==1.15.1",
}
"""Module → what ``pip install`` needs for it."""

SEEDING_ROWS = 10
"""k-means++ for cuVS chooses its seeds among this many rows a cluster."""
LEIDEN_LEVELS = 100
"""Levels of Leiden at most; it stops by itself long before."""
FAISS_MAX_NEIGHBOURS = 2048
"""faiss keeps no more neighbours, and no more probed lists, on a GPU."""


def chosen_libraries() -> dict[str, str]:
    """Part → module that does it on a CUDA device, or ``"none: …"`` with what to install."""
    found = {}
    for part, choose in (
        ("kmeans", _kmeans_library),
        ("leiden", _graph_library),
        ("components", _graph_library),
        ("neighbours", _neighbour_library),
    ):
        try:
            found[part] = choose()
        except BackendUnavailableError as error:
            found[part] = f"none: {error}"
    found["dbscan"] = "cuml" if has_dbscan() else "array code"
    return found


def has_dbscan() -> bool:
    """Whether ``dbscan_cores`` has its library."""
    return find_spec("cuml") is not None


def kmeans(
    rows: Any, k: int, *, backend: Backend, seed: int = 42, restarts: int = 5, iterations: int = 100
) -> tuple[Labels, float]:
    """K-means of ``rows`` [n, d], the best of ``restarts``: labels int32 [n] in normal form, and the inertia.

    The inertia is Σ_i ‖x_i − c(i)‖² at the centres found. With cuML: scalable k-means++ (Bahmani et al. 2012)
    seeded with ``seed``, restarts inside the library. With cuVS, whose own seeding takes no seed: k-means++
    (Arthur and Vassilvitskii 2007) on the host among ``SEEDING_ROWS`` k rows, restart i seeded with ``seed``
    + i. At most min(k, n) clusters; fewer come back where some stay empty. With k < n, rows that are equal
    may be parted, where the CPU's K-means gives each of at most k distinct rows its own cluster: callers that
    need that compare the rows first.

    Sums on a GPU run in no fixed order, so labels may differ in a few rows from run to run. Time
    O(restarts · iterations · n k d). Memory on the device: the rows in float32 and blocks of [32768, k].
    Raises ``ValueError`` when ``rows`` is not [n, d] or k < 1 with n > 0, ``BackendUnavailableError`` where
    neither library is installed.
    """
    x = _rows(rows, backend)
    n = x.shape[0]
    if n and (k < 1 or restarts < 1):
        raise ValueError(f"k and restarts must be ≥ 1, not {k} and {restarts}")
    if n == 0:
        return np.zeros(0, dtype=np.int32), 0.0
    library = _kmeans_library()
    if k >= n:  # every row that differs is its own cluster
        return renumber(np.unique(backend.to_numpy(x), axis=0, return_inverse=True)[1]), 0.0
    if library == "cuml":
        from cuml.cluster import KMeans

        fit = KMeans(
            n_clusters=k, max_iter=iterations, random_state=seed, n_init=restarts, output_type="cupy"
        ).fit(x)
        return renumber(backend.to_numpy(fit.labels_)), float(fit.inertia_)
    fits = [_cuvs_kmeans(x, k, seed + attempt, iterations, backend) for attempt in range(restarts)]
    labels, inertia = min(fits, key=lambda one: one[1])  # the first of equals
    return renumber(backend.to_numpy(labels)), inertia


def _cuvs_kmeans(x: Array, k: int, seed: int, iterations: int, backend: Backend) -> tuple[Array, float]:
    from cuvs.cluster import kmeans as cuvs_kmeans
    from sklearn.cluster import kmeans_plusplus

    n = x.shape[0]
    among = np.random.default_rng(seed).choice(n, min(n, SEEDING_ROWS * k), replace=False)
    rows = backend.to_numpy(backend.xp.take(x, backend.asarray(np.sort(among)), axis=0))
    start = backend.asarray(kmeans_plusplus(rows, k, random_state=seed)[0])  # [k, d], `fit` may write to it
    _settle(backend)
    # The metric is squared Euclidean by default.
    settings = cuvs_kmeans.KMeansParams(
        n_clusters=k, init_method="Array", max_iter=iterations, tol=1e-4, n_init=1
    )
    centres, _, _ = cuvs_kmeans.fit(settings, x, centroids=start)
    labels, inertia = cuvs_kmeans.predict(settings, x, centres)
    return backend.asarray(labels), float(inertia)


def dbscan_cores(
    rows: Any,
    copies: Any,
    *,
    eps: float,
    min_samples: int,
    backend: Backend,
    memory_limit: int | None = None,
) -> Labels:
    """The clusters of DBSCAN's core rows: labels int32 [n], −1 for every row that is no core.

    ``rows`` [n, d] of unit length, ``copies`` integers [n] ≥ 1: how many such rows there are. Neighbours:
    cosine distance ≤ ``eps``; a core row has ``min_samples`` neighbours, copies and itself counted. Which
    cluster cuML gives to a row at a border depends on the order of the rows, so its answer for those is left
    out. Time O(n² d), memory on the device: batches within ``memory_limit`` bytes. Raises ``ValueError`` when
    ``rows`` is not [n, d], ``ImportError`` without cuML (``has_dbscan``).
    """
    x = _rows(rows, backend)
    if x.shape[0] == 0:
        return np.zeros(0, dtype=np.int32)
    from cuml.cluster import DBSCAN

    weights = backend.asarray(copies, dtype=backend.xp.float32)
    _settle(backend)
    fit = DBSCAN(
        eps=eps,
        min_samples=min_samples,
        metric="cosine",
        max_mbytes_per_batch=block_rows(1_000_000, memory_limit, backend),
        output_type="cupy",
    ).fit(x, sample_weight=weights)
    labels = np.full(x.shape[0], -1, dtype=np.int32)
    core = backend.to_numpy(fit.core_sample_indices_).astype(np.int64)
    labels[core] = backend.to_numpy(fit.labels_)[core]
    return labels


def leiden(sources: Any, targets: Any, weights: Any, n: int, *, backend: Backend, seed: int = 42) -> Labels:
    """One flat Leiden partition (Traag et al. 2019) at resolution 1: labels int32 [n] in normal form.

    ``sources``, ``targets`` integers [E] and ``weights`` [E] > 0: an undirected graph without loops or
    parallel edges, every edge in both directions. Nodes without edges are communities of their own.
    pylibcugraph; its result is not repeatable on a GPU, whatever the seed: modularity within a band is what
    to expect. Time near linear in E, memory some 100 bytes an edge on the device. Raises
    ``BackendUnavailableError`` where pylibcugraph is not installed.
    """
    if len(sources) == 0:
        return np.arange(n, dtype=np.int32)
    _graph_library()
    import pylibcugraph

    handle = pylibcugraph.ResourceHandle()
    graph = _graph(handle, sources, targets, weights, n, backend)
    vertices, clusters, _modularity = pylibcugraph.leiden(handle, seed, graph, LEIDEN_LEVELS, 1.0, 1.0, False)
    return _by_vertex(vertices, clusters, n, backend)


def connected_components(sources: Any, targets: Any, n: int, *, backend: Backend) -> Labels:
    """Connected components of n nodes: labels int32 [n] in normal form.

    ``sources``, ``targets`` integers [E], every edge in both directions. pylibcugraph. O(n + E) memory.
    Raises ``BackendUnavailableError`` where pylibcugraph is not installed.
    """
    if len(sources) == 0:
        return np.arange(n, dtype=np.int32)
    _graph_library()
    import pylibcugraph

    handle = pylibcugraph.ResourceHandle()
    graph = _graph(handle, sources, targets, None, n, backend)
    vertices, components = pylibcugraph.weakly_connected_components(
        handle, graph, None, None, None, None, False
    )
    return _by_vertex(vertices, components, n, backend)


def _graph(handle: Any, sources: Any, targets: Any, weights: Any, n: int, backend: Backend) -> Any:
    import pylibcugraph

    xp = backend.xp
    ends = backend.asarray(sources, dtype=xp.int32), backend.asarray(targets, dtype=xp.int32)
    weight = None if weights is None else backend.asarray(weights, dtype=xp.float64)
    vertices = xp.arange(n, dtype=xp.int32)  # nodes without edges too
    _settle(backend)
    return pylibcugraph.SGGraph(
        handle,
        pylibcugraph.GraphProperties(is_symmetric=True, is_multigraph=False),
        *ends,
        weight_array=weight,
        vertices_array=vertices,
        store_transposed=False,
        renumber=True,
        do_expensive_check=False,
    )


def _by_vertex(vertices: Any, values: Any, n: int, backend: Backend) -> Labels:
    # pylibcugraph answers in an order of its own. A vertex that it left out would keep a number of its own.
    labels = np.arange(n, dtype=np.int64) + n
    found = backend.to_numpy(vertices).astype(np.int64)
    labels[found] = backend.to_numpy(values)
    return renumber(labels)


class DeviceIndex(Protocol):
    """What a nearest-neighbour index on a device has in common, whichever library made it."""

    kind: str
    """Library and type, for people: ``"cuvs ivf_flat"``."""
    effort: int
    """How hard a search looks, 1 … ``most``; recall rises with it."""
    most: int

    @property
    def d(self) -> int:
        """Dimension of the vectors."""

    @property
    def ntotal(self) -> int:
        """Number of stored vectors."""

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores [q, k] descending and ids [q, k], both on the host; id −1 where nothing was found."""


def exact_index(rows: Any, *, backend: Backend) -> DeviceIndex:
    """An index that compares every stored vector, by inner product. ``rows`` [n, d].

    O(q n d) time a search; memory 4 n d bytes on the device. Raises ``ValueError`` when ``rows`` is not [n,
    d], ``BackendUnavailableError`` where there is neither a faiss for GPUs nor cuVS.
    """
    x = _rows(rows, backend)
    library = _neighbour_library()
    if x.shape[0] == 0:
        return CuvsIndex("empty", x, 1, backend, lambda q, k, effort: backend.xp.full((q.shape[0], k), -1))
    if library == "faiss":
        import faiss

        return _on_faiss(faiss.IndexFlatIP(int(x.shape[1])), x, "faiss flat", backend)
    from cuvs.neighbors import brute_force

    index = brute_force.build(x, metric="inner_product")
    return CuvsIndex(
        "cuvs brute_force", x, 1, backend, lambda q, k, effort: brute_force.search(index, q, k)[1]
    )


def approximate_indexes(rows: Any, lists: int, *, backend: Backend, seed: int = 42) -> Iterator[DeviceIndex]:
    """Indexes that look at a part of the vectors, best first; build the next only if one misses its recall.

    ``rows`` [n, d] on unit length; ``lists``: number of inverted lists. faiss: IVF, its effort the lists
    probed. cuVS: CAGRA (a neighbour graph, arXiv 2308.15136), its effort in steps of 32 candidates kept, then
    IVF, which reaches any recall when all lists are probed. Memory 4 n d bytes on the device, CAGRA 256 n
    more. Raises like ``exact_index``.
    """
    x = _rows(rows, backend)
    if _neighbour_library() == "faiss":
        yield _faiss_lists(x, lists, seed, backend)
        return
    from cuvs.neighbors import ivf_flat

    yield _cagra_index(x, backend)
    inverted = ivf_flat.build(ivf_flat.IndexParams(n_lists=lists, metric="inner_product"), x)
    yield CuvsIndex(
        "cuvs ivf_flat",
        x,
        lists,
        backend,
        lambda q, k, effort: ivf_flat.search(ivf_flat.SearchParams(n_probes=effort), inverted, q, k)[1],
    )


def _cagra_index(x: Array, backend: Backend) -> CuvsIndex:
    from cuvs.neighbors import cagra

    graph = cagra.build(cagra.IndexParams(metric="inner_product"), x)

    def walk(queries: Array, k: int, effort: int) -> Array:
        kept = max(32 * effort, -(-k // 32) * 32)  # at least k, in steps of 32
        return cagra.search(cagra.SearchParams(itopk_size=kept), graph, queries, k)[1]

    return CuvsIndex("cuvs cagra", x, 16, backend, walk)


@dataclass
class CuvsIndex:
    """A cuVS index with the vectors that it was built from (it keeps no copy of its own)."""

    kind: str
    rows: Array
    """[n, d] on the device."""
    most: int
    backend: Backend
    neighbours: Any
    """(queries on the device, k, effort) → ids [q, k] on the device."""
    effort: int = 1

    @property
    def d(self) -> int:
        return int(self.rows.shape[1])

    @property
    def ntotal(self) -> int:
        return int(self.rows.shape[0])

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As ``DeviceIndex.search``. Scores are inner products computed here: libraries differ in sign."""
        backend, xp = self.backend, self.backend.xp
        q = backend.asarray(queries, dtype=xp.float32)
        _settle(backend)
        found = backend.asarray(self.neighbours(q, k, self.effort)).astype(xp.int64)  # [q, k]
        scores = np.full((q.shape[0], k), -np.inf, dtype=np.float32)
        ids = np.full((q.shape[0], k), -1, dtype=np.int64)
        blocks = RowBlocks(q.shape[0], 12 * k * self.d, backend=backend)
        for block in blocks:
            with blocks.halving():
                at = found[block]
                there = (at >= 0) & (at < self.ntotal)  # libraries differ in how they mark an empty place
                vectors = self.rows[xp.where(there, at, xp.zeros_like(at))]  # [block, k, d]
                product = xp.sum(q[block][:, None, :] * vectors, axis=2)
                scores[block] = backend.to_numpy(xp.where(there, product, -xp.inf))
                ids[block] = backend.to_numpy(xp.where(there, at, -xp.ones_like(at)))
        order = np.lexsort((ids, -scores), axis=1)  # best first, of equals the lowest id
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)


@dataclass
class FaissGpuIndex:
    """A faiss index on a GPU; ``resources`` must live as long as it."""

    kind: str
    index: Any
    resources: Any
    most: int

    @property
    def d(self) -> int:
        return int(self.index.d)

    @property
    def ntotal(self) -> int:
        return int(self.index.ntotal)

    @property
    def effort(self) -> int:
        return int(self.index.nprobe) if self.most > 1 else 1

    @effort.setter
    def effort(self, effort: int) -> None:
        if self.most > 1:
            self.index.nprobe = effort

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As ``DeviceIndex.search``. Raises ``ValueError`` on k > ``FAISS_MAX_NEIGHBOURS``."""
        if k > FAISS_MAX_NEIGHBOURS:
            raise ValueError(f"faiss finds at most {FAISS_MAX_NEIGHBOURS} neighbours on a GPU, not {k}")
        scores, ids = self.index.search(queries, k)
        return scores, ids


def _on_faiss(index: Any, x: Array, kind: str, backend: Backend, most: int = 1) -> FaissGpuIndex:
    import faiss

    resources = faiss.StandardGpuResources()
    resources.setTempMemory(int(FAISS_SHARE * backend.free_memory()))
    index = faiss.index_cpu_to_gpu(resources, 0, index)
    rows = backend.to_numpy(x)  # faiss takes host arrays and moves them in pages
    if not index.is_trained:
        index.train(rows)
    index.add(rows)
    return FaissGpuIndex(kind, index, resources, most)


def _faiss_lists(x: Array, lists: int, seed: int, backend: Backend) -> FaissGpuIndex:
    import faiss

    d = int(x.shape[1])
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = seed
    index.cp.min_points_per_centroid = 1  # below 39 faiss only prints a warning
    return _on_faiss(index, x, "faiss ivf", backend, min(lists, FAISS_MAX_NEIGHBOURS))


def _rows(rows: Any, backend: Backend) -> Array:
    x = backend.xp.ascontiguousarray(backend.asarray(rows, dtype=backend.xp.float32))
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f"rows must be [n, d] with d ≥ 1, not of shape {x.shape}")
    _settle(backend)
    return x


def _settle(backend: Backend) -> None:
    # Libraries work on streams of their own, which need not wait for CuPy's: its arrays must be filled first.
    backend.xp.cuda.Device().synchronize()


def _kmeans_library() -> str:
    for module in ("cuml", "cuvs"):
        if find_spec(module) is not None:
            return module
    raise _unavailable("K-means", "cuml", "cuvs")


def _graph_library() -> str:
    if find_spec("pylibcugraph") is not None:
        return "pylibcugraph"
    raise _unavailable("Leiden and connected components", "pylibcugraph")


def _neighbour_library() -> str:
    if find_spec("faiss") is not None:
        import faiss

        if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0:
            return "faiss"
    if find_spec("cuvs") is not None:
        return "cuvs"
    raise _unavailable("nearest neighbours", "cuvs", "faiss")


def _unavailable(part: str, *modules: str) -> BackendUnavailableError:
    commands = " or ".join(f"pip install '{REQUIREMENTS[module]}'" for module in modules)
    return BackendUnavailableError(
        f"{part} on a CUDA device needs {' or '.join(modules)}, which is not installed: {commands}; "
        'or use device = "cpu"'
    )
