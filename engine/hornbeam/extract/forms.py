"""The two questions to a chunk: prompt and grammar of a call, and what its answer says of the chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from hornbeam.extract.ladder import Call, Piece
from hornbeam.extract.prompts import ExtractionPrompt
from hornbeam.extract.reading import ReadEntities, ReadRelations, read_entities, read_relations
from hornbeam.extract.result import FoundEntity, Reason
from hornbeam.extract.room import ItemLimits
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.json_forms import entity_answer, relation_answer
from hornbeam.grammar.relations import NamedEntity, relation_grammar
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Completion, JsonAnswer
from hornbeam.settings import ExtractSettings

ENTITIES, RELATIONS = "entities", "relations"


class Question(NamedTuple):
    prompt: str
    grammar: str
    json_answer: JsonAnswer


class Read(Protocol):
    @property
    def complete(self) -> bool: ...


_Read = TypeVar("_Read", bound=Read, covariant=True)


class Form(Protocol[_Read]):
    """One of the stages."""

    @property
    def name(self) -> str: ...

    @property
    def cut(self) -> Reason:
        """What is lost when the list is cut."""
        ...

    @property
    def types_first(self) -> bool:
        """Halving the types loses nothing, where halving the text does."""
        ...

    def question(self, call: Call) -> Question | None:
        """None: there is nothing to ask for."""
        ...

    def read(self, call: Call, completion: Completion) -> _Read: ...


@dataclass(frozen=True, slots=True)
class EntityForm:
    prompt: ExtractionPrompt
    limits: ItemLimits
    settings: ExtractSettings
    name: str = ENTITIES
    cut: Reason = Reason.ENTITIES_CUT
    types_first: bool = False

    def question(self, call: Call) -> Question | None:
        lexicon = call.piece.lexicon
        most = self.limits.entities(lexicon)
        grammar = entity_grammar(
            lexicon,
            call.types,
            max_per_clause=self.settings.entities_per_clause,
            max_entities=most,
            words=call.words,
            described=self._described(lexicon),
        )
        if grammar is None:
            return None
        answer = entity_answer(call.types, most, described=self.settings.descriptions)
        return Question(self.prompt.entities(lexicon.text), grammar, answer)

    def read(self, call: Call, completion: Completion) -> ReadEntities:
        lexicon = call.piece.lexicon
        read = read_entities(completion, lexicon, call.types, self._described(lexicon))
        return read.shifted(call.piece.start)

    def _described(self, lexicon: SpanLexicon) -> SpanLexicon | None:
        """The spans that can be a description, where descriptions are asked for."""
        return (
            SpanLexicon(lexicon.text, self.settings.description_words) if self.settings.descriptions else None
        )


@dataclass(frozen=True, slots=True)
class RelationForm:
    """
    Args:
        entities: of the whole chunk; facts name them by their index.
    """

    prompt: ExtractionPrompt
    limits: ItemLimits
    settings: ExtractSettings
    entities: Sequence[FoundEntity]
    name: str = RELATIONS
    cut: Reason = Reason.RELATIONS_CUT
    types_first: bool = True

    def question(self, call: Call) -> Question | None:
        lexicon = call.piece.lexicon
        named = [NamedEntity(entity.name, entity.type) for _, entity in self._standing_in(call.piece)]
        max_relations, max_attributes = self.limits.facts(named)
        grammar = relation_grammar(
            named,
            lexicon,
            call.types,
            relations_per_head=self.settings.relations_per_head,
            attributes_per_entity=self.settings.attributes_per_entity,
            max_relations=max_relations,
            max_attributes=max_attributes,
        )
        if grammar is None:
            return None
        answer = relation_answer(named, call.types, max_relations, max_attributes)
        return Question(self.prompt.relations(lexicon.text, named), grammar, answer)

    def read(self, call: Call, completion: Completion) -> ReadRelations:
        standing = self._standing_in(call.piece)
        read = read_relations(completion, [entity for _, entity in standing], call.piece.lexicon, call.types)
        return read.shifted(call.piece.start, [index for index, _ in standing])

    def _standing_in(self, piece: Piece) -> list[tuple[int, FoundEntity]]:
        """The entities of a piece with their indices, their spans within the piece."""
        found = []
        for index, entity in enumerate(self.entities):
            spans = tuple(
                (start - piece.start, end - piece.start)
                for start, end in entity.spans
                if piece.start <= start and end <= piece.end
            )
            if spans:
                found.append((index, entity.model_copy(update={"spans": spans})))
        return found
