"""How the model is asked for types that a schema lacks; the texts are files beside this module.

Everything before the chunk is the same for every chunk, so it comes out of the prefix cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from hornbeam.grammar import type_proposals as grammar
from hornbeam.llm.protocol import LanguageModel
from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.schema.evolution import same_type
from hornbeam.schema.model import GraphSchema

_TEXT_HEAD = "Text: "
_THINGS_HEAD = "Things: "


class ProposalPrompt:
    """Renders the questions about one schema for one model.

    Args:
        schema: None: nothing is known yet.
    """

    def __init__(self, schema: GraphSchema | None, model: LanguageModel) -> None:
        self._model = model
        self._entity_system = _entity_instructions(schema)
        self._fact_system = _fact_instructions(schema)
        text = self._entity_system + "\0" + self._fact_system
        self.version = hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def fixed_tokens(self) -> int:
        """Tokens of the longer of the parts that every chunk shares."""
        return max(
            self._model.tokenizer.count(prompt) for prompt in (self.entity_types(""), self.fact_types("", ()))
        )

    def entity_types(self, text: str) -> str:
        user = f"{_TEXT_HEAD}{self._model.neutralise(text)}"
        return self._model.chat_prompt(self._entity_system, user) + grammar.ENTITY_OPENING

    def fact_types(self, text: str, things: Sequence[str]) -> str:
        """
        Args:
            things: the chunk's entities, which relations and attributes are asked of.
        """
        given = self._model.neutralise(f"{text}\n{_THINGS_HEAD}{', '.join(things)}")
        return self._model.chat_prompt(self._fact_system, f"{_TEXT_HEAD}{given}") + grammar.FACT_OPENING


def _entity_instructions(schema: GraphSchema | None) -> str:
    shown = []
    for example in _examples():
        rows = [row for row in example["entity_types"] if not same_type(schema, "entity", row[1])]
        shown.append(f"{_TEXT_HEAD}{example['text']}\n{grammar.ENTITY_OPENING}{_rows(rows)}{grammar.CLOSING}")
    known = entity_lines(schema) if schema else []
    return _filled("entity_types.txt", known="\n".join(known) or "none", examples="\n\n".join(shown))


def _fact_instructions(schema: GraphSchema | None) -> str:
    shown = []
    for example in _examples():
        relations = [row for row in example["relation_types"] if not same_type(schema, "relation", row[1])]
        attributes = [row for row in example["attribute_types"] if not same_type(schema, "attribute", row[1])]
        shown.append(
            f"{_TEXT_HEAD}{example['text']}\n{_THINGS_HEAD}{', '.join(example['things'])}\n"
            f"{grammar.FACT_OPENING}{_rows(relations)}{grammar.FACT_BETWEEN}{_rows(attributes)}"
            f"{grammar.CLOSING}"
        )
    return _filled(
        "fact_types.txt",
        known_relations="\n".join(relation_lines(schema) if schema else []) or "none",
        known_attributes="\n".join(attribute_lines(schema) if schema else []) or "none",
        examples="\n\n".join(shown),
    )


def _filled(name: str, **values: str) -> str:
    return Template(files(__name__).joinpath(name).read_text("utf-8")).substitute(values).strip()


def _rows(rows: Sequence[Sequence[str]]) -> str:
    return ",".join(json.dumps(list(row), ensure_ascii=False, separators=(",", ":")) for row in rows)


@cache
def _examples() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(files(__name__).joinpath("examples.json").read_text("utf-8"))
    return loaded
