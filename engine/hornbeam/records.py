"""The records that flow through the engine and the Arrow schemas of the tables they are stored in.

Each dataclass is the only description of its table: `arrow_schema` derives the columns from the fields,
in order. Offsets are in characters (Unicode code points), half open, `[start, end)`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import typing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def content_id(prefix: str, *parts: str) -> str:
    """A 20-hex-digit (80-bit) SHA-256 identifier of `parts`, unambiguous in how they are joined."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return f"{prefix}{digest.hexdigest()[:20]}"


class ChunkState(StrEnum):
    PENDING = "pending"
    DONE = "done"
    DEGRADED = "degraded"  # something was cut or dropped; `reason` says what
    FAILED = "failed"


class Retry(StrEnum):
    """Chunks to take up again, and no others."""

    FAILED = "failed"  # without a result, or left incomplete by a failure of the model
    DEGRADED = "degraded"  # something was cut or could not be asked for


@dataclass(frozen=True, slots=True)
class Document:
    document_id: str  # content hash of `text`: the same text is the same document
    source: str  # where it was first seen: a path, or path#record
    title: str
    text: str  # normalised; all offsets refer to it
    language: str  # "en", "ru", "zh", "ja" or "und"
    sources: list[str] = field(default_factory=list)  # every place where this text was seen, sorted


@dataclass(frozen=True, slots=True)
class Rejection:
    """An input that could not become a document, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    chunk_id: str
    document_id: str
    start: int  # offsets within the document's text
    end: int
    text: str  # document.text[start:end]
    tokens: int  # in tokens of the model in use
    state: str = ChunkState.PENDING.value
    reason: str = ""  # why it is not done: a list with commas
    rungs: str = ""  # what was tried beyond one call a stage: a list with commas


@dataclass(frozen=True, slots=True)
class Entity:
    entity_id: str
    name: str
    type: str
    description: str
    aliases: list[str]  # other surface forms, sorted
    mentions: int
    degree: int  # relations that touch it
    confidence: float
    sense: str = ""  # of a homonym that is not the commonest: the first of its documents


@dataclass(frozen=True, slots=True)
class Mention:
    entity_id: str
    chunk_id: str
    start: int  # offsets within the chunk's text
    end: int
    surface: str  # chunk.text[start:end]
    confidence: float
    description_start: int | None = None  # of what the chunk says that it is, within the chunk's text
    description_end: int | None = None  # None: it says nothing, or nobody was asked


@dataclass(frozen=True, slots=True)
class Relation:
    relation_id: str
    head_id: str
    type: str
    tail_id: str
    weight: float  # number of chunks that state it
    confidence: float
    description: str


@dataclass(frozen=True, slots=True)
class RelationEvidence:
    relation_id: str
    chunk_id: str
    confidence: float
    verified: bool | None  # None: nobody answered, or verification was off


@dataclass(frozen=True, slots=True)
class Attribute:
    attribute_id: str
    entity_id: str
    type: str
    value: str
    confidence: float


@dataclass(frozen=True, slots=True)
class AttributeEvidence:
    attribute_id: str
    chunk_id: str
    start: int  # of the value, within the chunk's text
    end: int
    confidence: float
    verified: bool | None = None  # None: nobody answered, or verification was off


@dataclass(frozen=True, slots=True)
class Community:
    community_id: str
    level: int  # 0 = leaves
    parent_id: str | None
    name: str
    summary: str
    size: int  # entities, over all descendants
    centre_id: str  # the entity with the highest dual-perception score
    keywords: list[str]


@dataclass(frozen=True, slots=True)
class CommunityMember:
    community_id: str  # a leaf
    entity_id: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Two names that were found to be one thing, and why."""

    merge_id: str
    entity_id: str  # that both belong to
    name: str
    type: str
    merged_name: str  # what else it is called
    merged_type: str
    document_id: str | None  # where it is so called; None: everywhere
    kind: str  # of evidence, see hornbeam.resolve.evidence
    score: float
    chunk_id: str
    start: int  # of the evidence, within the chunk's text
    end: int


#: table name -> record, in the order in which they are written
TABLES: dict[str, type] = {
    "documents": Document,
    "chunks": Chunk,
    "entities": Entity,
    "mentions": Mention,
    "relations": Relation,
    "relation_evidence": RelationEvidence,
    "attributes": Attribute,
    "attribute_evidence": AttributeEvidence,
    "merges": Merge,
    "communities": Community,
    "community_members": CommunityMember,
}


def arrow_schema(record: type) -> pa.Schema:
    """The Arrow schema of a record: str, int, float, bool, list[str]; `| None` makes a field nullable."""
    import pyarrow as pa

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    hints = typing.get_type_hints(record)
    columns = []
    for column in dataclasses.fields(record):
        hint, nullable = hints[column.name], False
        if type(None) in typing.get_args(hint):
            nullable = True
            (hint,) = (member for member in typing.get_args(hint) if member is not type(None))
        if typing.get_origin(hint) is list:
            (item,) = typing.get_args(hint)
            arrow_type: pa.DataType = pa.list_(kinds[item])
        else:
            arrow_type = kinds[hint]
        columns.append(pa.field(column.name, arrow_type, nullable=nullable))
    return pa.schema(columns)
