"""All retrieval indexes of a version, from its Parquet tables alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.errors import StoreError
from hornbeam.index.adjacency import write_adjacency
from hornbeam.index.carried_rows import CarriedRows
from hornbeam.index.embedder import TextEmbedder
from hornbeam.index.encoding import Encoding, Texts
from hornbeam.index.lexical import build_lexical, has_words, update_lexical
from hornbeam.index.rows import Links, MappedTable, write_rows
from hornbeam.index.texts import chunk_text, community_text, entity_text, triple_text
from hornbeam.index.vectors import VECTOR_KINDS, write_vectors
from hornbeam.index.walk import write_walk
from hornbeam.settings import EmbedderSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class IndexReport:
    counts: dict[str, int]  # rows of every indexed table
    seconds: dict[str, float]  # by step: "rows", "adjacency", "walk", "lexical.<kind>", "vectors.<kind>"


def build_indexes(
    version_directory: Path,
    embedder: TextEmbedder,
    settings: EmbedderSettings,
    *,
    entity_vectors: NDArray[np.float32] | None = None,
    carried: CarriedRows | None = None,
    near: bool = False,
    on_encoded: Callable[[int], None] = lambda texts: None,
) -> IndexReport:
    """Write `rows/`, `graph/`, `lexical/` and `vectors/` from `tables/`.

    Args:
        carried: an earlier version of the same embedder, whose words and vectors are taken over where the
            text is the same.
        near: vectors of that version are so near to those of this one that codes, where vectors are scanned
            by codes, stay as they were learned from it.
        entity_vectors: float32 [entities, d] in row order, if an earlier stage has them: the vectors of
            `texts.entity_texts`.
        on_encoded: told the number of texts after each block that was encoded.

    Raises:
        StoreError: a table is missing, refers to rows that are not there, or does not fit `entity_vectors`.
    """
    seconds: dict[str, float] = {}
    started = time.perf_counter()

    def lap(step: str) -> None:
        nonlocal started
        now = time.perf_counter()
        seconds[step], started = now - started, now

    counts = write_rows(version_directory)
    lap("rows")
    source = VersionTexts(version_directory)
    relations = source.relations
    heads, tails = relations.array("head_row"), relations.array("tail_row")
    write_adjacency(version_directory, heads, tails, counts["entities"])
    lap("adjacency")
    write_walk(version_directory, heads, tails, counts["entities"], counts["chunks"])
    lap("walk")
    texts_of_words = {"chunks": source.chunks_texts, "entities": source.entity_names}
    for kind, all_texts in texts_of_words.items():
        _write_words(kind, all_texts, version_directory, carried)
        lap(f"lexical.{kind}")

    (version_directory / "vectors").mkdir(exist_ok=True)
    if entity_vectors is not None and entity_vectors.shape != (counts["entities"], embedder.dimension):
        raise StoreError(
            f"{version_directory}: entity vectors of shape {entity_vectors.shape} for "
            f"{counts['entities']} entities and an embedder of dimension {embedder.dimension}"
        )
    texts: dict[str, Texts] = {
        "entities": source.entity_texts,
        "triples": source.triple_texts,
        "chunks": source.chunks_texts,
        "communities": source.community_texts,
    }
    for kind, table in VECTOR_KINDS.items():
        like = None if carried is None else carried.vectors(kind)
        path = version_directory / "vectors" / f"{kind}.faiss"
        encoding = Encoding(
            texts[kind], embedder, settings.batch_size, path.with_suffix(".texts"), on_encoded
        )
        if kind == "entities" and entity_vectors is not None:
            batches: Iterable[NDArray[np.float32]] = [entity_vectors]
        elif carried is None or like is None:
            batches = encoding.of(np.arange(counts[table]))
        else:
            batches = encoding.beside(carried.before(kind), like)
        write_vectors(path, batches, counts[table], embedder.dimension, like if near else None)
        lap(f"vectors.{kind}")
    return IndexReport(counts, seconds)


def _write_words(kind: str, texts: Texts, version_directory: Path, carried: CarriedRows | None) -> None:
    target = version_directory / "lexical" / kind
    earlier = None if carried is None else carried.earlier / "lexical" / kind
    if carried is None or earlier is None or not has_words(earlier):
        build_lexical(texts(None), target)
    else:
        before = carried.chunks if kind == "chunks" else carried.written
        update_lexical(before, texts, earlier, target)


class VersionTexts:
    """The texts of every kind, streamed from the mapped rows: of some rows, ascending, or of all."""

    def __init__(self, version_directory: Path) -> None:
        self.documents = MappedTable(version_directory, "documents")
        self.chunks = MappedTable(version_directory, "chunks")
        self.entities = MappedTable(version_directory, "entities")
        self.relations = MappedTable(version_directory, "relations")
        self.attributes = MappedTable(version_directory, "attributes")
        self.communities = MappedTable(version_directory, "communities")
        self.entity_attributes = Links.read(version_directory, "entity_attributes")

    def chunks_texts(self, rows: NDArray[np.int64] | None = None) -> Iterator[str]:
        for batch in self.chunks.batches("text", "document_row", rows=rows):
            for text, document in zip(batch["text"], batch["document_row"], strict=True):
                title, source = (self.documents.text(column, document) for column in ("title", "source"))
                yield chunk_text(title, source, text)

    def entity_names(self, rows: NDArray[np.int64] | None = None) -> Iterator[str]:
        """Names with aliases, for the lexical index."""
        for batch in self.entities.batches("name", "aliases", rows=rows):
            for name, aliases in zip(batch["name"], batch["aliases"], strict=True):
                yield "\n".join([name, *aliases])

    def entity_texts(self, rows: NDArray[np.int64] | None = None) -> Iterator[str]:
        numbers: Iterable[int] = range(len(self.entities)) if rows is None else rows.tolist()
        row_of = iter(numbers)
        for batch in self.entities.batches("name", "type", "description", rows=rows):
            for name, kind, description in zip(*batch.values(), strict=True):
                attributes = (
                    (self.attributes.text("type", attribute), self.attributes.text("value", attribute))
                    for attribute in self.entity_attributes.of(next(row_of)).tolist()
                )
                yield entity_text(name, kind, description, attributes)

    def triple_texts(self, rows: NDArray[np.int64] | None = None) -> Iterator[str]:
        import pyarrow as pa

        names = self.entities.arrow("name")
        for batch in self.relations.batches("head_row", "type", "tail_row", "description", rows=rows):
            heads, tails = (names.take(pa.array(batch[row])).to_pylist() for row in ("head_row", "tail_row"))
            facts = zip(heads, batch["type"], tails, batch["description"], strict=True)
            for head, kind, tail, sentence in facts:
                yield triple_text(head, kind, tail, sentence)

    def community_texts(self, rows: NDArray[np.int64] | None = None) -> Iterator[str]:
        for batch in self.communities.batches("name", "keywords", "summary", rows=rows):
            for name, keywords, summary in zip(*batch.values(), strict=True):
                yield community_text(name, keywords, summary)
