"""A store that says something else than the tables is named, each kind of store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hornbeam.errors import StoreError
from hornbeam.index.consistency import check_stores
from hornbeam.index.vectors import write_vectors

DIMENSION = 64


def wrong(version: Path) -> dict[str, str]:
    return {store: problem for store, problem in check_stores(version, DIMENSION).items() if problem}


def test_what_was_just_built_agrees(version: Path) -> None:
    assert not wrong(version)
    assert len(check_stores(version, DIMENSION)) == 6 + 6 + 1 + 2 + 4


def swap_names(version: Path) -> None:
    path = version / "rows" / "entities.arrow"
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.take([1, 0, 2, 3, 4]))


def fewer_vectors(version: Path) -> None:
    rows = np.eye(3, DIMENSION, dtype=np.float32)
    write_vectors(version / "vectors" / "chunks.faiss", iter([rows]), 3, DIMENSION)


def another_number(version: Path, name: str, array: str) -> None:
    path = version / "graph" / f"{name}.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays[array][0] += 1
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("store", "spoil"),
    [
        ("rows/communities.arrow", lambda version: (version / "rows" / "communities.arrow").write_bytes(b"")),
        ("vectors/chunks.faiss", fewer_vectors),
        ("graph/adjacency.npz", lambda version: another_number(version, "adjacency", "indices")),
        ("graph/mentions.npz", lambda version: another_number(version, "mentions", "targets")),
        ("lexical/chunks", lambda version: (version / "lexical" / "chunks" / "index.json").unlink()),
        ("vectors/triples.faiss", lambda version: (version / "vectors" / "triples.faiss").write_bytes(b"x")),
    ],
)
def test_the_store_that_is_wrong_is_named(version: Path, store: str, spoil: Callable[[Path], object]) -> None:
    spoil(version)

    found = wrong(version)

    assert found[store]
    assert set(found) == {store}


def test_rows_in_another_order_are_seen(version: Path) -> None:
    swap_names(version)

    assert "column entity_id differs" in wrong(version)["rows/entities.arrow"]


def test_without_tables_there_is_nothing_to_compare_with(version: Path) -> None:
    (version / "tables" / "chunks.parquet").write_bytes(b"PAR1")

    with pytest.raises(StoreError, match=r"chunks\.parquet is damaged"):
        check_stores(version, DIMENSION)
