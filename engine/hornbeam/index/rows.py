"""The tables of a version as a retriever reads them: memory-mapped, by row number, already joined.

Parquet is compressed by row group: to read one row, a reader decodes thousands. A query touches a few dozen
rows out of millions, so what queries read is copied once into uncompressed Arrow IPC files, which open in
constant time and cost memory only for the pages that are touched. Identifiers are turned into row numbers
on the way, so that opening needs no join either.

    rows/<table>.arrow      the columns below
    graph/<link>.npz        from a row of one table to rows of another: `Links`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.errors import StoreError
from hornbeam.index.mapped_arrays import map_arrays, save_arrays
from hornbeam.store.damage import reading

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

#: Columns copied as they are, per table. A document's text is left out: a chunk has its own.
_COPIED: dict[str, tuple[str, ...]] = {
    "documents": ("document_id", "source", "title"),
    "chunks": ("chunk_id", "start", "end", "text"),
    "entities": ("entity_id", "name", "type", "description", "aliases"),
    "relations": ("relation_id", "type", "weight", "confidence", "description"),
    "attributes": ("attribute_id", "type", "value", "confidence"),
    "communities": ("community_id", "level", "name", "summary", "size", "keywords"),
}
#: table → (column with an identifier, column with the row number instead, table that it points to)
_RESOLVED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "chunks": (("document_id", "document_row", "documents"),),
    "relations": (("head_id", "head_row", "entities"), ("tail_id", "tail_row", "entities")),
    "attributes": (("entity_id", "entity_row", "entities"),),
    "communities": (("parent_id", "parent_row", "communities"), ("centre_id", "centre_row", "entities")),
}
#: link → (table of pairs, its source column and table, its target column and table, has a character span)
_PAIRS: dict[str, tuple[str, str, str, str, str, bool]] = {
    "mentions": ("mentions", "entity_id", "entities", "chunk_id", "chunks", True),
    "relation_chunks": ("relation_evidence", "relation_id", "relations", "chunk_id", "chunks", False),
    "attribute_chunks": ("attribute_evidence", "attribute_id", "attributes", "chunk_id", "chunks", True),
    "members": ("community_members", "community_id", "communities", "entity_id", "entities", False),
}
MAPPED_TABLES = tuple(_COPIED)
LINKS = (*_PAIRS, "entity_attributes", "children")

_TEXT_BATCH = 16_384  # rows of a record batch
_LINK_BATCH = 524_288  # rows of identifiers resolved at once: the lookup table is built once per batch


@dataclass(frozen=True, slots=True)
class Links:
    """Rows of another table for every row of one, most confident first, then by row."""

    indptr: NDArray[np.int64]  # [n + 1]
    targets: NDArray[np.int32]  # [m]
    spans: NDArray[np.int32]  # [m, 2] characters within the chunk's text; [0, 2] where links have none

    def of(self, row: int) -> NDArray[np.int32]:
        return self.targets[self.indptr[row] : self.indptr[row + 1]]

    def spans_of(self, row: int) -> NDArray[np.int32]:
        return self.spans[self.indptr[row] : self.indptr[row + 1]]

    def count(self, row: int) -> int:
        return int(self.indptr[row + 1] - self.indptr[row])

    @staticmethod
    def read(version_directory: Path, name: str) -> Links:
        path = version_directory / "graph" / f"{name}.npz"
        with reading(path):
            arrays = map_arrays(path)
            return Links(arrays["indptr"], arrays["targets"], arrays["spans"])


class MappedTable:
    """One `rows/<table>.arrow`, memory-mapped."""

    def __init__(self, version_directory: Path, name: str) -> None:
        import pyarrow as pa

        path = version_directory / "rows" / f"{name}.arrow"
        with reading(path):
            self._table: Any = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
            self._table.validate()
            for column in self._table.columns:
                for piece in column.chunks:
                    _check_offsets(piece)
        self._columns: dict[str, Any] = {
            column: self._table.column(column) for column in self._table.column_names
        }

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def get(self, column: str, row: int) -> Any:
        return self._columns[column][row].as_py()

    def text(self, column: str, row: int) -> str:
        return str(self._columns[column][row].as_py())

    def arrow(self, column: str) -> pa.Array:
        """A column, mapped where it is one piece."""
        return self._table.column(column).combine_chunks()

    def column(self, column: str) -> pa.ChunkedArray:
        """A column, mapped, in as many pieces as the file has."""
        return self._columns[column]

    def array(self, column: str) -> NDArray[Any]:
        """A numeric column, copied into memory."""
        return np.asarray(self._table.column(column).to_numpy())

    def distinct(self, column: str) -> tuple[str, ...]:
        """The values of a text column, sorted; one pass over it."""
        import pyarrow.compute as pc

        return tuple(sorted(pc.unique(self._table.column(column)).to_pylist()))

    def row_of(self, column: str, value: str) -> int | None:
        """The first row with this text; one pass over the column."""
        import pyarrow.compute as pc

        row = int(pc.index(self._table.column(column), value).as_py())
        return None if row < 0 else row

    def batches(self, *columns: str, rows: NDArray[np.int64] | None = None) -> Iterator[dict[str, list[Any]]]:
        """Some rows, ascending, or all, in order, a record batch at a time, as Python values."""
        import pyarrow as pa

        begins = 0
        for batch in self._table.select(list(columns)).to_batches():
            if rows is None:
                yield batch.to_pydict()
            else:
                inside = slice(*np.searchsorted(rows, (begins, begins + batch.num_rows)).tolist())
                if inside.stop > inside.start:
                    yield batch.take(pa.array(rows[inside] - begins)).to_pydict()
            begins += batch.num_rows


def write_rows(version_directory: Path) -> dict[str, int]:
    """Write `rows/` and the links in `graph/` from `tables/`; returns the rows of every mapped table.

    Streams; resident are the identifiers of one table and the links of one kind at a time.

    Raises:
        StoreError: a table is missing or refers to an identifier that the other table does not have.
    """
    (version_directory / "rows").mkdir(exist_ok=True)
    (version_directory / "graph").mkdir(exist_ok=True)
    counts = {name: _copy_table(version_directory, name) for name in _COPIED}
    for link, (table, source, source_table, target, target_table, has_span) in _PAIRS.items():
        wanted = [source, target, *(["start", "end"] if has_span else [])]
        ranked = table != "community_members"
        batches = list(
            _resolved_batches(
                version_directory,
                table,
                [*wanted, *(["confidence"] if ranked else [])],
                ((source, "source", source_table), (target, "target", target_table)),
                _LINK_BATCH,
            )
        )
        sources, targets = _column(batches, "source", np.int32), _column(batches, "target", np.int32)
        spans = np.zeros((0, 2), np.int32)
        if has_span:
            ends = (_column(batches, "start", np.int32), _column(batches, "end", np.int32))
            spans = np.stack(ends, axis=1)
        confidence = _column(batches, "confidence", np.float64) if ranked else np.zeros(len(sources))
        _write_links(version_directory, link, sources, targets, counts[source_table], confidence, spans)
    attributes = MappedTable(version_directory, "attributes")
    _write_links(
        version_directory,
        "entity_attributes",
        attributes.array("entity_row"),
        np.arange(len(attributes), dtype=np.int32),
        counts["entities"],
        attributes.array("confidence"),
    )
    parents = MappedTable(version_directory, "communities").array("parent_row")
    children = np.flatnonzero(parents >= 0).astype(np.int32)
    _write_links(version_directory, "children", parents[children], children, counts["communities"])
    return counts


def resolved_ids(
    version_directory: Path, name: str, mapped: MappedTable
) -> Iterator[tuple[str, pa.Array, pa.Array]]:
    """(column, as the table has it, as the mapped rows have it) of every identifier, for a comparison."""
    import pyarrow.compute as pc

    own = _COPIED[name][0]
    yield own, _identifiers(version_directory, name), mapped.arrow(own)
    for identifier, row, table in _RESOLVED.get(name, ()):
        expected = _parquet(version_directory, name).read(columns=[identifier]).column(0).combine_chunks()
        rows = mapped.arrow(row)
        known = pc.if_else(pc.less(rows, 0), None, rows)
        yield identifier, expected, _identifiers(version_directory, table).take(known)


def referred_rows(
    version_directory: Path, name: str, columns: tuple[str, ...]
) -> tuple[NDArray[np.int32], ...]:
    """For each identifier column of a table the rows that it refers to, −1 for none, int32 [rows]."""
    resolved = tuple(entry for entry in _RESOLVED[name] if entry[0] in columns)
    batches = list(_resolved_batches(version_directory, name, list(columns), resolved, _LINK_BATCH))
    return tuple(_column(batches, row, np.int32) for _, row, _ in resolved)


def link_pairs(version_directory: Path, link: str) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """(source rows, target rows, rows of the source's table) of a link, as the tables have them."""
    if link == "entity_attributes":
        (owners,) = referred_rows(version_directory, "attributes", ("entity_id",))
        entities = len(_identifiers(version_directory, "entities"))
        return owners, np.arange(len(owners), dtype=np.int32), entities
    if link == "children":
        (parents,) = referred_rows(version_directory, "communities", ("parent_id",))
        children = np.flatnonzero(parents >= 0).astype(np.int32)
        return parents[children], children, len(parents)
    table, source, source_table, target, target_table, _ = _PAIRS[link]
    resolved = ((source, "source", source_table), (target, "target", target_table))
    batches = list(_resolved_batches(version_directory, table, [source, target], resolved, _LINK_BATCH))
    rows = len(_identifiers(version_directory, source_table))
    return _column(batches, "source", np.int32), _column(batches, "target", np.int32), rows


def _copy_table(version_directory: Path, name: str) -> int:
    import pyarrow as pa

    resolved = _RESOLVED.get(name, ())
    columns = [*_COPIED[name], *(identifier for identifier, _, _ in resolved)]
    path = version_directory / "rows" / f"{name}.arrow"
    schema = _mapped_schema(name)
    rows = 0
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in _resolved_batches(version_directory, name, columns, resolved, _LINK_BATCH):
            table = pa.Table.from_arrays(
                [batch[field.name].cast(field.type) for field in schema], schema=schema
            )
            writer.write_table(table, max_chunksize=_TEXT_BATCH)
            rows += table.num_rows
    return rows


def _mapped_schema(name: str) -> pa.Schema:
    import pyarrow as pa

    from hornbeam.records import TABLES, arrow_schema

    source = arrow_schema(TABLES[name])
    copied = [source.field(column) for column in _COPIED[name]]
    return pa.schema([*copied, *(pa.field(row, pa.int32()) for _, row, _ in _RESOLVED.get(name, ()))])


def _resolved_batches(
    version_directory: Path,
    name: str,
    columns: list[str],
    resolved: tuple[tuple[str, str, str], ...],
    batch_rows: int,
) -> Iterator[dict[str, Any]]:
    """Batches of a Parquet table, column name → Arrow array, with the row numbers of identifiers added."""
    import pyarrow.compute as pc

    identifiers = {table: _identifiers(version_directory, table) for _, _, table in resolved}
    for batch in _parquet(version_directory, name).iter_batches(batch_rows, columns=columns):
        arrays: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        for identifier, row, table in resolved:
            found = pc.index_in(arrays[identifier], value_set=identifiers[table])
            unknown = pc.filter(
                arrays[identifier], pc.and_(pc.is_null(found), pc.is_valid(arrays[identifier]))
            )
            if len(unknown):
                raise StoreError(
                    f"{version_directory}: {name}.{identifier} {unknown[0].as_py()!r} is not in table "
                    f"{table} ({len(unknown)} such rows); the version is damaged, build it again"
                )
            arrays[row] = found.fill_null(-1)
        yield arrays


def _check_offsets(array: Any) -> None:
    """Texts and lists end where the next ones begin, and not before they do: Arrow takes that for granted,
    and ends the process where it is not so. Everything else that it relies on is in `Table.validate`."""
    import pyarrow as pa

    if not len(array):
        return
    if pa.types.is_list(array.type):
        offsets = array.offsets.to_numpy()
        _check_offsets(array.values)
    elif pa.types.is_string(array.type):
        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
    else:
        return
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError("places of texts are out of order")


def _parquet(version_directory: Path, name: str) -> Any:
    import pyarrow.parquet as pq

    path = version_directory / "tables" / f"{name}.parquet"
    with reading(path):
        return pq.ParquetFile(path, memory_map=True)


def _identifiers(version_directory: Path, table: str) -> Any:
    """The identifiers of a table in row order, an Arrow array."""
    column = _COPIED[table][0]
    return _parquet(version_directory, table).read(columns=[column]).column(column).combine_chunks()


def _column(batches: list[dict[str, Any]], name: str, dtype: type[np.generic]) -> NDArray[Any]:
    if not batches:
        return np.zeros(0, dtype)
    parts: list[NDArray[Any]] = [
        np.asarray(batch[name].to_numpy(zero_copy_only=False), dtype) for batch in batches
    ]
    return np.concatenate(parts)


def _write_links(
    version_directory: Path,
    name: str,
    sources: NDArray[Any],
    targets: NDArray[Any],
    rows: int,
    confidence: NDArray[np.float64] | None = None,
    spans: NDArray[np.int32] | None = None,
) -> None:
    """Group pairs by source row: CSR, within a row by falling confidence, then target, then start."""
    spans = np.zeros((0, 2), np.int32) if spans is None else spans
    keys: list[NDArray[Any]] = [targets]
    if len(spans):
        keys.insert(0, spans[:, 0])
    if confidence is not None:
        keys.append(-confidence)
    order = np.lexsort((*keys, sources))
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=rows), out=indptr[1:])
    save_arrays(
        version_directory / "graph" / f"{name}.npz",
        indptr=indptr,
        targets=targets[order].astype(np.int32),
        spans=spans[order] if len(spans) else spans,
    )
