"""How the model is asked for types that a schema lacks.

Everything before the chunk is the same for every chunk of a language, so it comes out of the prefix cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from hornbeam.grammar import type_proposals as grammar
from hornbeam.llm.protocol import LanguageModel
from hornbeam.prompts import Prompts, PromptText, TypeExample
from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.schema.evolution import same_type
from hornbeam.schema.model import GraphSchema


class ProposalPrompt:
    """Renders the questions about one schema for one model, in the prompts of one language.

    Args:
        schema: None: nothing is known yet.
        language: of the texts.
    """

    def __init__(
        self, schema: GraphSchema | None, model: LanguageModel, prompts: Prompts, language: str = ""
    ) -> None:
        self._model = model
        self._entities = prompts.text("entity_types", language)
        self._facts = prompts.text("fact_types", language)
        examples = prompts.type_examples(language)
        self._entity_system = _entity_instructions(self._entities, examples, schema)
        self._fact_system = _fact_instructions(self._facts, examples, schema)
        parts = (self._entity_system, self._entities.question, self._fact_system, self._facts.question)
        text = "\0".join(parts)
        self.version = hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def fixed_tokens(self) -> int:
        """Tokens of the longer of the parts that every chunk shares."""
        return max(
            self._model.tokenizer.count(prompt) for prompt in (self.entity_types(""), self.fact_types("", ()))
        )

    def entity_types(self, text: str) -> str:
        user = self._entities.ask(text=self._model.neutralise(text))
        return self._model.chat_prompt(self._entity_system, user) + grammar.ENTITY_OPENING

    def fact_types(self, text: str, things: Sequence[str]) -> str:
        """
        Args:
            things: the chunk's entities, which relations and attributes are asked of.
        """
        harmless = self._model.neutralise
        user = self._facts.ask(text=harmless(text), things=harmless(", ".join(things)))
        return self._model.chat_prompt(self._fact_system, user) + grammar.FACT_OPENING


def _entity_instructions(
    prompt: PromptText, examples: Sequence[TypeExample], schema: GraphSchema | None
) -> str:
    shown = []
    for example in examples:
        rows = [row for row in example.entity_types if not same_type(schema, "entity", row[1])]
        shown.append(
            f"{prompt.ask(text=example.text)}\n{grammar.ENTITY_OPENING}{_rows(rows)}{grammar.CLOSING}"
        )
    known = entity_lines(schema) if schema else []
    return prompt.instruct(known="\n".join(known) or "none", examples="\n\n".join(shown))


def _fact_instructions(
    prompt: PromptText, examples: Sequence[TypeExample], schema: GraphSchema | None
) -> str:
    shown = []
    for example in examples:
        relations = [row for row in example.relation_types if not same_type(schema, "relation", row[1])]
        attributes = [row for row in example.attribute_types if not same_type(schema, "attribute", row[1])]
        shown.append(
            f"{prompt.ask(text=example.text, things=', '.join(example.things))}\n"
            f"{grammar.FACT_OPENING}{_rows(relations)}{grammar.FACT_BETWEEN}{_rows(attributes)}"
            f"{grammar.CLOSING}"
        )
    return prompt.instruct(
        known_relations="\n".join(relation_lines(schema) if schema else []) or "none",
        known_attributes="\n".join(attribute_lines(schema) if schema else []) or "none",
        examples="\n\n".join(shown),
    )


def _rows(rows: Sequence[Sequence[str]]) -> str:
    return ",".join(json.dumps(list(row), ensure_ascii=False, separators=(",", ":")) for row in rows)
