"""Entities and chunks as one graph to walk on, `graph/walk.npz`.

Node i below the number of entities is entity row i; the others are chunk rows, in order. An entity is joined
to every chunk that mentions it, and to every entity that a relation joins it to, each edge of weight 1: so a
walk leads from what a question names to the texts that speak of it, and on to what else they speak of.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.index.mapped_arrays import map_arrays, save_arrays
from hornbeam.index.rows import Links
from hornbeam.store.damage import reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hornbeam_kernels.local_ranking import WalkGraph


def write_walk(
    version_directory: Path, heads: NDArray[Any], tails: NDArray[Any], entities: int, chunks: int
) -> None:
    """`heads`, `tails`: entity rows of each relation, integers [relations]. The mentions are read."""
    from hornbeam_kernels.local_ranking import walk_graph

    mentions = Links.read(version_directory, "mentions")
    mentioning = np.repeat(np.arange(entities), np.diff(mentions.indptr))
    places = np.unique(mentioning * max(1, chunks) + mentions.targets)  # an entity stands in a chunk or not
    apart = heads != tails
    joined = np.unique(
        np.minimum(heads, tails)[apart].astype(np.int64) * max(1, entities) + np.maximum(heads, tails)[apart]
    )
    graph = walk_graph(
        np.concatenate((places // max(1, chunks), joined // max(1, entities))),
        np.concatenate((entities + places % max(1, chunks), joined % max(1, entities))),
        entities + chunks,
    )
    path = version_directory / "graph" / "walk.npz"
    save_arrays(path, indptr=graph.indptr, indices=graph.indices, weights=graph.weights)


def read_walk(version_directory: Path) -> WalkGraph:
    """Raises StoreError when the file is missing or damaged."""
    from hornbeam_kernels.local_ranking import WalkGraph

    path = version_directory / "graph" / "walk.npz"
    with reading(path):
        arrays = map_arrays(path)
        return WalkGraph(arrays["indptr"], arrays["indices"], arrays["weights"])
