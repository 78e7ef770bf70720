"""Erase what deleted documents have left on the disk.

A delete takes documents out of the graph; their texts, and what a model found in them, stay in older
versions, which a rollback may want, and in the store of results, which a document that comes back may want.
After a purge they are nowhere in the index directory. What a person said stays: the paths of deleted
documents, which updates leave out, and names that were told apart.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hornbeam.errors import StoreError
from hornbeam.extract.result import ChunkExtraction
from hornbeam.index.kept_vectors import forget_vectors
from hornbeam.pipeline.graph_inputs import portions
from hornbeam.pipeline.recipe import Recipe
from hornbeam.pipeline.text_recipe import text_recipe
from hornbeam.progress import Progress
from hornbeam.store.damage import reading
from hornbeam.store.ledger import Ledger
from hornbeam.store.question_log import QuestionLog
from hornbeam.store.retention import Pruned, remove_segments, remove_version
from hornbeam.store.versions import Version, current_version_id, list_versions

_KEYS_AT_ONCE = 4096


@dataclass(slots=True)
class Purged:
    documents: int = 0  # of the ledger
    results: int = 0  # of a model, and texts
    questions: int = 0  # that were asked of a served index, with answers from deleted texts
    versions: list[str] = field(default_factory=list)  # removed
    segments: int = 0  # written anew or removed
    bytes: int = 0  # freed
    left: list[str] = field(default_factory=list)  # what could not be erased, and why


@dataclass(slots=True)
class _Held:
    """What the documents of the index account for."""

    documents: set[str] = field(default_factory=set)
    extractions: set[str] = field(default_factory=set)
    verifications: set[str] = field(default_factory=set)
    text_hashes: set[str] = field(default_factory=set)


def purge(index: Path, ledger: Ledger, progress: Progress) -> Purged:
    """Erase all that the documents of the index do not account for. The caller holds the `write_lock`.

    With it go results of other models, schemas and settings than the last build had, answers about types and
    names, and summaries of communities that no version has. Whatever is still wanted is made again.

    Raises:
        StoreError: the promoted version still has a deleted document, or a file cannot be read or written.
    """
    before = _size(index)
    done = Purged()
    held = _held(ledger)
    versions = list_versions(index)
    old = [version for version in versions if not _documents(version) <= held.documents]
    current = current_version_id(index)
    if any(version.version_id == current for version in old):
        raise StoreError(
            f"{index}: the promoted version {current} still has documents that were deleted, so nothing is "
            f"erased; run 'hornbeam update --index {index}' first"
        )
    progress.say(f"purge: {len(old)} versions have deleted documents")
    _remove_versions(index, old, versions, done)
    stay = [v for v in versions if v.version_id not in done.versions]
    done.questions = QuestionLog(index).keep_documents(held.documents)
    progress.say("purge: ledger")
    with ledger.transaction():
        done.documents = ledger.erasure.drop_documents()
        done.results = _drop_results(ledger, held, stay)
        ledger.erasure.drop_proposed_types(held.text_hashes)
        ledger.erasure.drop_reports()
    worn = ledger.erasure.worn_segments()
    with progress.stage("rewrite", len(worn), "segments") as stage:
        for segment in worn:
            with ledger.transaction():
                ledger.erasure.rewrite_segment(segment)
            stage.advance()
    pruned = Pruned()
    remove_segments(index / "segments", ledger.segments(), pruned)
    done.segments = len(pruned.segments)
    # Made again by the next build, of what the new segments hold.
    if (index / "staged").exists():
        shutil.rmtree(index / "staged")
    forget_vectors(index)
    for damaged in index.glob("damaged-*"):  # ledgers that a repair has replaced
        shutil.rmtree(damaged)
    if not ledger.erasure.rewrite_ledger():
        done.left.append("ledger.sqlite-wal: another process reads the index")
    done.bytes = before - _size(index)
    return done


def _held(ledger: Ledger) -> _Held:
    held = _Held()
    texts = text_recipe(ledger)
    recipe = texts.recipe if texts else Recipe("", "")
    for rows in portions(ledger):
        chunks = ledger.chunks(row.document_id for row in rows)
        held.documents.update(chunks)
        keys = [
            recipe.extraction_key(chunk.text_hash, row.chunking, row.language)
            for row in rows
            for chunk in chunks[row.document_id]
        ]
        held.extractions.update(keys)
        held.text_hashes.update(chunk.text_hash for some in chunks.values() for chunk in some)
        if recipe.verification is not None:
            for key, payload in ledger.get_many("extraction", keys).items():
                found = ChunkExtraction.model_validate_json(payload)
                held.verifications.add(recipe.verification_key(key, found))
    return held


def _documents(version: Version) -> set[str]:
    import pyarrow.parquet as pq

    path = version.directory / "tables" / "documents.parquet"
    with reading(path):
        return set(pq.read_table(path, columns=["document_id"])["document_id"].to_pylist())


def _remove_versions(index: Path, old: list[Version], known: list[Version], done: Purged) -> None:
    pruned = Pruned()
    for version in old:
        remove_version(version.directory, pruned)
    done.versions = pruned.versions
    done.left += [f"versions/{name}: somebody reads it" for name in pruned.in_use]
    readable = {version.version_id for version in known}
    for path in sorted((index / "versions").iterdir()) if (index / "versions").is_dir() else []:
        if path.name.startswith("."):
            shutil.rmtree(path)  # a killed build's
        elif path.name not in readable:
            done.left.append(f"versions/{path.name}: this Hornbeam cannot read it")


def _drop_results(ledger: Ledger, held: _Held, versions: list[Version]) -> int:
    keep = ledger.erasure.keep_results
    dropped = keep("document", held.documents)
    keep("vocabulary", held.documents)
    dropped += keep("extraction", held.extractions)
    dropped += keep("verification", held.verifications)
    dropped += keep("proposal", ())
    dropped += keep("summary", _summaries_of(ledger, versions))
    ledger.erasure.keep_failures(held.extractions | held.verifications)
    return dropped


def _summaries_of(ledger: Ledger, versions: list[Version]) -> list[str]:
    """Keys of the summaries that a community of one of the versions has."""
    told = set().union(*(_told(version) for version in versions))
    keys = ledger.erasure.keys("summary")
    return [
        key
        for start in range(0, len(keys), _KEYS_AT_ONCE)
        for key, payload in ledger.get_many("summary", keys[start : start + _KEYS_AT_ONCE]).items()
        if isinstance(said := json.loads(payload), list) and tuple(said) in told
    ]


def _told(version: Version) -> Iterator[tuple[Any, Any]]:
    import pyarrow.parquet as pq

    columns = ["name", "summary"]
    path = version.directory / "tables" / "communities.parquet"
    with reading(path):
        table = pq.read_table(path, columns=columns)
    return zip(*(table[column].to_pylist() for column in columns), strict=True)


def _size(index: Path) -> int:
    return sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
