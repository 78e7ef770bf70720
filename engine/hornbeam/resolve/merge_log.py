"""The merges of a version, and undoing them: a decision in the ledger that the next build respects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hornbeam.errors import StoreError, UsageError
from hornbeam.records import Merge
from hornbeam.resolve.separations import Separation, read_separations, rejoin, separate
from hornbeam.store.damage import reading
from hornbeam.store.ledger import Ledger
from hornbeam.store.lock import write_lock
from hornbeam.store.versions import Version, open_current


@dataclass(frozen=True, slots=True)
class MergeLog:
    version_id: str
    merges: list[Merge]
    undone: list[Separation]  # by people, so far; the version may be older


def read_merge_log(index: Path) -> MergeLog:
    """What the current version merged, and what was undone.

    Raises:
        StoreError: no index, no current version, or one of before there was a log.
    """
    version = open_current(index)
    with Ledger(index, create=False) as ledger:
        return MergeLog(version.version_id, _read_merges(version), read_separations(ledger))


def undo_merges(index: Path, ids: Sequence[str]) -> list[Separation]:
    """Tell apart what the merges brought together, from the next build on.

    Raises:
        UsageError: an id is no merge of the current version; nothing is written then.
        StoreError: no index, or another process writes it.
    """
    version = open_current(index)
    merges = {merge.merge_id: merge for merge in _read_merges(version)}
    with write_lock(index), Ledger(index, create=False) as ledger:
        known = {separation.merge_id: separation for separation in read_separations(ledger)}
        for key in ids:
            if key not in merges and key not in known:
                raise UsageError(
                    f"no merge '{key}' in version {version.version_id}; "
                    f"list them with 'hornbeam entities merges --index {index}'"
                )
        with ledger.transaction():
            return [known[key] if key in known else separate(ledger, merges[key]) for key in ids]


def allow_merges(index: Path, ids: Sequence[str]) -> list[Separation]:
    """Take decisions of `undo_merges` back.

    Raises:
        UsageError: an id was not undone; nothing is changed then.
        StoreError: no index, or another process writes it.
    """
    with write_lock(index), Ledger(index, create=False) as ledger:
        known = {separation.merge_id: separation for separation in read_separations(ledger)}
        for key in ids:
            if key not in known:
                raise UsageError(f"merge '{key}' was not undone in {index}")
        with ledger.transaction():
            for key in ids:
                rejoin(ledger, key)
    return [known[key] for key in ids]


def _read_merges(version: Version) -> list[Merge]:
    import pyarrow.parquet as pq

    file = version.directory / "tables" / "merges.parquet"
    if not file.is_file():
        raise StoreError(f"version {version.version_id} has no log of merges; run 'hornbeam index' again")
    with reading(file):
        return [Merge(**row) for row in pq.read_table(file).to_pylist()]
