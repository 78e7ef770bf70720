"""What the model said of one chunk: read from a completion, kept in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from hornbeam.errors import SchemaError
from hornbeam.extract.reading import rounded
from hornbeam.grammar.reading import Item, SpanConfidence, read_items
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.grammar.type_proposals import FACT_BETWEEN
from hornbeam.grammar.values import value_spans
from hornbeam.llm.protocol import Completion
from hornbeam.schema.model import EntityType, ValueKind
from hornbeam.schema.proposals import TypeKind
from hornbeam.schema.type_names import name_key


class Suggestion(BaseModel):
    """One type that the model named, and what it named it for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: TypeKind
    name: str
    places: tuple[tuple[int, int], ...]  # of the entity, or of head and tail, or of owner and value
    types: tuple[str, ...] = ()  # entity types of head and tail, or of the owner
    value_kind: ValueKind = "text"
    confidence: float


class ChunkSuggestions(BaseModel):
    """The answer to one question about one chunk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suggestions: tuple[Suggestion, ...] = ()
    complete: bool = True  # the answer came to its end


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity of the chunk, as a relation or an attribute may have it."""

    name: str
    type: str
    span: tuple[int, int]  # its first place


def read_entity_types(completion: Completion, lexicon: SpanLexicon) -> ChunkSuggestions:
    """Confidence: the geometric mean over the tokens of span and name, as c(entity) of extraction.

    A thing whose kind is said to be its own name tells nothing and is dropped, as is what was said twice.
    """
    items, _, complete = read_items(completion.text)
    confidence = SpanConfidence(completion.text, completion.tokens)
    found: dict[tuple[str, str], Suggestion] = {}
    for item in items:
        if len(item.fields) != 2:
            continue
        surface, name = item.fields
        places = lexicon.occurrences(surface)
        if not places or not _is_name(name) or name_key(surface) == name_key(name):
            continue
        found.setdefault(
            (surface, name_key(name)),
            Suggestion(
                kind="entity",
                name=name,
                places=(places[0],),
                confidence=rounded(confidence.of(item.spans)),
            ),
        )
    return ChunkSuggestions(suggestions=tuple(found.values()), complete=complete)


def read_fact_types(
    completion: Completion, things: Sequence[Thing], lexicon: SpanLexicon
) -> ChunkSuggestions:
    """Confidence: the geometric mean over the tokens of the whole item; the endpoints are given."""
    by_name = {thing.name: thing for thing in things}
    confidence = SpanConfidence(completion.text, completion.tokens)
    relations, position, closed = read_items(completion.text)
    attributes: list[Item] = []
    complete = False
    if closed and completion.text.startswith(FACT_BETWEEN[1:], position):
        attributes, _, complete = read_items(completion.text, position + len(FACT_BETWEEN) - 1)
    found: dict[tuple[str, ...], Suggestion] = {}
    for kind, items in (("relation", relations), ("attribute", attributes)):
        for item in items:
            if len(item.fields) != 3 or item.fields[0] not in by_name or not _is_name(item.fields[1]):
                continue
            score = rounded(confidence.of(item.spans))
            read = _relation if kind == "relation" else _attribute
            suggestion = read(item.fields, by_name, lexicon, score)
            if suggestion is not None:
                key = (kind, item.fields[0], name_key(item.fields[1]), item.fields[2])
                found.setdefault(key, suggestion)
    return ChunkSuggestions(suggestions=tuple(found.values()), complete=complete)


def _relation(
    fields: Sequence[str], things: dict[str, Thing], lexicon: SpanLexicon, confidence: float
) -> Suggestion | None:
    head, tail = things[fields[0]], things.get(fields[2])
    if tail is None or tail is head:
        return None
    return Suggestion(
        kind="relation",
        name=fields[1],
        places=(head.span, tail.span),
        types=(head.type, tail.type),
        confidence=confidence,
    )


def _attribute(
    fields: Sequence[str], things: dict[str, Thing], lexicon: SpanLexicon, confidence: float
) -> Suggestion | None:
    owner, value = things[fields[0]], fields[2]
    kinds: tuple[ValueKind, ...] = ("number", "date")
    kind: ValueKind = "text"
    places = lexicon.occurrences(value)
    for typed in kinds:
        if spans := value_spans(lexicon.text, typed).get(value, []):
            kind, places = typed, spans
            break
    places = [place for place in places if place != owner.span]
    if not places:
        return None
    start = owner.span[0]
    nearest = min(places, key=lambda place: (place[0] < start, abs(place[0] - start)))
    return Suggestion(
        kind="attribute",
        name=fields[1],
        places=(owner.span, nearest),
        types=(owner.type,),
        value_kind=kind,
        confidence=confidence,
    )


def _is_name(name: str) -> bool:
    try:
        EntityType(name=name)
    except (SchemaError, ValidationError):
        return False
    return True
