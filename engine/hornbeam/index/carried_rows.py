"""What a version that is being made can take over from an earlier one: rows whose text is the same there.

Rows are compared column by column, by id: nothing is read as Python objects, so what this costs grows with
the bytes of the tables and not with the number of their texts. A vector depends on its text alone, up to the
last bit: which texts are encoded side by side moves it by some 1e-7. So a version whose vectors are partly
taken over is not the one, byte for byte, that embeds everything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.errors import StoreError
from hornbeam.index.rows import MappedTable
from hornbeam.index.texts import tells_nothing
from hornbeam.index.vectors import VECTOR_KINDS, VectorIndex

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


class CarriedRows:
    """Rows of the version in `now` by the row of the version in `earlier` that has their text.

    Each property is an array int64 [rows of now], −1 where the earlier version has no such row. `entities`,
    `names` and `written` need the tables of entities and attributes of `now`, the others its `rows/`.

    Args:
        earlier: directory of an indexed version.
        now: directory of the version that is being made.
        dimension: of the embedder of both.
    """

    def __init__(self, earlier: Path, now: Path, dimension: int) -> None:
        self.earlier = earlier
        self._now = now
        self._dimension = dimension

    def vectors(self, kind: str) -> VectorIndex:
        """The earlier vectors of a kind."""
        rows = len(self._earlier(VECTOR_KINDS[kind]))
        return VectorIndex.open(self.earlier / "vectors" / f"{kind}.faiss", rows, self._dimension)

    def before(self, kind: str) -> NDArray[np.int64]:
        """The property of a kind of vectors."""
        found: NDArray[np.int64] = getattr(self, kind)
        return found

    @cached_property
    def entities(self) -> NDArray[np.int64]:
        """By what is embedded: name, type, description, attributes."""
        import pyarrow.compute as pc

        now, place = self._entities_now, self._entity_place
        same = self._same(now, self._earlier("entities"), place, ("name", "type", "description"))
        touched = places(now["entity_id"], pc.unique(self._owners_of_other_attributes())) >= 0
        return np.where(same & ~touched, place, -1)

    @cached_property
    def names(self) -> NDArray[np.int64]:
        """By name alone, as triples show it."""
        same = self._same(self._entities_now, self._earlier("entities"), self._entity_place, ("name",))
        return np.where(same, self._entity_place, -1)

    @cached_property
    def written(self) -> NDArray[np.int64]:
        """By name and aliases, as lexical search sees an entity."""
        now, earlier, place = self._entities_now, self._earlier("entities"), self.names
        same = _equal({"aliases": now["aliases"]}, earlier, place, _equal_lists)
        return np.where(same, place, -1)

    @cached_property
    def triples(self) -> NDArray[np.int64]:
        now, earlier = MappedTable(self._now, "relations"), self._earlier("relations")
        place = places(now.arrow("relation_id"), earlier.arrow("relation_id"))
        same = self._same_mapped(now, earlier, place, ("type",))
        for row in ("head_row", "tail_row"):
            # The id says which entities; their names are to be the same, too.
            same &= self.names[now.array(row)] == _taken(earlier.array(row), place)
        told = _told_by_sentence(now)
        same &= ~told | self._same_mapped(now, earlier, np.where(told, place, -1), ("description",))
        return np.where(same, place, -1)

    @cached_property
    def chunks(self) -> NDArray[np.int64]:
        now, earlier = MappedTable(self._now, "chunks"), self._earlier("chunks")
        place = places(now.arrow("chunk_id"), earlier.arrow("chunk_id"))
        same = self._same_mapped(now, earlier, place, ("text",))
        documents, documents_before = MappedTable(self._now, "documents"), self._earlier("documents")
        document = places(documents.arrow("document_id"), documents_before.arrow("document_id"))
        entitled = self._same_mapped(documents, documents_before, document, ("title", "source"))
        home = now.array("document_row")
        same &= entitled[home] & (document[home] == _taken(earlier.array("document_row"), place))
        return np.where(same, place, -1)

    @cached_property
    def communities(self) -> NDArray[np.int64]:
        now, earlier = MappedTable(self._now, "communities"), self._earlier("communities")
        place = places(now.arrow("community_id"), earlier.arrow("community_id"))
        same = self._same_mapped(now, earlier, place, ("name", "summary"))
        same &= _equal({"keywords": now.column("keywords")}, earlier, place, _equal_lists)
        return np.where(same, place, -1)

    def _earlier(self, table: str) -> MappedTable:
        return MappedTable(self.earlier, table)

    @cached_property
    def _entities_now(self) -> pa.Table:
        return read_table(self._now, "entities", ("entity_id", "name", "type", "description", "aliases"))

    @cached_property
    def _entity_place(self) -> NDArray[np.int64]:
        return places(self._entities_now["entity_id"], self._earlier("entities").arrow("entity_id"))

    def _owners_of_other_attributes(self) -> pa.Array:
        """Entities with an attribute that is new, gone or not what it was."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = ("type", "value", "confidence")
        now = read_table(self._now, "attributes", ("attribute_id", "entity_id", *columns))
        earlier = self._earlier("attributes")
        place = places(now["attribute_id"], earlier.arrow("attribute_id"))
        same = self._same(now, earlier, place, columns)
        entity_ids = self._earlier("entities").arrow("entity_id")
        there = np.flatnonzero(same)
        owner = now["entity_id"].combine_chunks().take(_indices(there))
        owner_before = entity_ids.take(_indices(earlier.array("entity_row")[place[there]]))
        same[there] = _booleans(pc.equal(owner, owner_before))
        left = np.ones(len(earlier), bool)
        left[place[same]] = False
        owners = earlier.array("entity_row")[left]
        return pa.concat_arrays(
            [
                now["entity_id"].combine_chunks().filter(pa.array(~same)),
                entity_ids.take(_indices(owners)),
            ]
        )

    def _same(
        self, now: pa.Table, earlier: MappedTable, place: NDArray[np.int64], columns: tuple[str, ...]
    ) -> NDArray[np.bool_]:
        return _equal({column: now[column] for column in columns}, earlier, place)

    def _same_mapped(
        self, now: MappedTable, earlier: MappedTable, place: NDArray[np.int64], columns: tuple[str, ...]
    ) -> NDArray[np.bool_]:
        return _equal({column: now.column(column) for column in columns}, earlier, place)


