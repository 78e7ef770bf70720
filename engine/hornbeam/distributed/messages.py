"""What goes between the process that builds and the workers: JSON, in which nothing of a result is lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from hornbeam.corpus import CutDocument, SeenFile
from hornbeam.extract.result import ChunkExtraction, ChunkVerification
from hornbeam.extract.verification import Chunk, Outcome
from hornbeam.pipeline.reading import Item
from hornbeam.records import Chunk as CutChunk
from hornbeam.records import Document, Rejection


def pack_chunks(chunks: Iterable[Chunk]) -> bytes:
    return orjson.dumps(
        [
            [
                chunk.key,
                chunk.text,
                None if chunk.extraction is None else chunk.extraction.model_dump_json(),
                chunk.document_id,
                chunk.language,
            ]
            for chunk in chunks
        ]
    )


def unpack_chunks(payload: bytes) -> list[Chunk]:
    return [
        Chunk(
            key,
            text,
            None if extraction is None else ChunkExtraction.model_validate_json(extraction),
            document_id,
            language,
        )
        for key, text, extraction, document_id, language in orjson.loads(payload)
    ]


def pack_outcomes(outcomes: Iterable[tuple[str, Outcome]]) -> bytes:
    return orjson.dumps(
        [
            [key, isinstance(outcome, ChunkVerification), outcome.model_dump_json()]
            for key, outcome in outcomes
        ]
    )


def unpack_outcomes(payload: bytes) -> list[tuple[str, Outcome]]:
    return [
        (key, (ChunkVerification if verification else ChunkExtraction).model_validate_json(outcome))
        for key, verification, outcome in orjson.loads(payload)
    ]


def pack_item(item: Item) -> bytes:
    """One thing that reading brings; of a document's chunks the places alone, its text has theirs."""
    return orjson.dumps(_fields(item))


def _fields(item: Item) -> Sequence[Any]:
    if isinstance(item, Rejection):
        return "rejection", item.path, item.reason
    if isinstance(item, SeenFile):
        return "file", item.source, item.digest, item.unchanged, item.whole
    document = (item.document_id, item.source, item.title, item.text, item.language, item.sources)
    if not isinstance(item, CutDocument):
        return "document", *document
    return "document", *document, [(c.chunk_id, c.start, c.end, c.tokens) for c in item.chunks]


def unpack_item(payload: bytes) -> Item:
    kind, *fields = orjson.loads(payload)
    if kind == "rejection":
        return Rejection(*fields)
    if kind == "file":
        return SeenFile(*fields)
    document_id, source, title, text, language, sources, *cut = fields
    document = (document_id, source, title, text, language, sources)
    if not cut:
        return Document(*document)
    chunks = (
        CutChunk(chunk_id, document_id, start, end, text[start:end], tokens)
        for chunk_id, start, end, tokens in cut[0]
    )
    return CutDocument(*document, tuple(chunks))
