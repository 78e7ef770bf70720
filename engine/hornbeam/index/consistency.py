"""Do a version's stores say the same? Recomputed from the files: every id, every link, every count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.index.adjacency import Adjacency
from hornbeam.index.lexical import LEXICAL_KINDS, LexicalIndex
from hornbeam.index.rows import (
    LINKS,
    MAPPED_TABLES,
    Links,
    MappedTable,
    link_pairs,
    referred_rows,
    resolved_ids,
)
from hornbeam.index.vectors import VECTOR_KINDS, VectorIndex
from hornbeam.store.damage import reading

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_stores(version_directory: Path, dimension: int) -> dict[str, str]:
    """What is wrong with each derived store, by its path in the version; "" where it agrees with the tables.

    Args:
        dimension: of the embedder.

    Raises:
        StoreError: a table cannot be read, so that there is nothing to compare with.
    """
    rows = {name: _rows(version_directory, name) for name in MAPPED_TABLES}
    found: dict[str, str] = {}
    for name, problem in _checks(version_directory, rows, dimension):
        try:
            found[name] = problem()
        # Libraries raise anything on damaged files, and every other store is to be looked at all the same.
        except Exception as error:  # noqa: BLE001
            found[name] = " ".join(str(error).split()) or type(error).__name__
    return found


def _checks(directory: Path, rows: dict[str, int], dimension: int) -> Iterator[tuple[str, Callable[[], str]]]:
    for name in MAPPED_TABLES:
        yield f"rows/{name}.arrow", partial(_mapped, directory, name)
    for link in LINKS:
        yield f"graph/{link}.npz", partial(_link, directory, link)
    yield "graph/adjacency.npz", partial(_adjacency, directory, rows["entities"])
    for kind in LEXICAL_KINDS:
        yield f"lexical/{kind}", partial(_lexical, directory, kind, rows[kind])
    for kind, table in VECTOR_KINDS.items():
        yield f"vectors/{kind}.faiss", partial(_vectors, directory, kind, rows[table], dimension)


def _rows(directory: Path, table: str) -> int:
    import pyarrow.parquet as pq

    path = directory / "tables" / f"{table}.parquet"
    with reading(path):
        return int(pq.read_metadata(path).num_rows)


def _mapped(directory: Path, name: str) -> str:
    """Ids and, resolved back through row numbers, the ids that they refer to."""
    mapped = MappedTable(directory, name)
    for column, expected, held in resolved_ids(directory, name, mapped):
        if len(expected) != len(held):
            return f"{len(held)} rows where the table has {len(expected)}"
        if not expected.equals(held):
            return f"column {column} differs from the table's"
    return ""


def _link(directory: Path, link: str) -> str:
    stored = Links.read(directory, link)
    sources, targets, rows = link_pairs(directory, link)
    if len(stored.indptr) != rows + 1 or stored.indptr[-1] != len(stored.targets):
        return f"{len(stored.indptr) - 1} rows, {len(stored.targets)} links; the tables have {rows}"
    held = np.repeat(np.arange(rows), np.diff(stored.indptr))
    if not np.array_equal(_sorted_pairs(held, stored.targets), _sorted_pairs(sources, targets)):
        return f"its {len(held)} links are not those of the tables ({len(sources)})"
    return ""


def _sorted_pairs(sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.int64]:
    order = np.lexsort((targets, sources))
    return np.stack([sources[order], targets[order]]).astype(np.int64)


def _adjacency(directory: Path, entities: int) -> str:
    from hornbeam_kernels.adjacency import adjacency

    stored = Adjacency.read(directory)
    heads, tails = referred_rows(directory, "relations", ("head_id", "tail_id"))
    expected = adjacency(heads, tails, entities)
    same = all(
        np.array_equal(held, right)
        for held, right in zip((stored.indptr, stored.indices, stored.edge_ids), expected, strict=True)
    )
    return "" if same else "its edges are not the relations"


def _lexical(directory: Path, kind: str, rows: int) -> str:
    held = LexicalIndex.open(directory / "lexical" / kind).rows
    return "" if held == rows else f"{held} rows where the table has {rows}"


def _vectors(directory: Path, kind: str, rows: int, dimension: int) -> str:
    VectorIndex.open(directory / "vectors" / f"{kind}.faiss", rows, dimension)
    return ""
