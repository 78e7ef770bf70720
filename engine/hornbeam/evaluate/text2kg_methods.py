"""The ways to find facts in the sentences of a set."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hornbeam.evaluate import given_facts
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence
from hornbeam.evaluate.given_facts import Given
from hornbeam.evaluate.known_examples import write_examples
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.guided_facts import GuidedFact, as_extraction, strongest
from hornbeam.extract.known_facts import Encoder, Fact
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.stages import Extractor
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import LanguageModel
from hornbeam.settings import ExtractSettings


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in one sentence: what is kept of it, and all that was given."""

    result: ChunkExtraction
    kept: tuple[Fact, ...]
    given: tuple[Given, ...] = ()


#: Told of every sentence of a set, by number, as soon as it ends.
Tell: TypeAlias = Callable[[int, Found], None]


def chunk_key(one: FactSet, number: int) -> str:
    """Of a sentence, in calls to the model."""
    return f"{one.name.replace('/', ' ')} {number}"


def guided_facts(
    one: FactSet,
    model: LanguageModel,
    encoder: Encoder,
    settings: ExtractSettings,
    tell: Tell,
) -> list[Found]:
    extractor = GuidedExtractor(model, one.schema, settings, one.known, encoder)
    found: dict[int, Found] = {}

    def ask(number: int, sentence: GoldSentence) -> Conversation[tuple[int, list[GuidedFact]]]:
        return number, (yield from extractor.facts(chunk_key(one, number), sentence.text))

    waiting = iter(enumerate(one.asked))

    def following() -> Conversation[tuple[int, list[GuidedFact]]] | None:
        pair = next(waiting, None)
        return None if pair is None else ask(*pair)

    for number, given in run_conversations(model, following, settings.window):
        ranked = sorted(given, key=lambda fact: -fact.confidence)
        kept = strongest(ranked, extractor.threshold)
        facts = tuple((fact.head, fact.predicate, fact.tail) for fact in kept)
        found[number] = Found(as_extraction(kept), facts, tuple(given_facts.of_guided(given)))
        tell(number, found[number])
    return [found[number] for number in range(len(one.asked))]


def staged_facts(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, tell: Tell
) -> list[Found]:
    """With the schema's own examples, or those of the settings."""
    return _staged(one, Extractor(model, one.schema, settings, encoder=encoder), tell)


def staged_facts_with_known(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, tell: Tell
) -> list[Found]:
    """With known sentences as examples, chosen as the settings say."""
    with tempfile.TemporaryDirectory() as scratch:
        file = write_examples(one, Path(scratch) / "examples.jsonl")
        limits = settings.model_copy(update={"example_file": str(file)})
        extractor = Extractor(model, one.schema, limits, encoder=encoder)
    return _staged(one, extractor, tell)


def _staged(one: FactSet, extractor: Extractor, tell: Tell) -> list[Found]:
    texts = [(chunk_key(one, number), sentence.text) for number, sentence in enumerate(one.asked)]
    found: dict[str, Found] = {}
    number_of = {key: number for number, (key, _) in enumerate(texts)}
    for key, result in extractor.run(texts):
        given = tuple(given_facts.of_staged(result))
        found[key] = Found(result, tuple(fact.fact for fact in given), given)
        tell(number_of[key], found[key])
    return [found[key] for key, _ in texts]
