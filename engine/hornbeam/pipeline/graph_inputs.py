"""The ledger's documents with their texts, chunks and results, in bounded portions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hornbeam.extract.result import ChunkExtraction, ChunkVerification
from hornbeam.pipeline.recipe import Recipe
from hornbeam.records import ChunkState
from hornbeam.resolve.staging import ChunkInput, DocumentInput
from hornbeam.store.ledger import ChunkRow, DocumentRow, Ledger

#: Read together: every segment that holds some of them is opened once per portion.
_DOCUMENTS_AT_ONCE = 512
_CHARACTERS_AT_ONCE = 8 << 20


def portions(ledger: Ledger) -> Iterator[list[DocumentRow]]:
    """The index's documents by id, as many at once as their texts may fill memory."""
    portion: list[DocumentRow] = []
    characters = 0
    for row in ledger.documents():
        portion.append(row)
        characters += row.characters
        if len(portion) >= _DOCUMENTS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion


def read_texts(ledger: Ledger, document_ids: list[str]) -> dict[str, str]:
    return {key: text.decode("utf-8") for key, text in ledger.get_many("document", document_ids).items()}


def graph_inputs(ledger: Ledger, recipe: Recipe, verify_threshold: float) -> Iterator[DocumentInput]:
    """Every document with all that was found in it, by id.

    Args:
        verify_threshold: P(yes) from which a fact that was asked about is verified, and below which refuted.
    """
    for rows in portions(ledger):
        texts = read_texts(ledger, [row.document_id for row in rows])
        chunks = ledger.chunks(row.document_id for row in rows)
        keys = {
            chunk.chunk_id: recipe.extraction_key(chunk.text_hash, row.chunking, row.language)
            for row in rows
            for chunk in chunks[row.document_id]
        }
        payloads = ledger.get_many("extraction", keys.values())
        failures = ledger.failures(key for key in keys.values() if key not in payloads)
        found = {key: ChunkExtraction.model_validate_json(payload) for key, payload in payloads.items()}
        verdicts = _verdicts(ledger, recipe, found, verify_threshold)
        for row in rows:
            text = texts[row.document_id]
            inputs = []
            for chunk in chunks[row.document_id]:
                key = keys[chunk.chunk_id]
                inputs.append(
                    _chunk_input(chunk, text, found.get(key), failures.get(key, ""), verdicts.get(key))
                )
            yield DocumentInput(row.document_id, row.sources, row.title, text, row.language, tuple(inputs))


_Verdicts = tuple[list[bool | None], list[bool | None]]


def _verdicts(
    ledger: Ledger, recipe: Recipe, found: dict[str, ChunkExtraction], threshold: float
) -> dict[str, _Verdicts]:
    """Of relations and attributes, by key of the extraction; none where verification is off."""
    if recipe.verification is None:
        return {}
    places = {recipe.verification_key(key, extraction): key for key, extraction in found.items()}
    verdicts = {}
    for place, payload in ledger.get_many("verification", places).items():
        said = ChunkVerification.model_validate_json(payload)
        verdicts[places[place]] = (_held(said.relations, threshold), _held(said.attributes, threshold))
    return verdicts


def _held(answers: Iterable[float | None], threshold: float) -> list[bool | None]:
    return [None if answer is None else answer >= threshold for answer in answers]


def _chunk_input(
    chunk: ChunkRow,
    text: str,
    found: ChunkExtraction | None,
    failure: str,
    verdicts: _Verdicts | None,
) -> ChunkInput:
    return ChunkInput(
        chunk.chunk_id,
        chunk.document_id,
        chunk.start,
        chunk.end,
        text[chunk.start : chunk.end],
        chunk.tokens,
        found.state if found else ChunkState.FAILED,
        ",".join(found.reasons) if found else failure,
        found,
        ",".join(found.rungs) if found else "",
        verdicts,
    )
