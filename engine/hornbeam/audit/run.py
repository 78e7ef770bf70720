"""One audit: the promoted version, or the one that is named, and the ledger."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb

from hornbeam.audit.files import check_files
from hornbeam.audit.findings import Audit, Finding
from hornbeam.audit.ledger import check_history, check_results, check_same_documents, check_segments
from hornbeam.audit.tables import check_tables
from hornbeam.errors import SchemaError, StoreError, UnknownVersion
from hornbeam.index.consistency import check_stores
from hornbeam.progress import Progress
from hornbeam.schema.formats import read_schema
from hornbeam.store.damage import repair_hint
from hornbeam.store.ledger import Ledger, check_is_index, has_remains
from hornbeam.store.versions import Version, current_version_id, lost_current, read_version

_NO_TABLES = "skipped: a table or the schema is damaged"


def audit_index(index: Path, version_id: str | None, progress: Progress) -> Audit:
    """
    Args:
        version_id: None for the promoted version.

    Raises:
        StoreError: the directory is no index, or has no version of the id that was named.
    """
    if not has_remains(index):  # with them, a ledger that is missing is something to report
        check_is_index(index)
    named = current_version_id(index) if version_id is None else version_id
    audit = Audit(str(index), named)
    version = _version(index, named, asked_for=version_id is not None, audit=audit)
    if version is not None:
        _check_version(version, audit, progress)
    _check_ledger(index, version, audit, progress)
    return audit


def _version(index: Path, named: str | None, *, asked_for: bool, audit: Audit) -> Version | None:
    if named is None:
        audit.take("current", [Finding("current", "CURRENT", "missing: no version is promoted")])
        return None
    try:
        version = read_version(index, named)
    except UnknownVersion:
        if asked_for:
            raise
        audit.take("current", [Finding("current", "CURRENT", lost_current(index, named))])
        return None
    except StoreError as error:
        audit.take("current", [Finding("current", f"versions/{named}/manifest.json", str(error))])
        return None
    audit.take("current", [])
    return version


def _check_version(version: Version, audit: Audit, progress: Progress) -> None:
    progress.say(f"audit: files of {version.version_id}")
    found = check_files(version)
    audit.take("files", [finding for finding in found if finding.check == "files"])
    audit.take("foreign_files", [finding for finding in found if finding.check == "foreign_files"])
    damaged = audit.damaged()
    if any(name.startswith("tables/") or name == "schema.json" for name in damaged):
        audit.checks["tables"] = audit.checks["stores"] = _NO_TABLES
        return
    progress.say("audit: tables")
    try:
        schema = read_schema((version.directory / "schema.json").read_text("utf-8"), "schema")
        for check, findings in check_tables(version.directory, schema).items():
            audit.take(check, findings)
    except (duckdb.Error, SchemaError, OSError, json.JSONDecodeError) as error:
        first = str(error).strip().splitlines()[0]
        audit.take("tables", [Finding("tables", "tables", f"cannot be read: {first}")])
        return
    progress.say("audit: stores")
    stores = check_stores(version.directory, version.manifest["embedder"]["dimension"])
    audit.take(
        "stores",
        [
            Finding("stores", store, problem)
            for store, problem in stores.items()
            # A file that is damaged was named already.
            if problem and not any(name.startswith(store) for name in damaged)
        ],
    )


def _check_ledger(index: Path, version: Version | None, audit: Audit, progress: Progress) -> None:
    progress.say("audit: ledger and segments")
    try:
        with Ledger(index, create=False, read_only=True) as ledger:
            if problem := ledger.integrity():
                raise StoreError(
                    f"{index / 'ledger.sqlite'} is damaged ({problem}); {repair_hint(index)}: it saves what "
                    "can be read and finds the stored results again"
                )
            audit.take("ledger", [])
            audit.take("segments", check_segments(index, ledger.segments()))
            audit.take("results", check_results(ledger))
            tables_are_read = not any(name.startswith("tables/") for name in audit.damaged())
            if version is not None and tables_are_read and ledger.runs.made_last(version.version_id):
                audit.take("same_documents", check_same_documents(ledger, version))
            if version is not None:
                audit.take("history", check_history(ledger, version))
    except StoreError as error:
        audit.take("ledger", [Finding("ledger", "ledger.sqlite", str(error))])
        folder = index / "segments"
        there = {path.name for path in folder.glob("*.parquet")} if folder.is_dir() else set()
        audit.take("segments", check_segments(index, there))
