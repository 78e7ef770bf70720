"""Training examples: the engine's own questions about annotated texts, with the answers that it wants.

A prompt is made by the code that asks it in a build, so that a model is trained as it will be used: with the
nearest known texts beside it, the types that these propose, and ends out of the same spans.

    guided      one line for every proposed type: its ends and `yes` where the text states it, ends that
                might be taken for it and `no` where it does not. Of a wrong line only its `no` is learnt.
    entities    the list of the first stage
    relations   the lists of the second stage, behind the entities
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hornbeam.extract.examples import rows
from hornbeam.extract.fact_scores import UNTRAINED
from hornbeam.extract.guided import GuidedExtractor, GuidedQuestion
from hornbeam.extract.known_facts import Encoder, Fact, KnownSentence, grounded
from hornbeam.extract.prompts import ExtractionPrompts
from hornbeam.grammar.facts import COLON, FactSlot, line
from hornbeam.grammar.relations import BETWEEN, CLOSING, NamedEntity
from hornbeam.llm.protocol import LanguageModel
from hornbeam.prompts import Prompts
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings
from hornbeam.tune.annotated import AnnotatedSet, AnnotatedText, renamed

Task = Literal["guided", "entities", "relations"]
TASKS: tuple[Task, ...] = ("guided", "entities", "relations")
#: How types may be written: see `renamed`.
_STYLES = ("words", "camel", "snake")
#: Share of the lines of stated facts that are given a wrong end instead, and a `no`.
_SPOILT = 0.25
#: Parts of a set: a text's known facts are those of the other parts, so that none is told its own.
_FOLDS = 3
#: A wrong line takes its ends from so many of the likest ones.
_LIKELY_ENDS = 3
#: How facts are asked for while nothing is fitted yet.
JUDGED = replace(UNTRAINED, judged=True)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of an answer."""

    text: str
    learnt: bool  # whether the model is to write it; else it is only to read it


@dataclass(frozen=True, slots=True)
class TrainingExample:
    task: Task
    set_name: str
    prompt: str
    answer: tuple[Piece, ...]


class ExampleMaker:
    """
    Args:
        model: for its chat format and tokenizer; nothing is asked of it.
        encoder: tells which known texts are nearest.
        settings: the ones that extraction will have.
        seed: of the choice of wrong ends and of the style of type names.
    """

    def __init__(
        self, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, prompts: Prompts, seed: int
    ) -> None:
        self._model = model
        self._encoder = encoder
        self._settings = settings
        self._prompts = prompts
        self._seed = seed

    def examples(
        self, one: AnnotatedSet, tasks: Sequence[Task], on_text: Callable[[], None] = lambda: None
    ) -> Iterator[TrainingExample]:
        """
        Args:
            on_text: called for every text of every task, for progress.
        """
        chance = random.Random(f"{self._seed} {one.name}")
        for task in tasks:
            make = self._guided if task == "guided" else self._staged
            yield from make(one, task, chance, on_text)

    def _guided(
        self, one: AnnotatedSet, task: Task, chance: random.Random, on_text: Callable[[], None]
    ) -> Iterator[TrainingExample]:
        for texts in folds(one.texts).values():
            styled = renamed(one, chance.choice(_STYLES))
            asked = {text.text for text in texts}
            known = [KnownSentence(text.text, text.facts) for text in styled.texts if text.text not in asked]
            if not known:
                continue
            extractor = GuidedExtractor(
                self._model, styled.schema, self._settings, known, self._encoder, self._prompts, JUDGED
            )
            for text in styled.texts:
                if text.text not in asked:
                    continue
                on_text()
                for question in extractor.questions(text.text):
                    facts = grounded(
                        KnownSentence(question.sentence.text, text.facts), question.sentence.spans
                    )
                    answer = tuple(answer_lines(question, facts, extractor, chance))
                    yield TrainingExample(task, one.name, question.request.prompt, answer)

    def _staged(
        self, one: AnnotatedSet, task: Task, chance: random.Random, on_text: Callable[[], None]
    ) -> Iterator[TrainingExample]:
        styled = renamed(one, chance.choice(_STYLES))
        prompts = ExtractionPrompts(self._prompts, styled.schema, self._model, self._settings, self._encoder)
        for text in styled.texts:
            on_text()
            entities = _typed_entities(text, styled.schema)
            if not entities:
                continue
            prompt = prompts.of(text.text)
            if task == "entities":
                written = f"{rows(entities)}]}}"
                yield TrainingExample(task, one.name, prompt.entities(text.text), (Piece(written, True),))
                continue
            named = [NamedEntity(name, entity_type) for name, entity_type in entities]
            relations, attributes = _ordered_facts(text, styled.schema, dict(entities))
            written = f"{rows(relations)}{BETWEEN}{rows(attributes)}{CLOSING}"
            yield TrainingExample(task, one.name, prompt.relations(text.text, named), (Piece(written, True),))


