"""The ledger and its segments: readable, complete, and of the same documents as the last version."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from hornbeam.audit.findings import Finding
from hornbeam.errors import StoreError
from hornbeam.pipeline.recipe import Recipe
from hornbeam.pipeline.text_recipe import text_recipe
from hornbeam.store.ledger import DocumentRow, Ledger
from hornbeam.store.segments import check_segment
from hornbeam.store.table_files import open_tables
from hornbeam.store.versions import Version

_EXAMPLES = 5
_DOCUMENTS_AT_ONCE = 1024


def check_segments(index: Path, names: Collection[str]) -> list[Finding]:
    """Every segment that results lie in is there and has the rows that its name is the hash of."""
    found = []
    for name in sorted(names):
        try:
            check_segment(index / "segments" / name)
        except StoreError as error:
            found.append(Finding("segments", f"segments/{name}", str(error)))
    return found


def check_results(ledger: Ledger) -> list[Finding]:
    """Every document has its text, every chunk a result or a failure that is to be tried again."""
    no_text: list[str] = []
    no_result: list[str] = []
    texts = text_recipe(ledger)
    recipe = texts.recipe if texts else Recipe("", "")
    for rows in _portions(ledger):
        ids = [row.document_id for row in rows]
        no_text += sorted(set(ids) - ledger.present("document", ids))
        chunks = ledger.chunks(ids)
        keys = {
            chunk.chunk_id: recipe.extraction_key(chunk.text_hash, row.chunking, row.language)
            for row in rows
            for chunk in chunks[row.document_id]
        }
        held = ledger.present("extraction", keys.values()) | ledger.failures(keys.values()).keys()
        no_result += [chunk_id for chunk_id, key in keys.items() if key not in held]
    found = []
    if no_text:
        told = f"{len(no_text)} documents have no text"
        found.append(Finding("results", "ledger.sqlite", told, tuple(no_text[:_EXAMPLES])))
    if no_result:
        told = f"{len(no_result)} chunks have no result; 'hornbeam index' on the same documents reads them"
        found.append(Finding("results", "ledger.sqlite", told, tuple(no_result[:_EXAMPLES])))
    return found


def check_history(ledger: Ledger, version: Version) -> list[Finding]:
    """A ledger that was lost and made again knows no document until they are all read again."""
    documents = version.manifest["counts"].get("documents", 0)
    if ledger.runs.any() or not documents:
        return []
    told = (
        f"knows none of the version's {documents} documents; run 'hornbeam index' on the same paths: what "
        "was extracted from them is stored, and taken from there"
    )
    return [Finding("history", "ledger.sqlite", told)]


def check_same_documents(ledger: Ledger, version: Version) -> list[Finding]:
    """The version has the documents and chunks of the ledger. Asked only of the version of the last run."""
    held: set[str] = set()
    for rows in _portions(ledger):
        ids = [row.document_id for row in rows]
        held.update(ids)
        held.update(chunk.chunk_id for some in ledger.chunks(ids).values() for chunk in some)
    with open_tables(version.directory) as connection:
        rows = connection.execute(
            "SELECT document_id FROM documents UNION ALL SELECT chunk_id FROM chunks"
        ).fetchall()
    published = {str(row[0]) for row in rows}
    found = []
    for one, other, told in (
        (held, published, "of the ledger's documents and chunks are not in the version"),
        (published, held, "of the version's documents and chunks are not in the ledger"),
    ):
        if missing := sorted(one - other):
            problem = f"{len(missing)} {told}"
            found.append(Finding("same_documents", "ledger.sqlite", problem, tuple(missing[:_EXAMPLES])))
    return found


def _portions(ledger: Ledger) -> Iterator[list[DocumentRow]]:
    portion: list[DocumentRow] = []
    for row in ledger.documents():
        portion.append(row)
        if len(portion) >= _DOCUMENTS_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion
