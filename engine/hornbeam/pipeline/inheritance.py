"""After a schema grew: results of chunks that no new type touches are taken over from the older version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hornbeam.evolve.touching import StoredChunk, Touch
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.tiers import chunk_extractor
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.protocol import LanguageModel
from hornbeam.pipeline.graph_inputs import portions, read_texts
from hornbeam.pipeline.recipe import Recipe, make_recipe
from hornbeam.progress import Progress
from hornbeam.prompts import Prompts
from hornbeam.schema.evolution import NewType, added_types
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings
from hornbeam.store.ledger import ChunkRow, DocumentRow, Ledger
from hornbeam.store.schemas import ancestors

#: Texts in which a type was seen that its likeness is measured on.
_SEEN_TEXTS = 64


@dataclass(frozen=True, slots=True)
class InheritedResults:
    chunks: int = 0  # of the index, whose result is an older schema's
    which: str = ""  # hash of them: a version made from them is another one than one made without


def inherited_results(ledger: Ledger, recipe: Recipe) -> InheritedResults:
    """The results that were taken over and not replaced since."""
    if not ledger.has_taken_over():
        return InheritedResults()
    digest = hashlib.sha256()
    count = 0
    for chunks in _keyed_chunks(ledger, recipe):
        taken_over = ledger.taken_over(key for _, key, _ in chunks)
        for chunk, key, _ in chunks:
            if key in taken_over:
                count += 1
                digest.update(chunk.chunk_id.encode())
    return InheritedResults(count, digest.hexdigest() if count else "")


def may_inherit(index: Path, schema: GraphSchema) -> bool:
    """Whether the schema was made from an older one of the index by adding to it."""
    return any(added_types(older, schema) is not None for older in ancestors(index, schema))


def inherit_results(
    ledger: Ledger,
    index: Path,
    recipe: Recipe,
    schema: GraphSchema,
    settings: Settings,
    model: LanguageModel,
    embedder: TextEmbedder,
    progress: Progress,
    prompts: Prompts | None = None,
) -> None:
    """Give every chunk without a result that of the nearest older version, unless a new type touches it.

    With `evolve.reextract` "all" nothing is taken over, and what was is given back. Nothing is done for a
    schema that was not made from an older one of this index by adding to it.
    """
    steps = []
    for older in ancestors(index, schema):
        new_types = added_types(older, schema)
        if new_types is not None:
            versions = chunk_extractor(model, older, settings.extract, embedder, prompts).versions
            limits = settings.evolve
            seen = _seen_texts(ledger, new_types)
            touch = Touch(
                new_types, ledger.types, embedder, limits.touch_similarity, seen, limits.touch_share
            )
            steps.append((make_recipe(settings, older, model.identity, versions), touch))
    if not steps:
        return
    with progress.stage("compare schemas", ledger.counts()["chunks"], "chunks") as stage:
        for chunks in _keyed_chunks(ledger, recipe):
            if settings.evolve.reextract == "all":
                with ledger.transaction():
                    ledger.give_back(ledger.taken_over(key for _, key, _ in chunks))
            else:
                _take_over(ledger, chunks, steps)
                ledger.seal()
            stage.advance(len(chunks))


def _seen_texts(ledger: Ledger, types: Sequence[NewType]) -> dict[tuple[str, str], list[str]]:
    """Texts in which the types were seen, of those that the index still has."""
    hashes = {
        (each.kind, each.name): ledger.types.text_hashes(each.kind, each.name, _SEEN_TEXTS) for each in types
    }
    wanted = {text_hash for some in hashes.values() for text_hash in some}
    text_of: dict[str, str] = {}
    for rows in portions(ledger) if wanted else ():
        chunks = [
            chunk
            for some in ledger.chunks(row.document_id for row in rows).values()
            for chunk in some
            if chunk.text_hash in wanted
        ]
        texts = read_texts(ledger, [chunk.document_id for chunk in chunks])
        text_of |= {chunk.text_hash: texts[chunk.document_id][chunk.start : chunk.end] for chunk in chunks}
    return {
        key: [text_of[text_hash] for text_hash in some if text_hash in text_of]
        for key, some in hashes.items()
    }


#: A chunk, the key of its extraction, its document.
_KeyedChunk = tuple[ChunkRow, str, DocumentRow]


def _keyed_chunks(ledger: Ledger, recipe: Recipe) -> Iterator[list[_KeyedChunk]]:
    for rows in portions(ledger):
        found = ledger.chunks(row.document_id for row in rows)
        yield [
            (chunk, recipe.extraction_key(chunk.text_hash, row.chunking, row.language), row)
            for row in rows
            for chunk in found[row.document_id]
        ]


def _take_over(ledger: Ledger, chunks: Sequence[_KeyedChunk], steps: Sequence[tuple[Recipe, Touch]]) -> None:
    keys = [key for _, key, _ in chunks]
    done = ledger.present("extraction", keys) | ledger.failures(keys).keys()
    open_chunks = {key: (chunk, row) for chunk, key, row in chunks if key not in done}
    for older, touch in steps:
        if not open_chunks:
            return
        old_keys = {
            key: older.extraction_key(chunk.text_hash, row.chunking, row.language)
            for key, (chunk, row) in open_chunks.items()
        }
        failed = ledger.failures(old_keys.values())
        payloads = ledger.get_many("extraction", (key for key in old_keys.values() if key not in failed))
        found = {key: open_chunks.pop(key)[0] for key, old_key in old_keys.items() if old_key in payloads}
        texts = read_texts(ledger, [chunk.document_id for chunk in found.values()])
        stored = [
            StoredChunk(
                chunk.text_hash,
                texts[chunk.document_id][chunk.start : chunk.end],
                ChunkExtraction.model_validate_json(payloads[old_keys[key]]),
            )
            for key, chunk in found.items()
        ]
        untouched = [key for key, hit in zip(found, touch.touched(stored), strict=True) if not hit]
        with ledger.transaction():
            ledger.take_over((key, old_keys[key]) for key in untouched)
