"""Is what a model said, and what was kept of it, within the schema and in the text? Counted, chunk by chunk.

Every raw answer is parsed as JSON and held against the schema and the chunk, without the code that reads
answers for a build (which would drop what does not belong); then what was kept, by its offsets. The figures:

    unreadable     answers that ended by themselves and are no JSON of the form
    out_of_schema  items with a type that the schema has not
    domain_range   facts that the schema does not allow between these types
    dangling       facts about something that is no entity of the chunk
    ungrounded     names and values that do not stand in the chunk, or not where they are said to
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.errors import UsageError
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.stages import Extractor
from hornbeam.grammar import entities as entity_stage
from hornbeam.grammar import relations as relation_stage
from hornbeam.llm.protocol import Completion, LanguageModel, ModelIdentity, Request, Tokenizer
from hornbeam.records import Document
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings, Settings

FAULTS = ("unreadable", "out_of_schema", "domain_range", "dangling", "ungrounded")
_ITEM = re.compile(r'\["(?:[^"\\]|\\.)*"(?:,"(?:[^"\\]|\\.)*")*\]')


def measure_cleanliness(
    texts: Sequence[str],
    model: LanguageModel,
    schema: GraphSchema,
    settings: ExtractSettings,
) -> dict[str, Any]:
    """Extract the texts and count what is not clean, in answers and in results."""
    watched = _Watched(model)
    extractor = Extractor(watched, schema, settings)
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {fault: [] for fault in FAULTS}
    states: Counter[str] = Counter()
    rungs: Counter[str] = Counter()
    for key, result in extractor.run((str(number), text) for number, text in enumerate(texts)):
        text = texts[int(key)]
        states[result.state.value] += 1
        rungs.update(rung.value for rung in result.rungs)
        faults = [*watched.faults_of(key, text, schema, counts), *_faults_kept(text, result, schema)]
        counts["kept"] += len(result.entities) + result.facts
        for fault, what in faults:
            counts[fault] += 1
            if len(examples[fault]) < 5:
                examples[fault].append(f"chunk {key}: {what[:120]}")
    return {
        "model": model.identity.name,
        "schema": schema.name,
        "chunks": len(texts),
        "states": dict(sorted(states.items())),
        "rungs": dict(sorted(rungs.items())),
        "answers": counts["answers"],
        "cut": counts["cut"],
        "failed_calls": counts["failed_calls"],
        "items": counts["items"],
        "kept": counts["kept"],
        **{fault: counts[fault] for fault in FAULTS},
        "examples": {fault: found for fault, found in examples.items() if found},
    }


class _Watched:
    """The model, with what it was asked and what it said."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._asked: dict[str, Request] = {}
        self._said: dict[str, list[tuple[Request, Completion]]] = {}

    @property
    def identity(self) -> ModelIdentity:
        return self._model.identity

    @property
    def tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    @property
    def max_model_len(self) -> int:
        return self._model.max_model_len

    @property
    def in_flight(self) -> int:
        return self._model.in_flight

    def chat_prompt(self, system: str, user: str) -> str:
        return self._model.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._model.neutralise(text)

    def submit(self, request: Request) -> None:
        self._asked[request.request_id] = request
        self._model.submit(request)

    def poll(self) -> list[Completion]:
        completions = self._model.poll()
        for completion in completions:
            key = completion.request_id.partition("/")[0]
            request = self._asked.pop(completion.request_id)
            self._said.setdefault(key, []).append((request, completion))
        return completions

    def stream(self, request: Request) -> Iterator[str | Completion]:
        return self._model.stream(request)

    def close(self) -> None:
        self._model.close()

    def faults_of(
        self, key: str, text: str, schema: GraphSchema, counts: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        """(fault, what) of every answer about a chunk; counts answers and items."""
        flat = " ".join(text.split())
        for request, completion in self._said.pop(key, []):
            if completion.finish_reason == "error":
                counts["failed_calls"] += 1
                continue
            counts["answers"] += 1
            is_second = request.prompt.endswith(relation_stage.OPENING)
            said = (relation_stage.OPENING if is_second else entity_stage.OPENING) + completion.text
            cut = completion.finish_reason == "length"
            counts["cut"] += cut
            lists = _complete_items(said) if cut else _parsed(said, is_second)
            if lists is None:
                yield "unreadable", completion.text
                continue
            counts["items"] += sum(map(len, lists.values()))
            if is_second:
                yield from _fact_faults(lists, _shown_entities(request.prompt), flat, schema)
            else:
                yield from _entity_faults(lists["entities"], flat, schema)


_Lists = dict[str, list[list[str]]]


def _parsed(said: str, is_second: bool) -> _Lists | None:
    try:
        lists = json.loads(said)
    except ValueError:
        return None
    names, width = (("relations", "attributes"), 3) if is_second else (("entities",), 2)
    fits = list(lists) == list(names) and all(
        len(item) == width and all(isinstance(part, str) for part in item)
        for name in names
        for item in lists[name]
    )
    return lists if fits else None


def _complete_items(said: str) -> _Lists:
    """The items of an answer that was cut: what stands whole between brackets."""
    lists: _Lists = {"entities": [], "relations": [], "attributes": []}
    parts = re.split(r'(?:\{|\],)"(entities|relations|attributes)":\[', said)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        lists[name] = [json.loads(match) for match in _ITEM.findall(body)]
    return lists


def _shown_entities(prompt: str) -> dict[str, str]:
    """Name → type of the entities that a second prompt ends with."""
    shown = prompt.rpartition(entity_stage.OPENING)[2].removesuffix("\n" + relation_stage.OPENING)
    return dict(json.loads("[" + shown.removesuffix("}")))


def _entity_faults(items: list[list[str]], flat: str, schema: GraphSchema) -> Iterator[tuple[str, str]]:
    known = {entity_type.name for entity_type in schema.entity_types}
    for name, entity_type in items:
        if entity_type not in known:
            yield "out_of_schema", entity_type
        if not name.strip() or name not in flat:
            yield "ungrounded", name


def _fact_faults(
    lists: _Lists, entities: dict[str, str], flat: str, schema: GraphSchema
) -> Iterator[tuple[str, str]]:
    relations = {relation.name for relation in schema.relation_types}
    attributes = {attribute.name for attribute in schema.attribute_types}
    for head, relation, tail in lists["relations"]:
        if relation not in relations:
            yield "out_of_schema", relation
        elif head not in entities or tail not in entities:
            yield "dangling", f"{head} {relation} {tail}"
        elif not schema.allows(relation, entities[head], entities[tail]):
            yield "domain_range", f"{head} {relation} {tail}"
    for owner, attribute, value in lists["attributes"]:
        if attribute not in attributes:
            yield "out_of_schema", attribute
        elif owner not in entities:
            yield "dangling", f"{owner} {attribute}"
        elif attribute not in {item.name for item in schema.attributes_of(entities[owner])}:
            yield "domain_range", f"{owner} {attribute}"
        if not value.strip() or value not in flat:
            yield "ungrounded", value


def _faults_kept(text: str, result: ChunkExtraction, schema: GraphSchema) -> Iterator[tuple[str, str]]:
    """Of what was kept: as above, and that everything stands where it is said to."""
    entities = {entity.name: entity.type for entity in result.entities}
    rows = [[entity.name, entity.type] for entity in result.entities]
    yield from _entity_faults(rows, " ".join(text.split()), schema)
    for entity in result.entities:
        if not entity.spans or any(" ".join(text[a:b].split()) != entity.name for a, b in entity.spans):
            yield "ungrounded", f"{entity.name} at {entity.spans}"
    names = [entity.name for entity in result.entities]
    facts: _Lists = {
        "relations": [[names[fact.head], fact.type, names[fact.tail]] for fact in result.relations],
        "attributes": [[names[fact.entity], fact.type, fact.value] for fact in result.attributes],
    }
    yield from _fact_faults(facts, entities, " ".join(text.split()), schema)
    for fact in result.attributes:
        if " ".join(text[fact.start : fact.end].split()) != fact.value:
            yield "ungrounded", f"{fact.value} at {fact.start}"


def corpus_texts(paths: Sequence[str], settings: Settings, model: LanguageModel) -> Iterator[str]:
    """The chunks of what `hornbeam index` would read.

    Raises:
        UsageError: a path does not exist.
    """
    chunker = Chunker(model.tokenizer, settings.chunk.max_tokens, settings.chunk.overlap_tokens)
    for document in read_corpus(paths, settings.corpus):
        if isinstance(document, Document):
            yield from (chunk.text for chunk in chunker.chunk(document))


def naughty_strings(file: Path) -> list[str]:
    """
    Raises:
        UsageError: the file is no JSON list of strings.
    """
    try:
        strings = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {error}") from error
    if not isinstance(strings, list) or not all(isinstance(string, str) for string in strings):
        raise UsageError(f"{file} is no JSON list of strings")
    return strings
