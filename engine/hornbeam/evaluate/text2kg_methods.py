"""The ways to find facts in the sentences of a set."""

from __future__ import annotations

from dataclasses import dataclass

from hornbeam.evaluate.fact_sets import FactSet, GoldSentence
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.guided_facts import GuidedFact, as_extraction, strongest
from hornbeam.extract.known_facts import Encoder, Fact
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.stages import Extractor
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import LanguageModel
from hornbeam.progress import Stage
from hornbeam.settings import ExtractSettings


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in one sentence: what is kept of it, and of guided extraction all that was given."""

    result: ChunkExtraction
    kept: tuple[Fact, ...]
    given: tuple[GuidedFact, ...] = ()


def chunk_key(one: FactSet, number: int) -> str:
    """Of a sentence, in calls to the model."""
    return f"{one.name.replace('/', ' ')} {number}"


def guided_facts(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, stage: Stage
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
        kept = strongest(ranked, settings.guided_threshold)
        facts = tuple((fact.head, fact.predicate, fact.tail) for fact in kept)
        found[number] = Found(as_extraction(kept), facts, tuple(given))
        stage.advance()
    return [found[number] for number in range(len(one.asked))]


def staged_facts(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, stage: Stage
) -> list[Found]:
    extractor = Extractor(model, one.schema, settings)
    texts = [(chunk_key(one, number), sentence.text) for number, sentence in enumerate(one.asked)]
    found: dict[str, Found] = {}
    for key, result in extractor.run(texts):
        found[key] = Found(result, _facts(result))
        stage.advance()
    return [found[key] for key, _ in texts]


def _facts(result: ChunkExtraction) -> tuple[Fact, ...]:
    names = [entity.name for entity in result.entities]
    relations = [(names[fact.head], fact.type, names[fact.tail]) for fact in result.relations]
    return (*relations, *((names[fact.entity], fact.type, fact.value) for fact in result.attributes))