def _told_by_sentence(relations: MappedTable) -> NDArray[np.bool_]:
    """Facts whose text is their description."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = relations.distinct("type")
    silent = pa.array([kind for kind in types if tells_nothing(kind)], pa.string())
    return _booleans(pc.is_in(relations.arrow("type"), value_set=silent))


#: Between the words of a list that are compared as one text: a control character, which no name holds.
_SEPARATOR = "\x1f"


def places(values: Any, among: Any) -> NDArray[np.int64]:
    """Row of each value in `among`, −1 where it is not there: int64 [values]."""
    import pyarrow as pa
    import pyarrow.compute as pc

    value_set = among.combine_chunks() if isinstance(among, pa.ChunkedArray) else among
    found = pc.fill_null(pc.index_in(values, value_set=value_set), -1)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def read_table(version_directory: Path, name: str, columns: tuple[str, ...]) -> pa.Table:
    """Columns of one of a version's tables.

    Raises:
        StoreError: it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = version_directory / "tables" / f"{name}.parquet"
    try:
        return pq.read_table(path, columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"table {path} cannot be read: {error}") from error


#: Rows that are compared at once, and rows of the earlier version among which theirs are looked for: texts of
#: a whole table may be more than one array can hold.
_ROWS_AT_ONCE, _RANGE_AT_ONCE = 16_384, 65_536


def _equal(
    ours: dict[str, pa.ChunkedArray],
    earlier: MappedTable,
    place: NDArray[np.int64],
    compared: Callable[[Any, Any], Any] | None = None,
) -> NDArray[np.bool_]:
    """Where a row has a place and each of its columns is what it is there.

    Args:
        compared: two arrays, value by value; None: as they are.
    """
    import pyarrow.compute as pc

    compared = compared or pc.equal
    found = np.zeros(len(place), bool)
    start, step = 0, _ROWS_AT_ONCE
    while start < len(place):
        some = place[start : start + step]
        there = np.flatnonzero(some >= 0)
        low, high = some[there].min(initial=len(earlier)), some[there].max(initial=-1) + 1
        if high - low > _RANGE_AT_ONCE and step > 1:
            step //= 2  # rows that are far apart there: fewer of them
            continue
        same = np.ones(len(there), bool)
        for column, values in ours.items() if len(there) else ():
            mine = values.slice(start, len(some)).combine_chunks().take(_indices(there))
            theirs = earlier.column(column).slice(low, high - low).combine_chunks()
            same &= _booleans(compared(mine, theirs.take(_indices(some[there] - low))))
        found[start + there] = same
        start, step = start + step, _ROWS_AT_ONCE
    return found


def _equal_lists(ours: pa.Array, theirs: pa.Array) -> pa.Array:
    """Lists of texts: as many, and joined the same. No text holds the separator."""
    import pyarrow.compute as pc

    return pc.and_(
        pc.equal(pc.list_value_length(ours), pc.list_value_length(theirs)),
        pc.equal(pc.binary_join(ours, _SEPARATOR), pc.binary_join(theirs, _SEPARATOR)),
    )


def _taken(values: NDArray[Any], place: NDArray[np.int64]) -> NDArray[Any]:
    """Values by place, −2 where there is none."""
    found: NDArray[Any] = np.full(len(place), -2, values.dtype)
    there = place >= 0
    found[there] = values[place[there]]
    return found


def _indices(rows: NDArray[np.integer[Any]]) -> pa.Array:
    import pyarrow as pa

    return pa.array(rows, pa.int64())


def _booleans(values: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.asarray(values.to_numpy(zero_copy_only=False), bool)
    return found
