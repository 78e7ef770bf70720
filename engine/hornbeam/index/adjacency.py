"""Entities ⇄ relations as compressed sparse rows, `graph/adjacency.npz`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.index.mapped_arrays import map_arrays, save_arrays
from hornbeam.store.damage import reading

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Every relation is seen from both of its ends; E = 2 · relations − self-loops."""

    indptr: NDArray[np.int64]  # [entities + 1]
    indices: NDArray[np.int64]  # [E] the neighbour's entity row
    edge_ids: NDArray[np.int64]  # [E] the relation's row

    def edges_of(self, entity: int) -> NDArray[np.int64]:
        return self.edge_ids[self.indptr[entity] : self.indptr[entity + 1]]

    def edges_around(self, entities: NDArray[np.integer[Any]], most: int) -> NDArray[np.int64]:
        """Relation rows of each of `entities` in turn, the first `most` of each."""
        starts = self.indptr[entities]
        counts = np.minimum(self.indptr[entities + 1] - starts, most)
        before = np.cumsum(counts) - counts
        places = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
        edges: NDArray[np.int64] = self.edge_ids[places]
        return edges

    @staticmethod
    def read(version_directory: Path) -> Adjacency:
        path = version_directory / "graph" / "adjacency.npz"
        with reading(path):
            arrays = map_arrays(path)
            return Adjacency(arrays["indptr"], arrays["indices"], arrays["edge_ids"])


def write_adjacency(version_directory: Path, heads: NDArray[Any], tails: NDArray[Any], entities: int) -> None:
    """`heads`, `tails`: entity rows of each relation, integers [relations]."""
    from hornbeam_kernels.adjacency import adjacency

    indptr, indices, edge_ids = adjacency(heads, tails, entities)
    path = version_directory / "graph" / "adjacency.npz"
    path.parent.mkdir(exist_ok=True)
    save_arrays(path, indptr=indptr, indices=indices, edge_ids=edge_ids)
