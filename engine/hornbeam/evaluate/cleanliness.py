"""Is what a model said, and what was kept of it, within the schema and in the text? Counted, chunk by chunk.

Every raw answer is held against the schema and the chunk, without the code that reads answers for a build
(`evaluate.answer_faults`); then what was kept, by its offsets. The figures:

    unreadable     answers that ended by themselves and are not of the form that was asked for
    out_of_schema  items with a type that the schema has not
    domain_range   facts that the schema does not allow between these types
    dangling       facts about something that is no entity of the chunk
    ungrounded     names and values that do not stand in the chunk, or not where they are said to
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.errors import UsageError, reason
from hornbeam.evaluate.answer_faults import (
    Fault,
    attribute_faults,
    entity_faults,
    items_and_faults,
    relation_faults,
)
from hornbeam.evaluate.watched_model import WatchedModel
from hornbeam.extract.known_facts import Encoder
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.tiers import chunk_extractor
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.progress import Progress
from hornbeam.records import Document
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings, Settings

FAULTS = ("unreadable", "out_of_schema", "domain_range", "dangling", "ungrounded")
_EXAMPLES = 5


def measure_cleanliness(
    texts: Sequence[str],
    model: LanguageModel,
    schema: GraphSchema,
    settings: ExtractSettings,
    encoder: Encoder,
    *,
    quiet: bool = True,
) -> dict[str, Any]:
    """Extract the texts as a build with these settings would, and count what is not clean, in answers and in
    results.

    Raises:
        UsageError: the known facts of the settings cannot be read.
    """
    watched = WatchedModel(model)
    extractor = chunk_extractor(watched, schema, settings, encoder)
    cleanliness = Cleanliness()
    states: Counter[str] = Counter()
    rungs: Counter[str] = Counter()
    kept = 0
    with Progress(quiet=quiet) as progress, progress.stage("extract", len(texts), "chunks") as stage:
        pairs = ((str(number), text) for number, text in enumerate(texts))
        for key, result in extractor.run(pairs, lambda in_flight: None):
            states[result.state.value] += 1
            rungs.update(rung.value for rung in result.rungs)
            kept += len(result.entities) + result.facts
            cleanliness.add(f"chunk {key}", texts[int(key)], watched.take(key), result, schema)
            stage.advance()
    return {
        "model": model.identity.name,
        "schema": schema.name,
        "method": _method(settings),
        "chunks": len(texts),
        "states": dict(sorted(states.items())),
        "rungs": dict(sorted(rungs.items())),
        "kept": kept,
        **cleanliness.to_json(),
    }


def _method(settings: ExtractSettings) -> str:
    if settings.tier == "fast":
        return "fast"
    return "staged" if settings.known_facts is None else "guided"


class Cleanliness:
    """The count of what is not clean."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {fault: [] for fault in FAULTS}

    def add(
        self,
        where: str,
        text: str,
        said: Sequence[tuple[Request, Completion]],
        result: ChunkExtraction,
        schema: GraphSchema,
    ) -> None:
        """A text with what was asked and said about it, and what was kept.

        Args:
            where: names the text in an example.
        """
        for request, completion in said:
            if completion.finish_reason == "error":
                self._counts["failed_calls"] += 1
                continue
            self._counts["answers"] += 1
            self._counts["cut"] += completion.finish_reason == "length"
            items, faults = items_and_faults(request, completion, text, schema)
            self._counts["items"] += items
            self._note(where, faults)
        self._note(where, kept_faults(text, result, schema))

    def _note(self, where: str, faults: Iterable[Fault]) -> None:
        for fault, what in faults:
            self._counts[fault] += 1
            if len(self._examples[fault]) < _EXAMPLES:
                self._examples[fault].append(f"{where}: {what[:120]}")

    def to_json(self) -> dict[str, Any]:
        counted = ("answers", "cut", "failed_calls", "items", *FAULTS)
        return {
            **{name: self._counts[name] for name in counted},
            "examples": {fault: found for fault, found in self._examples.items() if found},
        }


def kept_faults(text: str, result: ChunkExtraction, schema: GraphSchema) -> Iterator[Fault]:
    """What is wrong with what was kept of a text, and whether it stands where it is said to."""
    rows = [[entity.name, entity.type] for entity in result.entities]
    yield from entity_faults(rows, " ".join(text.split()), schema)
    for entity in result.entities:
        if not entity.spans or any(" ".join(text[a:b].split()) != entity.name for a, b in entity.spans):
            yield "ungrounded", f"{entity.name} at {entity.spans}"
    types = dict(enumerate(entity.type for entity in result.entities))
    for relation in result.relations:
        if not {relation.head, relation.tail} <= types.keys():
            yield "dangling", relation.type
        yield from relation_faults(relation.type, types.get(relation.head), types.get(relation.tail), schema)
    for attribute in result.attributes:
        if attribute.entity not in types:
            yield "dangling", attribute.type
        yield from attribute_faults(attribute.type, types.get(attribute.entity), schema)
        value = " ".join(text[attribute.start : attribute.end].split())
        if not value or value != attribute.value:
            yield "ungrounded", f"{attribute.value} at {attribute.start}"


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
        raise UsageError(f"{file}: {reason(error)}") from error
    if not isinstance(strings, list) or not all(isinstance(string, str) for string in strings):
        raise UsageError(f"{file} is no JSON list of strings")
    return strings
