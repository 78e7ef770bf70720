"""Sources out of the ledger: those whose file is gone, and those that the user names.

A document stays in the graph as long as one source holds it; a fact, as long as one chunk states it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hornbeam.corpus import canonical, is_below
from hornbeam.errors import UsageError
from hornbeam.pipeline.reading import Reader, ReadingReport
from hornbeam.pipeline.scope import Scope
from hornbeam.store.ledger import Ledger, file_of
from hornbeam.store.places import ANYWHERE


def forget_vanished(reader: Reader, scope: Scope, *, allow_empty: bool) -> None:
    """Let go of the sources in `scope` that are gone, and tell the reader's report.

    Raises:
        UsageError: nothing would be left of the index, or of a folder that it was built from.
    """
    ledger, report = reader.ledger, reader.report
    gone = _vanished(ledger, reader.run, scope.places)
    if gone and not allow_empty:
        _check_something_stays(ledger, {source for source, _ in gone}, scope.guarded)
    if gone:
        with ledger.transaction():
            ledger.forget_sources(source for source, _ in gone)
    moved = {document_id for _, document_id in gone} & reader.new_documents
    report.moved = len(moved)
    report.duplicates -= len(moved)  # the old source still held them when they were met
    report.removed += len(gone) - len(moved)


def _vanished(ledger: Ledger, run: int, places: Sequence[str]) -> list[tuple[str, str]]:
    """(source, document id) at or below `places` that `run` did not meet and whose file is no longer there.

    What lies below a folder that could not be read is not gone: nobody could look.
    """
    return [
        (source, document_id)
        for source, _, document_id, last_run in ledger.sources()
        if last_run != run
        and any(is_below(source, place) for place in places)
        # A plain file may be named like a record.
        and _is_missing(source)
        and _is_missing(file_of(source))
    ]


def _is_missing(file: str) -> bool:
    """Whether looking for the file says that it is not there, and not that it cannot be looked for."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def forget_named(ledger: Ledger, names: Sequence[str], *, allow_empty: bool) -> ReadingReport:
    """Delete what the user names, for good: an update that meets it again leaves it out.

    Args:
        names: document ids, paths of files and folders, records `path#3`, patterns over paths. What was
            deleted before may be named again: a run that was killed is repeated.

    Raises:
        UsageError: a name that the index does not know (all such are told), or nothing would be left; nothing
            is changed.
    """
    found = _named(ledger, names)
    if found and not allow_empty:
        _check_something_stays(ledger, {source for source, *_ in found}, ())
    with ledger.transaction():
        ledger.forget_sources(source for source, *_ in found)
        ledger.places.delete(
            (document_id, ANYWHERE if by_id else source, shown) for source, shown, document_id, by_id in found
        )
    return ReadingReport(removed=len(found))


def _named(ledger: Ledger, names: Sequence[str]) -> list[tuple[str, str, str, bool]]:
    """(source, shown, document id, whether it was named by id)."""
    sources = [(source, shown, document_id) for source, shown, document_id, _ in ledger.sources()]
    deleted = ledger.places.deleted()
    found: dict[str, tuple[str, str, str, bool]] = {}
    unknown = []
    if not all(name.strip() for name in names):  # as a path it would be the working directory
        raise UsageError("a document to delete has an empty name; nothing was deleted")
    for name in names:
        matches = _matches(name, sources)
        if not matches and not _matches(name, deleted):
            unknown.append(name)
        found.update((match[0], match) for match in matches)
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise UsageError(f"the index holds no document {listed}; nothing was deleted")
    return list(found.values())


def _matches(name: str, sources: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str, bool]]:
    by_id = [
        (source, shown, document_id, True) for source, shown, document_id in sources if document_id == name
    ]
    if by_id:
        return by_id
    absolute = canonical(name)
    written = str(Path(name))
    return [
        (source, shown, document_id, False)
        for source, shown, document_id in sources
        if is_below(source, absolute)
        or is_below(shown, written)
        or fnmatchcase(source, absolute)
        or fnmatchcase(shown, name)
    ]


def _check_something_stays(ledger: Ledger, gone: Collection[str], folders: Sequence[str]) -> None:
    kept = [source for source, *_ in ledger.sources() if source not in gone]
    hint = "if that is meant, run it again with --allow-empty"
    if not kept:
        raise UsageError(f"no document would be left in the index, so nothing is taken out of it; {hint}")
    for folder in folders:
        had = any(is_below(source, folder) for source in gone)
        if had and not any(is_below(source, folder) for source in kept):
            raise UsageError(
                f"{folder}, which the index was built from, holds no document any more, so nothing is taken "
                f"out of the index; is it mounted? {hint}"
            )
