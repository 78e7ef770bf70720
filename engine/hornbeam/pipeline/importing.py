"""Imported documents into the ledger: texts, chunks and facts, which no model needs to read any more.

They lie there like all others: an import of a changed file replaces its old facts, and every later build
makes the same graph from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hornbeam.corpus import detect_language
from hornbeam.exchange.imported import ImportedDocument, RejectedInput
from hornbeam.pipeline.reading import ReadingReport, count_document, forget_vanished_records
from hornbeam.pipeline.recipe import Recipe, imported
from hornbeam.pipeline.text_recipe import text_recipe
from hornbeam.progress import Progress
from hornbeam.records import content_id
from hornbeam.schema.model import GraphSchema
from hornbeam.schema.vocabulary import Spelling, Vocabulary, schema_of
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import ChunkRow, DocumentRow, Ledger

_DOCUMENTS_AT_ONCE = 64
_CHARACTERS_AT_ONCE = 4 << 20
_SCHEMA_NAME = "imported"


def import_documents(
    documents: Iterable[tuple[str, ImportedDocument | RejectedInput]],
    ledger: Ledger,
    run: int,
    progress: Progress,
    stop: StopRequest,
) -> ReadingReport:
    """
    Args:
        documents: each with the file that it is from.

    Raises:
        Interrupted: the user stopped the run; what was read is in the ledger.
    """
    report = ReadingReport()
    with progress.stage("read", unit="documents") as stage:
        for batch in _batches(documents):
            with ledger.transaction():
                for file, item in batch:
                    report.seen += 1
                    if isinstance(item, RejectedInput):
                        report.rejected.append({"path": item.place, "reason": item.reason})
                        ledger.add_rejection(item.place, item.reason, run, file=file)
                    else:
                        _take(item, ledger, run, report)
            ledger.seal()
            stage.advance(len(batch))
            stop.check(f"{report.seen} documents are read")
    report.removed = forget_vanished_records(ledger, run)
    return report


def _take(document: ImportedDocument, ledger: Ledger, run: int, report: ReadingReport) -> None:
    payloads = [chunk.extraction.model_dump_json(exclude_defaults=True) for chunk in document.chunks]
    # The facts are part of what the document is: the same text with others is another.
    document_id = content_id("d", document.form, document.text, *payloads)
    count_document(document_id, document.source, ledger, run, report)
    chunking = imported(document.form)
    rows: list[ChunkRow] = []
    results: dict[str, str] = {}
    for chunk, payload in zip(document.chunks, payloads, strict=True):
        text = document.text[chunk.start : chunk.end]
        key = content_id("t", text, payload)
        chunk_id = content_id("c", document_id, str(chunk.start), str(chunk.end))
        rows.append(ChunkRow(chunk_id, document_id, chunk.start, chunk.end, len(text.split()), key))
        results[Recipe("", "").extraction_key(key, chunking, "")] = payload
    # Results that were lost are known again by importing them again.
    known = ledger.chunking_of(document_id) == chunking and ledger.present("vocabulary", [document_id])
    if not known or len(ledger.present("extraction", results)) < len(results):
        for key, payload in results.items():
            ledger.put("extraction", key, payload.encode())
        ledger.put("document", document_id, document.text.encode())
        ledger.put("vocabulary", document_id, document.vocabulary.model_dump_json().encode())
        language = detect_language(document.text)
        ledger.add_document(document_id, language, len(document.text), chunking, rows)
    ledger.add_source(document.source, document_id, document.title, run)


def _batches(
    documents: Iterable[tuple[str, ImportedDocument | RejectedInput]],
) -> Iterator[list[tuple[str, ImportedDocument | RejectedInput]]]:
    batch = []
    characters = 0
    for file, item in documents:
        batch.append((file, item))
        characters += len(item.text) if isinstance(item, ImportedDocument) else 0
        if len(batch) >= _DOCUMENTS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def published_schema(ledger: Ledger, base: GraphSchema | None) -> GraphSchema:
    """`base` with all types that the index's imported documents use.

    Raises:
        SchemaError: an imported type and one of `base` differ only in case.
    """
    vocabularies = list(_vocabularies(ledger))
    return schema_of(_SCHEMA_NAME, vocabularies, base) if vocabularies or base is None else base


def spellings(ledger: Ledger) -> tuple[Spelling, Spelling]:
    """How relation types and entity types are spelled already, for an import that adds to them."""
    texts = text_recipe(ledger)
    used = list(_vocabularies(ledger))
    relations = [relation.name for relation in texts.schema.relation_types] if texts else []
    types = [entity.name for entity in texts.schema.entity_types] if texts else []
    relations += sorted({relation for some in used for _, relation, _ in some.relations})
    types += sorted({kind for some in used for kind in some.entity_types})
    return Spelling(relations), Spelling(types)


def _vocabularies(ledger: Ledger) -> Iterator[Vocabulary]:
    rows: list[DocumentRow] = [row for row in ledger.documents() if row.chunking.startswith(imported(""))]
    for payload in ledger.get_many("vocabulary", (row.document_id for row in rows)).values():
        yield Vocabulary.model_validate_json(payload)
