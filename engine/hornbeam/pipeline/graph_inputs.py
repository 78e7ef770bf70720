"""The ledger's documents with their texts, chunks and results, in bounded portions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator

from hornbeam.extract.result import ChunkExtraction, ChunkVerification
from hornbeam.pipeline.recipe import Recipe
from hornbeam.records import ChunkState, content_id
from hornbeam.resolve.evidence import kinds_that_count
from hornbeam.resolve.separations import Separation
from hornbeam.resolve.staged_parts import staging_code
from hornbeam.resolve.staging import ChunkInput, DocumentInput
from hornbeam.settings import ResolveSettings
from hornbeam.store.ledger import ChunkRow, DocumentRow, Ledger

#: Read together: every segment that holds some of them is opened once per portion.
_DOCUMENTS_AT_ONCE = 512
_CHARACTERS_AT_ONCE = 8 << 20

#: (document id, fingerprint) → whether the document's staged rows are there.
IsKept = Callable[[str, str], bool]


def portions(ledger: Ledger, of: Collection[str] | None = None) -> Iterator[list[DocumentRow]]:
    """The index's documents by id, or some of them, as many at once as their texts may fill memory."""
    portion: list[DocumentRow] = []
    characters = 0
    for row in ledger.documents() if of is None or of else ():
        if of is not None and row.document_id not in of:
            continue
        portion.append(row)
        characters += row.characters
        if len(portion) >= _DOCUMENTS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion


def read_texts(ledger: Ledger, document_ids: list[str]) -> dict[str, str]:
    return {key: text.decode("utf-8") for key, text in ledger.get_many("document", document_ids).items()}


def staged_with(
    recipe: Recipe, settings: ResolveSettings, verify_threshold: float, separations: Collection[Separation]
) -> str:
    """What the staged rows of every document depend on beside the document."""
    kinds = ",".join(sorted(kind.value for kind in kinds_that_count(settings)))
    apart = ",".join(sorted(separation.merge_id for separation in separations))
    return content_id("", staging_code(), kinds, apart, recipe.verification or "", str(verify_threshold))


def graph_inputs(
    ledger: Ledger, recipe: Recipe, verify_threshold: float, is_kept: IsKept = lambda *_: False
) -> Iterator[DocumentInput]:
    """Every document with all that was found in it, by id.

    Args:
        verify_threshold: P(yes) from which a fact that was asked about is verified, and below which refuted.
        is_kept: whether the rows of a document with this id and fingerprint are kept from an earlier build:
            what was found in it is not read then.
    """
    for rows in portions(ledger):
        texts = read_texts(ledger, [row.document_id for row in rows])
        chunks = ledger.chunks(row.document_id for row in rows)
        keys = {
            chunk.chunk_id: recipe.extraction_key(chunk.text_hash, row.chunking, row.language)
            for row in rows
            for chunk in chunks[row.document_id]
        }
        marks = ledger.marks_of("extraction", keys.values())
        failures = ledger.failures(key for key in keys.values() if key not in marks)
        marks |= {key: f"failed:{reason}" for key, reason in failures.items()}
        if recipe.verification is not None:
            found = _extractions(ledger, keys.values())
            marks = _with_verification(ledger, recipe, found, marks)
        fingerprints = {
            row.document_id: _fingerprint(
                (chunk, marks.get(keys[chunk.chunk_id], "")) for chunk in chunks[row.document_id]
            )
            for row in rows
        }
        kept = {key for key, fingerprint in fingerprints.items() if is_kept(key, fingerprint)}
        if recipe.verification is None:
            found = _extractions(
                ledger,
                (
                    keys[chunk.chunk_id]
                    for row in rows
                    if row.document_id not in kept
                    for chunk in chunks[row.document_id]
                ),
            )
        verdicts = _verdicts(ledger, recipe, found, verify_threshold)
        for row in rows:
            text = texts[row.document_id]
            inputs = []
            for chunk in chunks[row.document_id] if row.document_id not in kept else ():
                key = keys[chunk.chunk_id]
                inputs.append(
                    _chunk_input(chunk, text, found.get(key), failures.get(key, ""), verdicts.get(key))
                )
            yield DocumentInput(
                row.document_id,
                row.sources,
                row.title,
                text,
                row.language,
                tuple(inputs),
                fingerprints[row.document_id],
                row.document_id in kept,
            )


def _fingerprint(chunks: Iterable[tuple[ChunkRow, str]]) -> str:
    """Of chunks with the mark of the result of each."""
    digest = hashlib.sha256()
    for chunk, mark in chunks:
        parts = (chunk.chunk_id, chunk.start, chunk.end, chunk.tokens, chunk.text_hash, mark)
        digest.update("\0".join(map(str, parts)).encode() + b"\n")
    return digest.hexdigest()[:32]


def _extractions(ledger: Ledger, keys: Iterable[str]) -> dict[str, ChunkExtraction]:
    payloads = ledger.get_many("extraction", keys)
    return {key: ChunkExtraction.model_validate_json(payload) for key, payload in payloads.items()}


def _with_verification(
    ledger: Ledger, recipe: Recipe, found: dict[str, ChunkExtraction], marks: dict[str, str]
) -> dict[str, str]:
    """Marks of the extractions and of what was said when their facts were asked about."""
    places = {recipe.verification_key(key, extraction): key for key, extraction in found.items()}
    said = ledger.marks_of("verification", places)
    return marks | {places[place]: f"{marks[places[place]]} {mark}" for place, mark in said.items()}


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
