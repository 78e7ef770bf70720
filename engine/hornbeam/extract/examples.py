"""Worked examples: facts that a text states, in the schema's types, shown before the chunk.

From a store of written ones (the shipped file's, or the user's own), the first few for every chunk or the
nearest to each by embedding. For a schema that has none, one is made of plain sentences.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

import numpy as np
from pydantic import ValidationError

from hornbeam.errors import UsageError
from hornbeam.extract.known_facts import Encoder
from hornbeam.grammar import entities as entity_stage
from hornbeam.grammar import relations as relation_stage
from hornbeam.prompts import DEFAULT_LANGUAGE, ExampleFile, WorkedExample, shipped_prompts
from hornbeam.prompts.worked import first_fault
from hornbeam.schema.model import GraphSchema

_MADE_RELATIONS, _MADE_PER_HEAD = 5, 2


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
    descriptions: tuple[tuple[str, str], ...] = ()

    def rendered(self, question: str, *, described: bool = False) -> str:
        """
        Args:
            question: how a prompt puts this text to the model.
            described: with the descriptions of entities.
        """
        about = {name: (text,) for name, text in self.descriptions} if described else {}
        entities = [(*entity, *about.get(entity[0], ())) for entity in self.entities]
        return (
            f"{question}\n"
            f"{entity_stage.OPENING}{rows(entities)}]}}\n"
            f"{relation_stage.OPENING}{rows(self.relations)}{relation_stage.BETWEEN}"
            f"{rows(self.attributes)}{relation_stage.CLOSING}"
        )


class ExampleStore:
    """The examples to choose from, all in the types of one schema.

    Args:
        examples: the first ones are those that are shown where nothing tells which are nearest.
        encoder: tells how like a chunk and the examples' texts are; None: the choice is fixed.
    """

    def __init__(self, examples: Sequence[Example], encoder: Encoder | None = None) -> None:
        self._examples = list(examples)
        self._encoder = encoder
        self._vectors = encoder.encode([example.text for example in examples]) if encoder else None

    @property
    def version(self) -> str:
        """Of all that may be shown and of how it is chosen."""
        digest = hashlib.sha256((self._encoder.fingerprint if self._encoder else "").encode())
        for example in self._examples:
            shown = [example.text, example.entities, example.relations, example.attributes]
            shown.append(example.descriptions)
            digest.update(json.dumps(shown).encode())
        return digest.hexdigest()[:16]

    @property
    def varies(self) -> bool:
        """Other chunks see other examples."""
        return self._encoder is not None

    def ranked(self, text: str) -> list[Example]:
        """The likest to a chunk first, or as they are."""
        if self._encoder is None or self._vectors is None:
            return self._examples
        likeness = self._vectors @ self._encoder.encode([text])[0]
        return [self._examples[place] for place in np.argsort(-likeness, kind="stable")]


def choose(
    ranked: Sequence[Example], most: int, render: Callable[[Example], str], fits: Callable[[str], bool]
) -> Iterator[str]:
    """The first examples that fit, at most `most`, rendered, in the order of `ranked`."""
    shown = 0
    for example in ranked:
        if shown == most:
            return
        written = render(example)
        if fits(written):
            shown += 1
            yield written


def read_examples(file: Path, schema: GraphSchema) -> list[Example]:
    """
    Raises:
        UsageError: the file cannot be read, a line is not of the form, or no example has the schema's types.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"extract.example_file {file}: {error}") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(_example(WorkedExample.model_validate_json(line)))
        except ValidationError as error:
            raise UsageError(f"extract.example_file {file}, line {number}: {first_fault(error)}") from error
    fitting = [example for example in found if _fits(example, schema)]
    if not fitting:
        raise UsageError(f"extract.example_file {file}: no example is in the types of schema '{schema.name}'")
    return fitting


def schema_examples(schema: GraphSchema, written: ExampleFile | None = None) -> list[Example]:
    """Worked examples in the schema's types: written ones where there are, else one made from the schema.

    Args:
        written: None: the shipped English ones.
    """
    written = written or shipped_prompts().examples(DEFAULT_LANGUAGE)
    examples = [_example(entry) for entry in written.schemas.get(schema.name, ())]
    fitting = [example for example in examples if _fits(example, schema)]
    return fitting or [_made_example(schema, written)]


def _made_example(schema: GraphSchema, written: ExampleFile) -> Example:
    """A text of plain sentences, one per relation type, about made-up names: shows form and direction."""
    names = iter(written.names)
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
        said = relation.name.replace("_", " ")
        sentences.append(Template(written.fact).substitute(head=head, relation=said, tail=tail))
        relations.append((head, relation.name, tail))
    if not relations:
        name = name_of(schema.entity_types[0].name)
        sentences.append(Template(written.bare).substitute(name=name))
    # In order of first mention; relations in the order of their heads.
    entities = tuple((name, entity_type) for entity_type, name in by_type.items())
    relations.sort(key=lambda relation: list(by_type.values()).index(relation[0]))
    return Example(" ".join(sentences), entities, tuple(relations), ())


def _fits(example: Example, schema: GraphSchema) -> bool:
    """Every fact has its ends among the entities, and types that the schema has."""
    types = dict(example.entities)
    known = {entity_type.name for entity_type in schema.entity_types}
    if not set(types.values()) <= known:
        return False
    return all(
        head in types and tail in types and schema.allows(relation, types[head], types[tail])
        for head, relation, tail in example.relations
    ) and all(
        owner in types and name in {attribute.name for attribute in schema.attributes_of(types[owner])}
        for owner, name, _ in example.attributes
    )


def _example(entry: WorkedExample) -> Example:
    return Example(entry.text, entry.entities, entry.relations, entry.attributes, entry.descriptions)


def rows(items: Sequence[Sequence[str]]) -> str:
    return ",".join(json.dumps(list(item), ensure_ascii=False, separators=(",", ":")) for item in items)
