"""One pass over the documents: what was found in each, by name, and which of its names are one thing.

Documents, which come sorted, go straight to their table; chunks, mentions, facts and links to staged files.
What a document's staged rows are follows from the document alone, so they can be kept (`staged_parts`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import regex

from hornbeam.extract.result import ChunkExtraction, FoundEntity
from hornbeam.records import TABLES, ChunkState, arrow_schema, content_id
from hornbeam.resolve.evidence import EvidenceKind, LocalName
from hornbeam.resolve.in_document import document_links
from hornbeam.resolve.names import canonical_name
from hornbeam.resolve.separations import Separation, merge_id
from hornbeam.store.table_files import TableWriters

if TYPE_CHECKING:
    import pyarrow as pa

_DESCRIPTION_CHARACTERS = 240
#: A row of a table is a sentence of its own.
_SENTENCE_END = regex.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n{2,}|\n(?=[^\n\t]*\t)")


@dataclass(frozen=True, slots=True)
class ChunkInput:
    """A chunk and what extraction found in it; a chunk without a result has `extraction` None."""

    chunk_id: str
    document_id: str
    start: int
    end: int
    text: str
    tokens: int
    state: ChunkState
    reason: str
    extraction: ChunkExtraction | None
    rungs: str = ""
    #: of each relation and each attribute, where they were asked about
    verdicts: tuple[Sequence[bool | None], Sequence[bool | None]] | None = None


@dataclass(frozen=True, slots=True)
class DocumentInput:
    document_id: str
    sources: tuple[str, ...]
    title: str
    text: str
    language: str
    chunks: tuple[ChunkInput, ...]
    #: of all that the staged rows follow from; another one once its results were sealed
    fingerprint: str = field(default="", compare=False)
    is_staged: bool = False  # its rows are kept from an earlier build, so its chunks are left out


def name_id(canonical: str, entity_type: str) -> str:
    """Identity of a name of a type, and of the entity of that name if no other shares it."""
    return content_id("e", canonical, entity_type)


STAGED = {
    "found_chunks": (
        ("chunk_id", "str"), ("document_id", "str"), ("start", "int"), ("end", "int"), ("text", "str"),
        ("tokens", "int"), ("state", "str"), ("reason", "str"), ("rungs", "str"),
    ),
    "found_names": (
        ("name_id", "str"), ("canonical", "str"), ("type", "str"), ("name", "str"), ("document_id", "str"),
        ("chunk_id", "str"), ("start", "int"), ("end", "int"), ("surface", "str"), ("confidence", "float"),
        ("sentence", "str"), ("described", "str"), ("described_start", "int"), ("described_end", "int"),
    ),
    "found_links": (
        ("document_id", "str"), ("alias_id", "str"), ("target_id", "str"), ("kind", "str"),
        ("score", "float"), ("chunk_id", "str"), ("start", "int"), ("end", "int"),
    ),
    "found_relations": (
        ("head_name", "str"), ("type", "str"), ("tail_name", "str"), ("document_id", "str"),
        ("chunk_id", "str"), ("confidence", "float"), ("sentence", "str"), ("loop", "bool"),
        ("verified", "bool"),
    ),
    "found_attributes": (
        ("owner_name", "str"), ("type", "str"), ("value", "str"), ("folded", "str"), ("document_id", "str"),
        ("chunk_id", "str"), ("start", "int"), ("end", "int"), ("confidence", "float"),
        ("verified", "bool"),
    ),
}  # fmt: skip
#: The staged file that says which documents the rows are of.
DOCUMENTS = "documents"
_COLUMNS = STAGED | {DOCUMENTS: (("document_id", "str"), ("fingerprint", "str"))}


def staged_schema(name: str) -> pa.Schema:
    import pyarrow as pa

    columns_of = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    return pa.schema([(column, columns_of[kind]) for column, kind in _COLUMNS[name]])


@dataclass(slots=True)
class StagedDocuments:
    """What `stage` has written, and what it left out because it is kept from before."""

    fingerprints: dict[str, str] = field(default_factory=dict)  # of every document, by id
    written: int = 0  # documents whose rows were staged now


def stage(
    documents: Iterable[DocumentInput],
    tables: Path,
    staged: Path,
    kinds: Collection[EvidenceKind],
    separations: Collection[Separation],
) -> StagedDocuments:
    """Write the table `documents` and, into the folder `staged`, the files of `STAGED` and `DOCUMENTS`.

    Args:
        kinds: of evidence that count.
        separations: nothing links what people told apart.
    """
    apart = {separation.merge_id for separation in separations}
    done = StagedDocuments()
    with TableWriters() as writers:
        for name in (*STAGED, DOCUMENTS):
            writers.open(name, staged, staged_schema(name))
        writers.open(_TABLE, tables, arrow_schema(TABLES["documents"]), "documents")
        for document in documents:
            done.fingerprints[document.document_id] = document.fingerprint
            writers.add(_TABLE, {
                "document_id": document.document_id, "source": document.sources[0], "title": document.title,
                "text": document.text, "language": document.language, "sources": list(document.sources),
            })  # fmt: skip
            of_document = {"document_id": document.document_id, "fingerprint": document.fingerprint}
            if document.is_staged:
                continue
            done.written += 1
            writers.add(DOCUMENTS, of_document)
            for chunk in document.chunks:
                writers.add("found_chunks", {
                    "chunk_id": chunk.chunk_id, "document_id": chunk.document_id, "start": chunk.start,
                    "end": chunk.end, "text": chunk.text, "tokens": chunk.tokens, "state": chunk.state.value,
                    "reason": chunk.reason, "rungs": chunk.rungs,
                })  # fmt: skip
                for name, row in _found_rows(chunk):
                    writers.add(name, row)
            for row in _link_rows(document, kinds, apart):
                writers.add("found_links", row)
    return done


#: The version's own table of documents, beside the staged ones.
_TABLE = "table"


def _found_rows(chunk: ChunkInput) -> Iterator[tuple[str, dict[str, Any]]]:
    if chunk.extraction is None:
        return
    identities = [_identity(entity) for entity in chunk.extraction.entities]
    sentences = Sentences(chunk.text)
    of_chunk = {"document_id": chunk.document_id, "chunk_id": chunk.chunk_id}
    for entity, identity in zip(chunk.extraction.entities, identities, strict=True):
        found = of_chunk | {
            "name_id": identity, "canonical": entity.identity or canonical_name(entity.name),
            "type": entity.type, "name": entity.name, "confidence": entity.confidence,
            "described": _described(chunk.text, entity),
            "described_start": entity.description[0] if entity.description else None,
            "described_end": entity.description[1] if entity.description else None,
        }  # fmt: skip
        for start, end in entity.spans:
            yield "found_names", found | {
                "start": start, "end": end, "surface": chunk.text[start:end],
                "sentence": sentences.around(start, end),
            }  # fmt: skip
        if not entity.spans:
            yield "found_names", found | {"start": None, "end": None, "surface": None, "sentence": ""}
    unasked = ([None] * len(chunk.extraction.relations), [None] * len(chunk.extraction.attributes))
    of_relations, of_attributes = chunk.verdicts or unasked
    for relation, verified in zip(chunk.extraction.relations, of_relations, strict=True):
        ends = (chunk.extraction.entities[end] for end in (relation.head, relation.tail))
        yield "found_relations", of_chunk | {
            "head_name": identities[relation.head], "type": relation.type,
            "tail_name": identities[relation.tail], "confidence": relation.confidence,
            "sentence": sentences.with_both(*(end.spans for end in ends)),
            # An import may say something of a thing and itself; two names that are one thing do not.
            "loop": relation.head == relation.tail, "verified": verified,
        }  # fmt: skip
    for attribute, verified in zip(chunk.extraction.attributes, of_attributes, strict=True):
        yield "found_attributes", of_chunk | {
            "owner_name": identities[attribute.entity], "type": attribute.type, "value": attribute.value,
            "folded": attribute.value.casefold(), "start": attribute.start, "end": attribute.end,
            "confidence": attribute.confidence, "verified": verified,
        }  # fmt: skip


def _described(text: str, entity: FoundEntity) -> str | None:
    """What the chunk says that it is."""
    return " ".join(text[slice(*entity.description)].split()) if entity.description else None


def _identity(entity: FoundEntity) -> str:
    return name_id(entity.identity or canonical_name(entity.name), entity.type)


def _link_rows(
    document: DocumentInput, kinds: Collection[EvidenceKind], apart: set[str]
) -> Iterator[dict[str, Any]]:
    names = local_names(document)
    for link in document_links(document.text, names):
        if link.kind not in kinds:
            continue
        pair = [(name.canonical, name.type) for name in (names[link.alias], names[link.target])]
        if apart and not apart.isdisjoint(merge_id(where, *pair) for where in (document.document_id, None)):
            continue
        if place := _chunk_of(document, link.start, link.end):
            yield {
                "document_id": document.document_id, "kind": link.kind.value, "score": link.score,
                "alias_id": name_id(names[link.alias].canonical, names[link.alias].type),
                "target_id": name_id(names[link.target].canonical, names[link.target].type),
                "chunk_id": place.chunk_id, "start": link.start - place.start, "end": link.end - place.start,
            }  # fmt: skip


def local_names(document: DocumentInput) -> list[LocalName]:
    """The names that were found in a document, sorted; chunks may overlap. Not those with an identity of
    their own: nothing is to be told of them."""
    places: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    written: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    votes: dict[tuple[str, str], float] = defaultdict(float)
    for chunk in document.chunks:
        for entity in chunk.extraction.entities if chunk.extraction else ():
            if entity.identity is not None or not entity.spans:
                continue
            key = (canonical_name(entity.name), entity.type)
            places[key].update((chunk.start + start, chunk.start + end) for start, end in entity.spans)
            written[key][entity.name] += len(entity.spans)
            votes[key] += entity.confidence * len(entity.spans)
    return [
        LocalName(
            *key,
            max(written[key], key=lambda name: (written[key][name], name)),
            sorted(places[key]),
            round(votes[key], 9),
        )
        for key in sorted(places)
    ]


def _chunk_of(document: DocumentInput, start: int, end: int) -> ChunkInput | None:
    """The first chunk that holds a span; evidence that no chunk holds as a whole cannot be shown."""
    holding = (chunk for chunk in document.chunks if chunk.start <= start and end <= chunk.end)
    return min(holding, key=lambda chunk: (chunk.start, chunk.chunk_id), default=None)


class Sentences:
    """The sentences of a chunk, found once: there are several mentions in each."""

    def __init__(self, text: str) -> None:
        self._text = text
        gaps = [match.span() for match in _SENTENCE_END.finditer(text)]
        self._starts = [0, *(end for _, end in gaps)]  # of sentences
        self._ends = [*(start for start, _ in gaps), len(text)]

    def with_both(self, heads: Sequence[tuple[int, int]], tails: Sequence[tuple[int, int]]) -> str:
        """The first sentence in which one of `heads` and one of `tails` begin; without such a one that around
        the first of `heads`, or nothing where there is none.

        Args:
            heads, tails: spans, ascending.
        """
        theirs = {bisect_right(self._starts, start) for start, _ in tails}
        shared = (span for span in heads if bisect_right(self._starts, span[0]) in theirs)
        span = next(shared, heads[0] if heads else None)
        return self.around(*span) if span else ""

    def around(self, start: int, end: int) -> str:
        """The sentence (or sentences) that hold a span, white space as single blanks, cut to a bound."""
        left = self._starts[bisect_right(self._starts, start) - 1]
        right = self._ends[bisect_left(self._ends, end)]
        sentence = " ".join(self._text[left:right].split())
        if len(sentence) <= _DESCRIPTION_CHARACTERS:
            return sentence
        return sentence[:_DESCRIPTION_CHARACTERS].rstrip() + "…"
