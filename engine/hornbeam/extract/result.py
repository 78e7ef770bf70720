"""What extraction says about one chunk: the payload that segments keep."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

from hornbeam.records import ChunkState

#: Key and text of a chunk to extract, and the language that it is written in, where that is known.
ChunkText: TypeAlias = tuple[str, str] | tuple[str, str, str]


class Reason(StrEnum):
    """Why a chunk is not simply done; the list is closed so that it can be counted."""

    ENTITIES_CUT = "entities_cut"  # the list of entities hit the token limit; the complete ones are kept
    RELATIONS_CUT = "relations_cut"
    PROMPT_TOO_LONG = "prompt_too_long"
    GRAMMAR_TOO_LARGE = "grammar_too_large"  # no smaller one says the same
    MODEL_ERROR = "model_error"


class Rung(StrEnum):
    """What was tried when a call could not give all: the steps of the ladder, also a closed list."""

    BUDGET = "budget"  # the same call with more tokens
    SPLIT = "split"  # two calls over the halves of the text
    TYPES = "types"  # two calls over the halves of the types
    GRAMMAR_SPLIT = "grammar_split"  # two calls in place of one whose grammar was too large


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FoundEntity(_Stored):
    name: str  # written form: white space as single blanks
    type: str
    confidence: float
    spans: tuple[tuple[int, int], ...]  # every place in the chunk where the name stands
    description: tuple[int, int] | None = None  # a place in the chunk that says what it is
    #: what tells it from others of its type where the canonical name does not: an imported graph's own names
    identity: str | None = None


class FoundRelation(_Stored):
    head: int  # index into entities
    type: str
    tail: int
    confidence: float


class FoundAttribute(_Stored):
    entity: int
    type: str
    value: str
    start: int
    end: int
    confidence: float


class StageUsage(_Stored):
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: StageUsage) -> StageUsage:
        return StageUsage(
            calls=self.calls + other.calls,
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            output=self.output + other.output,
        )


class ChunkVerification(_Stored):
    """P(yes) of each fact of an extraction, in its order; None: nobody answered."""

    relations: tuple[float | None, ...] = ()
    attributes: tuple[float | None, ...] = ()
    detail: str = ""  # of a call that failed
    usage: dict[str, StageUsage] = {}

    @property
    def complete(self) -> bool:
        return None not in (*self.relations, *self.attributes)


class ChunkExtraction(_Stored):
    entities: tuple[FoundEntity, ...] = ()
    relations: tuple[FoundRelation, ...] = ()
    attributes: tuple[FoundAttribute, ...] = ()
    state: ChunkState = ChunkState.DONE
    reasons: tuple[Reason, ...] = ()
    detail: str = ""  # of a failure
    repeated: int = 0  # items that said again what an earlier one said
    dropped: int = 0  # items that the grammar rules out: of a server that knows none
    rungs: dict[Rung, int] = {}  # how often each was climbed; pydantic copies it
    usage: dict[str, StageUsage] = {}

    @property
    def facts(self) -> int:
        return len(self.relations) + len(self.attributes)
