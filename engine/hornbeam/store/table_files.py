"""Parquet tables written piece by piece, in bounded memory and with the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hornbeam.store.damage import reading

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 20_000
#: Characters of one table's rows that wait in memory at most, give or take one row.
_CHARACTERS_PER_BATCH = 16 << 20


@contextmanager
def open_tables(directory: Path) -> Iterator[Any]:
    """A DuckDB connection with a view of each table of a version directory.

    Raises:
        StoreError: a table is damaged.
    """
    import duckdb

    with duckdb.connect() as connection:
        for path in sorted((directory / "tables").glob("*.parquet")):
            quoted = str(path).replace("'", "''")
            with reading(path):
                connection.execute(f"CREATE VIEW {path.stem} AS SELECT * FROM read_parquet('{quoted}')")
        yield connection


class TableWriter:
    """A Parquet file written in batches of rows, each a row group, or in record batches of any size, which
    become row groups of a fixed number of rows: bytes must not depend on how DuckDB cut its result."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._parquet = pq.ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._waiting_rows:
            self._write(self._waiting_rows)
        self._parquet.close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        self.rows += batch.num_rows
        self._waiting.append(pa.Table.from_batches([batch]).select(self._schema.names).cast(self._schema))
        self._waiting_rows += batch.num_rows
        while self._waiting_rows >= ROWS_PER_BATCH:
            self._write(ROWS_PER_BATCH)

    def write_rows(self, rows: list[dict[str, Any]]) -> None:
        import pyarrow as pa

        self.rows += len(rows)
        self._parquet.write_table(pa.Table.from_pylist(rows, schema=self._schema))

    def _write(self, rows: int) -> None:
        import pyarrow as pa

        table = pa.concat_tables(self._waiting)
        # One chunk: pages end where chunks do.
        self._parquet.write_table(table.slice(0, rows).combine_chunks(), row_group_size=rows)
        rest = table.slice(rows)
        self._waiting, self._waiting_rows = ([rest] if rest.num_rows else []), rest.num_rows


@dataclass(slots=True)
class TableWriters:
    """Several tables written side by side, buffered."""

    _open: dict[str, TableWriter] = field(default_factory=dict)
    _buffers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _characters: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name, writer in self._open.items():
            self._flush(name)
            writer.__exit__()

    def open(self, name: str, folder: Path, schema: pa.Schema, file: str = "") -> None:
        """
        Args:
            file: its name, where that is not the table's.
        """
        self._open[name] = TableWriter(folder / f"{file or name}.parquet", schema)
        self._buffers[name] = []
        self._characters[name] = 0

    def add(self, name: str, row: dict[str, Any]) -> None:
        self._buffers[name].append(row)
        self._characters[name] += sum(len(value) for value in row.values() if isinstance(value, str))
        full = self._characters[name] >= _CHARACTERS_PER_BATCH
        if full or len(self._buffers[name]) >= ROWS_PER_BATCH:
            self._flush(name)

    def _flush(self, name: str) -> None:
        if self._buffers[name]:
            self._open[name].write_rows(self._buffers[name])
            self._buffers[name] = []
            self._characters[name] = 0
