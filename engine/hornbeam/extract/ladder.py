"""What is asked instead when an answer was cut short or a call cannot be made.

A list that was cut is asked again with more tokens; then by halves, of the text or of the types. Relations
take the halves of the types first: of a halved text those between its halves are lost. A prompt that is too
long is halved at once. A grammar that is too large is replaced by two that together allow the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hornbeam.extract.result import Rung
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Completion
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

_Type = TypeVar("_Type")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a chunk that a call reads as its text."""

    start: int  # characters of the chunk
    lexicon: SpanLexicon

    @property
    def end(self) -> int:
        return self.start + len(self.lexicon.text)

    def halves(self) -> list[Piece]:
        """Two pieces that make up this one; none if it holds one name at most."""
        place = _middle(self.lexicon)
        if place is None:
            return []
        text, cut = self.lexicon.text, self.lexicon.words[place].start
        return [
            Piece(self.start, SpanLexicon(text[:cut], self.lexicon.max_words)),
            Piece(self.start + cut, SpanLexicon(text[cut:], self.lexicon.max_words)),
        ]


@dataclass(frozen=True, slots=True)
class Call:
    """One question of a stage to the model."""

    piece: Piece
    types: GraphSchema  # that the answer may use
    budget: int  # output tokens
    words: range  # of the piece, where names may begin
    attempts: int = 0  # that failed
    raised: bool = False  # the budget was
    text_halvings: int = 0
    type_halvings: int = 0


class Ladder:
    """The next rung under an extraction's settings."""

    def __init__(self, settings: ExtractSettings, max_model_len: int) -> None:
        self._settings = settings
        self._max_model_len = max_model_len

    def first(self, piece: Piece, types: GraphSchema) -> Call:
        words = range(len(piece.lexicon.words))
        return Call(piece, types, self._settings.max_output_tokens, words)

    def after_cut(
        self, call: Call, completion: Completion, *, types_first: bool
    ) -> tuple[Rung, list[Call]] | None:
        """None: there is nothing left to try."""
        if completion.finish_reason != "length":
            return None  # the answer is not of the form: no length of it would be
        budget = int(call.budget * self._settings.retry_budget)
        has_room = completion.usage.prompt + call.budget < self._max_model_len
        if not call.raised and budget > call.budget and has_room:
            return Rung.BUDGET, [replace(call, budget=budget, raised=True)]
        halving = (self._half_types, self._half_text) if types_first else (self._half_text, self._half_types)
        return halving[0](call) or halving[1](call)

    def after_too_long(self, call: Call) -> tuple[Rung, list[Call]] | None:
        return self._half_text(call)

    def after_too_large(self, call: Call, *, types_first: bool) -> tuple[Rung, list[Call]] | None:
        """Two calls whose grammars allow together what the one of `call` does."""
        types, words = halved_types(call.types), _halved_words(call)
        if types and (types_first or not words):
            return Rung.GRAMMAR_SPLIT, [replace(call, types=half) for half in types]
        if words and not types_first:
            return Rung.GRAMMAR_SPLIT, [replace(call, words=half) for half in words]
        return None

    def _half_text(self, call: Call) -> tuple[Rung, list[Call]] | None:
        halves = call.piece.halves() if call.text_halvings < self._settings.retry_splits else []
        calls = [
            replace(self.first(half, call.types), text_halvings=call.text_halvings + 1,
                    type_halvings=call.type_halvings)
            for half in halves
        ]  # fmt: skip
        return (Rung.SPLIT, calls) if calls else None

    def _half_types(self, call: Call) -> tuple[Rung, list[Call]] | None:
        halves = halved_types(call.types) if call.type_halvings < self._settings.retry_types else []
        calls = [
            replace(call, types=half, budget=self._settings.max_output_tokens, raised=False,
                    type_halvings=call.type_halvings + 1)
            for half in halves
        ]  # fmt: skip
        return (Rung.TYPES, calls) if calls else None


def halved_types(schema: GraphSchema) -> list[GraphSchema]:
    """Two schemas that have together the types of one; none where it has one type to choose from.

    What relates is told from what describes first; a schema of neither, as stage one uses, is halved by its
    entity types.
    """
    relations, attributes = schema.relation_types, schema.attribute_types
    if relations and attributes:
        return [with_types(schema, attribute_types=()), with_types(schema, relation_types=())]
    for name, types in (
        ("relation_types", relations),
        ("attribute_types", attributes),
        ("entity_types", schema.entity_types),
    ):
        if types:
            return [with_types(schema, **{name: half}) for half in _halves(types)]
    return []


def with_types(schema: GraphSchema, **types: Sequence[object]) -> GraphSchema:
    """A schema with other types in some of its lists. An inverse may be missing in it, and nobody asks."""
    return GraphSchema.model_construct(**(dict(schema) | types))


def _halves(types: Sequence[_Type]) -> list[Sequence[_Type]]:
    middle = len(types) // 2
    return [types[:middle], types[middle:]] if middle else []


def _halved_words(call: Call) -> list[range]:
    place = _middle(call.piece.lexicon, call.words)
    if place is None:
        return []
    return [range(call.words.start, place), range(place, call.words.stop)]


def _middle(lexicon: SpanLexicon, within: range | None = None) -> int | None:
    """The word that begins the second half: of a clause if there are several. None: there is one name."""
    words = range(len(lexicon.words)) if within is None else within
    places = [clause.start for clause in lexicon.clauses(words)][1:]
    if not places:
        places = [index for index in words if lexicon.words[index].kind != "mark"][1:]
    if not places:
        return None
    middle = (lexicon.words[words.start].start + lexicon.words[words.stop - 1].end) / 2
    return min(places, key=lambda index: abs(lexicon.words[index].start - middle))