def folds(texts: Sequence[AnnotatedText]) -> dict[int, list[AnnotatedText]]:
    """By main subject: what is asked is about other things than what is known."""
    subjects = sorted({text.subject for text in texts})
    fold_of = {subject: number % _FOLDS for number, subject in enumerate(subjects)}
    folds: defaultdict[int, list[AnnotatedText]] = defaultdict(list)
    for text in texts:
        folds[fold_of[text.subject]].append(text)
    return dict(sorted(folds.items()))


def answer_lines(
    question: GuidedQuestion, facts: Sequence[Fact], extractor: GuidedExtractor, chance: random.Random
) -> Iterator[Piece]:
    """The answer to a guided question, a stretch to read and one to learn for every line.

    Args:
        facts: that the sentence states, as it writes them.
    """
    for slot in question.slots:
        stated = [
            (head, tail)
            for head, name, tail in facts
            if name == slot.relation and head in slot.heads_of.get(tail, ())
        ]
        wrong = None
        if not stated or chance.random() < _SPOILT:
            wrong = _wrong_ends(question, slot, stated, extractor, chance)
        if wrong is None:
            head, tail = stated[0]
            read = f"{slot.relation}{COLON}"
        else:
            head, tail = wrong
            read = line(slot.relation, head, tail)
        written = line(slot.relation, head, tail, stated=wrong is None)
        yield Piece(read, False)
        yield Piece(f"{written.removeprefix(read)}\n", True)


def _wrong_ends(
    question: GuidedQuestion,
    slot: FactSlot,
    stated: Sequence[tuple[str, str]],
    extractor: GuidedExtractor,
    chance: random.Random,
) -> tuple[str, str] | None:
    """Head and tail that the text does not state, such as a model might choose; None: it states all pairs."""
    right = set(stated)
    ends = question.sentence.ends
    known = extractor.known
    pairs = [
        (
            known.likeness_to_ends(slot.relation, 1, ends[tail])
            + known.likeness_to_ends(slot.relation, 0, ends[head]),
            head,
            tail,
        )
        for tail, heads in slot.heads_of.items()
        for head in heads
        if (head, tail) not in right
    ]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    _, head, tail = chance.choice(pairs[:_LIKELY_ENDS])
    return head, tail


def _typed_entities(text: AnnotatedText, schema: GraphSchema) -> list[tuple[str, str]]:
    """Names that stand in the text with types of the schema, in reading order; where no types are known,
    those that the domains and ranges of all its facts agree on. Empty if one has none."""
    types = {entity_type.name for entity_type in schema.entity_types}
    if text.entities:
        found = [(name, kind) for name, kind in text.entities if kind in types and name in text.text]
    else:
        possible: dict[str, set[str]] = {}
        relations = {relation.name for relation in schema.relation_types}
        for head, name, tail in text.facts:
            heads = schema.head_types(name) if name in relations else _owners(schema, name)
            possible[head] = possible.get(head, types) & set(heads)
            if name in relations:
                possible[tail] = possible.get(tail, types) & set(schema.tail_types(name))
        if any(len(some) != 1 for some in possible.values()):
            return []
        found = [(name, next(iter(some))) for name, some in possible.items() if name in text.text]
    return sorted(dict(found).items(), key=lambda entity: text.text.index(entity[0]))


def _owners(schema: GraphSchema, attribute: str) -> Sequence[str]:
    domain = next(item.domain for item in schema.attribute_types if item.name == attribute)
    return domain or [entity_type.name for entity_type in schema.entity_types]


def _ordered_facts(
    text: AnnotatedText, schema: GraphSchema, types: dict[str, str]
) -> tuple[list[Fact], list[Fact]]:
    """Relations and attributes that the grammar allows, in the order of their heads."""
    order = {name: number for number, name in enumerate(types)}
    attributes = {item.name for item in schema.attribute_types}
    relations: list[Fact] = []
    values: list[Fact] = []
    for head, name, tail in sorted(text.facts, key=lambda fact: order.get(fact[0], 0)):
        if head not in types:
            continue
        if name in attributes:
            if tail in text.text:
                values.append((head, name, tail))
        elif tail in types and head != tail and schema.allows(name, types[head], types[tail]):
            relations.append((head, name, tail))
    return relations, values
