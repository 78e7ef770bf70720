"""The prompts of extraction, from files beside this module.

Both stages share one prompt up to and including the chunk and the entities, so the second stage's prefill
comes out of the prefix cache:

    [instructions · schema · examples] [chunk] {"entities":[ … ]} {"relations":[ …
    └────────── stage one reads ─────────────┘└── writes ──┘
    └────────────────────── stage two reads ───────────────┘└── writes ──┘

Everything before the chunk is the same for every chunk of a build.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from hornbeam.grammar import entities as entity_stage
from hornbeam.grammar import relations as relation_stage
from hornbeam.grammar.relations import NamedEntity
from hornbeam.llm.protocol import LanguageModel
from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.schema.model import GraphSchema

_TEXT_HEAD = "Text: "


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example: facts that the text states, in the schema's types.

    It is an answer that the grammars allow with default settings: entities in reading order, facts in the
    order of their heads, no more of each than the limits. A model that follows the form then never wants
    what it cannot have.
    """

    text: str
    entities: tuple[tuple[str, str], ...]
    relations: tuple[tuple[str, str, str], ...]
    attributes: tuple[tuple[str, str, str], ...]

    def rendered(self) -> str:
        return (
            f"{_TEXT_HEAD}{self.text}\n"
            f"{entity_stage.OPENING}{_rows(self.entities)}]}}\n"
            f"{relation_stage.OPENING}{_rows(self.relations)}{relation_stage.BETWEEN}"
            f"{_rows(self.attributes)}{relation_stage.CLOSING}"
        )


class ExtractionPrompt:
    """Renders the prompts of one schema for one model.

    Args:
        schema: types with descriptions.
        model: for its chat format.
        examples: how many worked examples to show.
    """

    def __init__(self, schema: GraphSchema, model: LanguageModel, examples: int) -> None:
        shown = schema_examples(schema)[:examples]
        body = Template(_template()).substitute(
            entity_types="\n".join(entity_lines(schema)),
            relation_types="\n".join(relation_lines(schema)) or "none",
            attribute_types="\n".join(attribute_lines(schema)) or "none",
            examples="\n\n".join(example.rendered() for example in shown),
        )
        self._system = body.strip()
        self._model = model
        self.version = hashlib.sha256(self._system.encode()).hexdigest()[:16]

    @property
    def fixed_tokens(self) -> int:
        """Tokens of the part that every chunk shares."""
        return self._model.tokenizer.count(self.entities(""))

    def entities(self, text: str) -> str:
        user = f"{_TEXT_HEAD}{self._model.neutralise(text)}"
        return self._model.chat_prompt(self._system, user) + entity_stage.OPENING

    def question(self, text: str, question: str) -> str:
        """About the chunk, behind the prompt that the stages share."""
        user = f"{_TEXT_HEAD}{self._model.neutralise(text)}\n\n{self._model.neutralise(question)}"
        return self._model.chat_prompt(self._system, user)

    def relations(self, text: str, entities: Sequence[NamedEntity]) -> str:
        rows = _rows([(entity.name, entity.type) for entity in entities])
        return f"{self.entities(text)}{rows}]}}\n{relation_stage.OPENING}"


def schema_examples(schema: GraphSchema) -> list[Example]:
    """Worked examples in the schema's types: written ones where there are, else one made from the schema."""
    written = [_example(entry) for entry in _written_examples().get(schema.name, [])]
    fitting = [example for example in written if _fits(example, schema)]
    return fitting or [_made_example(schema)]


def _made_example(schema: GraphSchema) -> Example:
    """A text of plain sentences, one per relation type, about made-up names: shows form and direction."""
    names = iter(_MADE_NAMES)
    by_type: dict[str, str] = {}

    def name_of(entity_type: str) -> str:
        if entity_type not in by_type:
            by_type[entity_type] = next(names)
        return by_type[entity_type]

    sentences: list[str] = []
    relations: list[tuple[str, str, str]] = []
    seen: set[tuple[str, str]] = set()
    for relation in schema.relation_types:
        head_type = schema.head_types(relation.name)[0]
        tail_type = next((t for t in schema.tail_types(relation.name) if t != head_type), None)
        told = sum(head == by_type.get(head_type) for head, _, _ in relations)
        if tail_type is None or (head_type, tail_type) in seen or told == _MADE_PER_HEAD:
            continue
        if len(relations) == _MADE_RELATIONS:
            break
        seen.add((head_type, tail_type))
        head, tail = name_of(head_type), name_of(tail_type)
        sentences.append(f"{head} {relation.name.replace('_', ' ')} {tail}.")
        relations.append((head, relation.name, tail))
    if not relations:
        first = schema.entity_types[0].name
        sentences.append(f"It was {name_of(first)}.")
    # In order of first mention; relations in the order of their heads.
    entities = tuple((name, entity_type) for entity_type, name in by_type.items())
    relations.sort(key=lambda relation: list(by_type.values()).index(relation[0]))
    return Example(" ".join(sentences), entities, tuple(relations), ())


_MADE_RELATIONS, _MADE_PER_HEAD = 5, 2
_MADE_NAMES = (
    "Alba Quill", "Borin Vale", "Cedra", "Dorn Hollow", "Elvane", "Farrow Point", "Gild Marsh", "Hestor",
    "Ilmar Reach", "Jorvane",
)  # fmt: skip


def _fits(example: Example, schema: GraphSchema) -> bool:
    types = dict(example.entities)
    known = {entity_type.name for entity_type in schema.entity_types}
    return (
        set(types.values()) <= known
        and all(
            schema.allows(relation, types[head], types[tail]) for head, relation, tail in example.relations
        )
        and all(
            name in {attribute.name for attribute in schema.attributes_of(types[owner])}
            for owner, name, _ in example.attributes
        )
    )


def _rows(rows: Sequence[Sequence[str]]) -> str:
    return ",".join(json.dumps(list(row), ensure_ascii=False, separators=(",", ":")) for row in rows)


def _example(entry: dict[str, Any]) -> Example:
    return Example(
        entry["text"],
        tuple((name, entity_type) for name, entity_type in entry["entities"]),
        tuple((head, relation, tail) for head, relation, tail in entry["relations"]),
        tuple((entity, attribute, value) for entity, attribute, value in entry["attributes"]),
    )


@cache
def _template() -> str:
    return files(__name__).joinpath("extract.txt").read_text("utf-8")


@cache
def _written_examples() -> dict[str, list[dict[str, Any]]]:
    loaded: dict[str, list[dict[str, Any]]] = json.loads(
        files(__name__).joinpath("examples.json").read_text("utf-8")
    )
    return loaded
