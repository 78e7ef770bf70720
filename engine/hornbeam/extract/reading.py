"""From a completion of either stage to facts with offsets and confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hornbeam.extract.result import FoundAttribute, FoundEntity, FoundRelation
from hornbeam.grammar.reading import SpanConfidence, read_items
from hornbeam.grammar.relations import BETWEEN
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.grammar.values import value_spans
from hornbeam.llm.protocol import Completion
from hornbeam.schema.model import GraphSchema


@dataclass(frozen=True, slots=True)
class ReadEntities:
    entities: tuple[FoundEntity, ...]
    complete: bool  # the list was closed
    repeated: int
    dropped: int = 0  # items that the grammar rules out

    def shifted(self, start: int) -> ReadEntities:
        """As read from a piece that begins at `start`, with offsets of the chunk."""
        if not start:
            return self
        entities = tuple(
            entity.model_copy(
                update={
                    "spans": tuple((a + start, b + start) for a, b in entity.spans),
                    "description": entity.description
                    and (entity.description[0] + start, entity.description[1] + start),
                }
            )
            for entity in self.entities
        )
        return replace(self, entities=entities)


@dataclass(frozen=True, slots=True)
class ReadRelations:
    relations: tuple[FoundRelation, ...]
    attributes: tuple[FoundAttribute, ...]
    complete: bool
    repeated: int
    dropped: int = 0  # items that the grammar rules out

    def shifted(self, start: int, indices: Sequence[int]) -> ReadRelations:
        """As read from a piece that begins at `start`, with offsets of the chunk.

        Args:
            indices: of the piece's entities among the chunk's.
        """
        if not start and list(indices) == list(range(len(indices))):
            return self
        return replace(
            self,
            relations=tuple(
                fact.model_copy(update={"head": indices[fact.head], "tail": indices[fact.tail]})
                for fact in self.relations
            ),
            attributes=tuple(
                fact.model_copy(
                    update={
                        "entity": indices[fact.entity],
                        "start": fact.start + start,
                        "end": fact.end + start,
                    }
                )
                for fact in self.attributes
            ),
        )


def read_entities(
    completion: Completion,
    lexicon: SpanLexicon,
    schema: GraphSchema,
    described: SpanLexicon | None = None,
) -> ReadEntities:
    """Stage one. A name given twice keeps the type with the higher confidence.

    What a grammar guarantees is checked all the same, and what fails is dropped and counted: a server without
    one may have answered.
    """
    items, _, complete = read_items(completion.text)
    confidence = SpanConfidence(completion.text, completion.tokens)
    known = {entity_type.name for entity_type in schema.entity_types}
    best: dict[str, FoundEntity] = {}
    repeated = dropped = 0
    for item in items:
        most = 2 if described is None else 3
        if not 2 <= len(item.fields) <= most or item.fields[1] not in known:
            dropped += 1
            continue
        name, entity_type, *description = item.fields
        spans = lexicon.occurrences(name)
        if not spans:
            dropped += 1
            continue
        found = FoundEntity(
            name=name,
            type=entity_type,
            confidence=rounded(confidence.of(item.spans[:2])),
            spans=tuple(spans),
            description=_description_place(description[0], spans, described)
            if description and described
            else None,
        )
        repeated += name in best
        if name not in best or found.confidence > best[name].confidence:
            best[name] = found
    return ReadEntities(tuple(best.values()), complete, repeated, dropped)


def read_relations(
    completion: Completion, entities: Sequence[FoundEntity], lexicon: SpanLexicon, schema: GraphSchema
) -> ReadRelations:
    """Stage two. c(h, r, t) = c(h) · c(r | h) · c(t | h, r), each a geometric mean over its tokens.

    A repeated fact is counted once, with its first confidence; a relation of an entity to itself is dropped.
    """
    index = {entity.name: place for place, entity in enumerate(entities)}
    confidence = SpanConfidence(completion.text, completion.tokens)
    items, position, closed = read_items(completion.text)
    relations: dict[tuple[int, str, int], FoundRelation] = {}
    repeated = dropped = 0
    for item in items:
        if len(item.fields) != 3 or item.fields[0] not in index or item.fields[2] not in index:
            dropped += 1
            continue
        head, tail = index[item.fields[0]], index[item.fields[2]]
        key = (head, item.fields[1], tail)
        if not schema.allows(key[1], entities[head].type, entities[tail].type):
            dropped += 1
            continue
        if head == tail:  # the grammar has one rule for the tails of all heads
            continue
        repeated += key in relations
        score = entities[head].confidence * confidence.of(item.spans[1:2]) * confidence.of(item.spans[2:3])
        relations.setdefault(key, FoundRelation(head=head, type=key[1], tail=tail, confidence=rounded(score)))

    attributes: dict[tuple[int, str, str], FoundAttribute] = {}
    complete = False
    if closed and completion.text.startswith(BETWEEN[1:], position):
        items, _, complete = read_items(completion.text, position + len(BETWEEN) - 1)
        for item in items:
            if len(item.fields) != 3 or item.fields[0] not in index:
                dropped += 1
                continue
            owner = index[item.fields[0]]
            place = _value_place(item.fields[1], item.fields[2], entities[owner], lexicon, schema)
            if place is None:
                dropped += 1
                continue
            fact = (owner, item.fields[1], item.fields[2])
            repeated += fact in attributes
            attributes.setdefault(
                fact,
                FoundAttribute(
                    entity=owner,
                    type=fact[1],
                    value=fact[2],
                    start=place[0],
                    end=place[1],
                    confidence=rounded(
                        entities[owner].confidence
                        * confidence.of(item.spans[1:2])
                        * confidence.of(item.spans[2:3])
                    ),
                ),
            )
    return ReadRelations(tuple(relations.values()), tuple(attributes.values()), complete, repeated, dropped)


def merge_entities(reads: Sequence[ReadEntities], lexicon: SpanLexicon) -> tuple[FoundEntity, ...]:
    """What several calls found in one chunk, in reading order, each with all its places.

    A name that has two types keeps the one with the higher confidence, as within one answer.
    """
    if len(reads) == 1:
        return reads[0].entities
    best: dict[str, FoundEntity] = {}
    places: dict[str, set[tuple[int, int]]] = {}
    descriptions: dict[str, tuple[int, int]] = {}
    for entity in (entity for read in reads for entity in read.entities):
        if entity.name not in best:
            places[entity.name] = set(lexicon.occurrences(entity.name))
        places[entity.name].update(entity.spans)
        if entity.description is not None:
            descriptions.setdefault(entity.name, entity.description)
        if entity.name not in best or entity.confidence > best[entity.name].confidence:
            best[entity.name] = entity
    merged = [
        entity.model_copy(
            update={
                "spans": tuple(sorted(places[name])),
                "description": entity.description or descriptions.get(name),
            }
        )
        for name, entity in best.items()
    ]
    return tuple(sorted(merged, key=lambda entity: entity.spans[0]))


def merge_facts(
    reads: Sequence[ReadRelations],
) -> tuple[tuple[FoundRelation, ...], tuple[FoundAttribute, ...]]:
    """The facts of several calls, each once, with its first confidence."""
    relations: dict[tuple[int, str, int], FoundRelation] = {}
    attributes: dict[tuple[int, str, str], FoundAttribute] = {}
    for read in reads:
        for relation in read.relations:
            relations.setdefault((relation.head, relation.type, relation.tail), relation)
        for attribute in read.attributes:
            attributes.setdefault((attribute.entity, attribute.type, attribute.value), attribute)
    return tuple(relations.values()), tuple(attributes.values())


def rounded(confidence: float) -> float:
    """To three decimals: what the company of a prompt in its batch does to a probability (10⁻⁶ in float32)
    does not make another graph of a run that was stopped and resumed."""
    return round(confidence, 3)


def _description_place(
    description: str, spans: Sequence[tuple[int, int]], described: SpanLexicon
) -> tuple[int, int] | None:
    """Where it stands, next to the name; None for one that says no more than the name does."""
    places = [
        (start, end)
        for start, end in described.occurrences(description)
        if not any(left <= start and end <= right for left, right in spans)
    ]
    return min(places, key=lambda place: (abs(place[0] - spans[0][0]), place), default=None)


def _value_place(
    name: str, value: str, owner: FoundEntity, lexicon: SpanLexicon, schema: GraphSchema
) -> tuple[int, int] | None:
    """Where the value stands: of several places the nearest, behind the owner's first mention if any is."""
    kinds = {attribute.name: attribute.kind for attribute in schema.attributes_of(owner.type)}
    if name not in kinds:
        return None
    kind = kinds[name]
    places = lexicon.occurrences(value) if kind == "text" else value_spans(lexicon.text, kind).get(value, [])
    if not places:
        return None
    start = owner.spans[0][0]
    return min(places, key=lambda place: (place[0] < start, abs(place[0] - start)))
