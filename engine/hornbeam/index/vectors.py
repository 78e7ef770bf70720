"""Vector files, `vectors/<kind>.faiss`: row i of the file is row i of the kind's table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.errors import StoreError
from hornbeam.index.threads import one_thread
from hornbeam.store.damage import index_of, reading, repair_hint

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: kind → the table whose rows the vectors belong to
VECTOR_KINDS = {
    "entities": "entities",
    "triples": "relations",
    "chunks": "chunks",
    "communities": "communities",
}


#: Rows from which on a compressed copy is scanned in place of the vectors, with recall@10 of at least .95
#: (`build_scanned_index`): 10,000 of dimension 384 are 15 MB to read for every question, which searches four
#: kinds.
EXACT_BELOW = 10_000


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """A mapped faiss index over unit vectors; exact below `EXACT_BELOW` rows, above scanned by codes."""

    index: Any  # faiss.Index
    vectors: NDArray[np.float32] | None  # [n, d] view of the file; None for an inverted file

    @staticmethod
    def open(path: Path, rows: int, dimension: int) -> VectorIndex:
        """Raises StoreError when the file is missing, damaged, or not `rows` × `dimension`."""
        import faiss

        with reading(path):
            # Pages are read when they are touched and shared between processes.
            index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        if index.ntotal != rows or index.d != dimension:
            raise StoreError(
                f"vectors {path}: {index.ntotal} × {index.d} where the table and the embedder have "
                f"{rows} × {dimension}; {repair_hint(index_of(path))}"
            )
        if isinstance(index, faiss.IndexIVF):
            index.make_direct_map()  # row → place in its list, for `similarities`; 8 bytes a row
            return VectorIndex(index, None)
        if not rows:
            return VectorIndex(index, np.zeros((0, dimension), np.float32))
        exact = index
        if isinstance(index, faiss.IndexRefineFlat):
            exact = faiss.downcast_index(index.refine_index)
        flat: NDArray[np.float32] = faiss.rev_swig_ptr(exact.get_xb(), rows * dimension)
        return VectorIndex(index, flat.reshape(rows, dimension))

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows int64 [≤ k] and cosines float32 [≤ k] of the nearest to `query` [d], best first."""
        from hornbeam_kernels.search import search

        with one_thread():
            scores, rows = search(self.index, query[None, :], min(k, len(self)))
        filled = rows[0] >= 0
        return rows[0][filled], scores[0][filled]

    def similarities(
        self, query: NDArray[np.float32], rows: NDArray[np.integer[Any]] | None = None
    ) -> NDArray[np.float32]:
        """Cosine of `query` [d] with each of `rows` [m], or with every row: float32 [m]."""
        if rows is None and self.vectors is not None:
            gathered = self.vectors
        else:
            gathered = self.rows(np.arange(len(self)) if rows is None else rows)
        # Not `gathered @ query`: BLAS would share so small a product among threads that wait spinning.
        cosines: NDArray[np.float32] = np.einsum("ij,j->i", gathered, query)
        return cosines

    def rows(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """The vectors of `rows` [m], as they were written: float32 [m, d]."""
        found: NDArray[np.float32]
        if self.vectors is not None:
            found = self.vectors[rows]
            return found
        with one_thread():
            found = self.index.reconstruct_batch(np.ascontiguousarray(rows, dtype=np.int64))
        return found


def write_vectors(
    path: Path,
    batches: Iterable[NDArray[np.float32]],
    rows: int,
    dimension: int,
    like: VectorIndex | None = None,
) -> None:
    """Index `rows` unit vectors that come in batches [b, d] and write them.

    Args:
        like: an index of nearly the same vectors; what its codes were learned from is taken over.

    The batches are gathered in a memory-mapped file beside `path`, so that memory holds one batch and the
    faiss index (4 bytes × rows × dimension), not the vectors twice.
    """
    import faiss

    from hornbeam_kernels.search import build_index, build_scanned_index

    if not rows:
        faiss.write_index(build_index(np.zeros((0, dimension), np.float32)), str(path))
        return
    with mapped_rows(path.with_suffix(".part"), rows, dimension) as gathered:
        filled = 0
        for batch in batches:
            gathered[filled : filled + len(batch)] = batch
            filled += len(batch)
        if filled != rows:
            raise StoreError(f"{path}: {filled} vectors for {rows} rows; the table changed while it was read")
        if rows < EXACT_BELOW:
            index = build_index(gathered)
        else:
            index = build_scanned_index(gathered, like=like.index if like is not None else None)
        faiss.write_index(index, str(path))


@contextmanager
def mapped_rows(path: Path, rows: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    """Room for float32 [rows, dimension], rows at least one, in a file that is gone afterwards."""
    try:
        _reserve(path, 4 * rows * dimension)
        yield np.memmap(path, mode="r+", dtype=np.float32, shape=(rows, dimension))
    finally:
        path.unlink(missing_ok=True)


def _reserve(path: Path, size: int) -> None:
    """Make a file of that size. Writing through a mapping to a disk that is full would end the process."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
