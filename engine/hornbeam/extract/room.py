"""How many items a list may have so that it ends before the token limit, whatever the model prefers.

A list that is cut costs the chunk its closing and the tokens after the limit; a list that is full ends by
grammar. The figures are estimates: a token limit that is hit all the same is counted (`entities_cut`).
"""

from __future__ import annotations

from collections.abc import Sequence

from hornbeam.grammar.relations import NamedEntity
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Tokenizer
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

#: Brackets, quotes and commas of one item.
_PUNCTUATION = 8
#: Share of the second answer that relations may take; attributes have the rest.
_RELATION_SHARE = 0.7


class ItemLimits:
    """Limits for one schema, model and settings."""

    def __init__(self, schema: GraphSchema, tokenizer: Tokenizer, settings: ExtractSettings) -> None:
        self._tokenizer = tokenizer
        self._settings = settings
        self._type = max(tokenizer.count(item.name) for item in schema.entity_types)
        predicates = [item.name for item in (*schema.relation_types, *schema.attribute_types)]
        self._predicate = max((tokenizer.count(name) for name in predicates), default=0)

    def entities(self, lexicon: SpanLexicon) -> int:
        """From the chunk's own tokens a word, for names of the greatest length."""
        name = lexicon.longest_span * self._tokenizer.count(lexicon.text) / max(1, len(lexicon.words))
        words = self._settings.description_words if self._settings.descriptions else 0
        description = words * name / lexicon.longest_span
        return max(
            1, int(self._settings.max_output_tokens / (name + self._type + description + _PUNCTUATION))
        )

    def facts(self, entities: Sequence[NamedEntity]) -> tuple[int, int]:
        """Relations and attributes, from the names that were found."""
        name = max((self._tokenizer.count(entity.name) for entity in entities), default=0)
        tokens = self._settings.max_output_tokens
        relation = 2 * name + self._predicate + _PUNCTUATION
        attribute = name + self._predicate + self._settings.max_name_words + _PUNCTUATION
        return (
            max(1, int(tokens * _RELATION_SHARE / relation)),
            max(1, int(tokens * (1 - _RELATION_SHARE) / attribute)),
        )
