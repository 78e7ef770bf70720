"""Segments: immutable, content-addressed Parquet files of (key, payload) rows, sorted by key."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from hornbeam.errors import StoreError
from hornbeam.store.disk import sync_directory, sync_file

#: Rows that are decoded together. A lookup is of single keys in any order, so this is how many neighbours
#: each costs; smaller groups compress worse and make the file's footer longer.
_ROWS_PER_GROUP = 16


def write_segment(folder: Path, kind: str, rows: Sequence[tuple[str, bytes]], format_version: int) -> str:
    """Write rows as a segment; durable on return, with its name, under which it appears all at once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)
    digest = hashlib.sha256()
    for key, payload in rows:
        digest.update(key.encode() + len(payload).to_bytes(8, "little") + payload)
    name = f"{kind}-{digest.hexdigest()[:32]}.parquet"
    table = pa.table(
        {
            "key": pa.array([key for key, _ in rows], pa.string()),
            "payload": pa.array([payload for _, payload in rows], pa.large_binary()),
        }
    ).replace_schema_metadata({"hornbeam_format": str(format_version), "kind": kind})
    temporary = folder / f".{name}.{os.getpid()}"
    pq.write_table(
        table,
        temporary,
        compression="zstd",
        row_group_size=_ROWS_PER_GROUP,
        # Payloads are all different: no dictionary, and no statistics of whole documents in the footer.
        use_dictionary=False,
        write_statistics=["key"],
        write_page_checksum=True,
    )
    sync_file(temporary)
    temporary.rename(folder / name)
    sync_directory(folder)
    return name


def check_segment(path: Path) -> None:
    """Read all of a segment and compare it with its name, which is its content's hash.

    Raises:
        StoreError: it is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    digest = hashlib.sha256()
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(_ROWS_PER_GROUP):
                for key, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    digest.update(key.encode() + len(payload).to_bytes(8, "little") + payload)
    except FileNotFoundError as error:
        raise StoreError("missing") from error
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"damaged: {' '.join(str(error).split())}") from error
    if digest.hexdigest()[:32] != path.stem.rpartition("-")[2]:
        raise StoreError("damaged: its rows are not those that it is named after")


def segment_keys(path: Path) -> list[str]:
    """In the order of the rows.

    Raises:
        StoreError: the file is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        keys: list[str] = pq.read_table(path, columns=["key"])["key"].to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"segment {path} is missing or damaged: {error}") from error
    return keys


def segment_rows(path: Path) -> int:
    """
    Raises:
        StoreError: the file is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"segment {path} is missing or damaged: {error}") from error


def read_segment(path: Path, places: Iterable[int]) -> dict[int, bytes]:
    """Payloads at the given rows, and their neighbours.

    Raises:
        StoreError: the file is missing, damaged (its pages carry checksums) or has no such row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    places = sorted(set(places))
    found: dict[int, bytes] = {}
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in sorted({place // _ROWS_PER_GROUP for place in places}):
                payloads = file.read_row_group(group, columns=["payload"])["payload"].to_pylist()
                found.update(enumerate(payloads, start=group * _ROWS_PER_GROUP))
    except (OSError, pa.ArrowException, IndexError) as error:
        raise StoreError(f"segment {path} is missing or damaged: {error}") from error
    if any(place not in found for place in places):
        raise StoreError(f"segment {path} is damaged: it has no row {max(places)}")
    return found
