"""A version directory small enough to know every answer by heart, and an embedder of hashed words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hornbeam.index.tokens import tokenise
from hornbeam.records import (
    TABLES,
    Attribute,
    AttributeEvidence,
    Chunk,
    Community,
    CommunityMember,
    Document,
    Entity,
    Mention,
    Relation,
    RelationEvidence,
    arrow_schema,
)

#: document id → (title, source, text, where its chunks end)
TEXTS: dict[str, tuple[str, str, str, tuple[int, ...]]] = {
    "d1": (
        "Radium pioneers",
        "pioneers.txt",
        "Marie Curie was born in Warsaw. Later, in Paris, Curie discovered polonium.",
        (75,),
    ),
    "d2": (
        "Warsaw",
        "warsaw.md",
        "Warsaw lies on a river.\n\nThe largest city, Warsaw, is the capital of Poland. It grew fast.",
        (25, 90),
    ),
    "d3": ("北京", "beijing.txt", "北京大学位于海淀区。清华大学也在北京。", (19,)),
}
#: entity id → (name, type, aliases)
ENTITIES: dict[str, tuple[str, str, list[str]]] = {
    "e1": ("Marie Curie", "person", ["Curie"]),
    "e2": ("Warsaw", "city", []),
    "e3": ("Poland", "country", []),
    "e4": ("polonium", "element", []),
    "e5": ("北京大学", "organization", []),
}
#: relation id → (head, type, tail, chunk)
RELATIONS: dict[str, tuple[str, str, str, str]] = {
    "r1": ("e1", "born_in", "e2", "d1c0"),
    "r2": ("e2", "capital_of", "e3", "d2c1"),
    "r3": ("e1", "discovered", "e4", "d1c0"),
}


class HashedWords:
    """Unit vectors, float32 [n, 64]: the sum of one pseudo-random vector per lexical token."""

    name = "hashed-words"
    dimension = 64
    meaning = 1.0
    fingerprint = "0" * 64

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        assert batch_size > 0
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for token in tokenise(text) or ["(nothing)"]:
                seed = int.from_bytes(hashlib.sha256(token.encode()).digest()[:8], "little")
                rows[row] += np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.maximum(lengths, 1e-9)

    def encode_question(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encode([text])[0]
        return vector


class ListeningWords(HashedWords):
    """Keeps the texts that it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Any, *, batch_size: int = 64) -> NDArray[np.float32]:
        self.asked.extend(texts)
        return super().encode(texts, batch_size=batch_size)


def write_tables(directory: Path, rows: Mapping[str, Sequence[Any]]) -> Path:
    """Write every table, with zero rows where none are given; returns the version directory."""
    (directory / "tables").mkdir(parents=True)
    for name, record in TABLES.items():
        schema = arrow_schema(record)
        columns = {field.name: [getattr(row, field.name) for row in rows.get(name, ())] for field in schema}
        pq.write_table(pa.table(columns, schema=schema), directory / "tables" / f"{name}.parquet")
    return directory


def small_rows() -> dict[str, list[Any]]:
    """The records of the version, as lists that a test may change before it writes them."""
    documents, chunks, mentions = [], [], []
    for document_id, (title, source, text, ends) in TEXTS.items():
        assert ends[-1] == len(text)
        documents.append(Document(document_id, source, title, text, "und", [source]))
        for number, (start, end) in enumerate(zip((0, *ends), ends, strict=False)):
            chunk_id = f"{document_id}c{number}"
            chunks.append(Chunk(chunk_id, document_id, start, end, text[start:end], 10, "done"))
            for entity_id, (name, _, aliases) in ENTITIES.items():
                for surface in (name, *aliases):
                    at = text[start:end].rfind(surface)
                    if at >= 0:
                        mentions.append(Mention(entity_id, chunk_id, at, at + len(surface), surface, 0.9))
    entities = [
        Entity(entity_id, name, kind, "", aliases, 1, 1, 0.9)
        for entity_id, (name, kind, aliases) in ENTITIES.items()
    ]
    value = chunks[0].text.find("Paris")
    return {
        "documents": documents,
        "chunks": chunks,
        "entities": entities,
        "mentions": mentions,
        "relations": [
            Relation(relation_id, head, kind, tail, 1.0, 0.9, "")
            for relation_id, (head, kind, tail, _) in RELATIONS.items()
        ],
        "relation_evidence": [
            RelationEvidence(relation_id, chunk, 0.9, None) for relation_id, (*_, chunk) in RELATIONS.items()
        ],
        "attributes": [Attribute("a1", "e1", "workplace", "Paris", 0.8)],
        "attribute_evidence": [AttributeEvidence("a1", "d1c0", value, value + 5, 0.8)],
        "communities": [
            Community("k1", 0, "k4", "Discovery", "Curie found elements.", 2, "e1", ["polonium"]),
            Community("k2", 0, "k4", "Places in Poland", "Warsaw is in Poland.", 2, "e2", ["Warsaw"]),
            Community("k3", 0, None, "北京", "", 1, "e5", ["大学"]),
            Community("k4", 1, None, "Poland and science", "", 4, "e1", ["Curie", "Warsaw"]),
        ],
        "community_members": [
            CommunityMember(community, entity)
            for community, entity in [("k1", "e1"), ("k1", "e4"), ("k2", "e2"), ("k2", "e3"), ("k3", "e5")]
        ],
    }
