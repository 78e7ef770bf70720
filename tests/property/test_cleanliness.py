"""Hostile texts change nothing of what the grammars guarantee; and the counter of faults sees faults."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.evaluate.adversarial import LONG_WORD, adversarial_texts
from hornbeam.evaluate.cleanliness import FAULTS, kept_faults, measure_cleanliness
from hornbeam.extract.result import ChunkExtraction, FoundAttribute, FoundEntity, FoundRelation
from hornbeam.grammar import relations as relation_stage
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Request
from hornbeam.schema.load import load_schema
from hornbeam.settings import ExtractSettings
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

GENERAL = load_schema("general")
SETTINGS = ExtractSettings(examples=1, max_output_tokens=96)


def test_hostile_texts_are_hostile_and_the_same_for_the_same_seed() -> None:
    texts = adversarial_texts(120, 3, ["naughty!"])
    assert texts == adversarial_texts(120, 3, ["naughty!"])
    assert len(texts) == 120
    assert sum(len(text) > LONG_WORD for text in texts) == 3
    together = "".join(texts)
    for piece in ("naughty!", "::=", "<|im_end|>", "\u200d", "gnore the schema", "חבר", "\u0301"):
        assert piece in together


@pytest.mark.parametrize("closing", [0.05, 0.3])
def test_nothing_hostile_makes_an_answer_or_a_result_unclean(closing: float) -> None:
    model = GrammarWalker(11, closing=closing)
    report = measure_cleanliness(adversarial_texts(40, 5), model, GENERAL, SETTINGS, HashedWords())
    assert report["method"] == "staged"
    assert {fault: report[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0), report["examples"]
    assert sum(report["states"].values()) == 40
    assert report["items"] > 40
    assert report["kept"] > 20


class Saying(GrammarWalker):
    """Gives fixed answers, whatever the grammar."""

    def __init__(self, entities: object, facts: object) -> None:
        super().__init__(1)
        self._entities, self._facts = entities, facts

    def complete(self, request: Request) -> Completion:
        said = self._facts if request.prompt.endswith(relation_stage.OPENING) else self._entities
        text = said if isinstance(said, str) else json.dumps(said)[len('{"entities": [') :]
        return replace(super().complete(request), text=text, finish_reason="stop")


TWO = '["Ada","person"],["Rome","place"]]}'


@pytest.mark.parametrize(
    ("entities", "facts", "fault"),
    [
        ("no json", "", "unreadable"),
        ('["Ada","person"]]}', "no json", "unreadable"),
        ('["Ada","dragon"]]}', "", "out_of_schema"),
        ('["Eve","person"]]}', "", "ungrounded"),
        (TWO, '["Ada","devours","Rome"]],"attributes":[]}', "out_of_schema"),
        (TWO, '["Ada","born_in","Eve"]],"attributes":[]}', "dangling"),
        (TWO, '["Rome","born_in","Ada"]],"attributes":[]}', "domain_range"),
    ],
)
def test_the_counter_sees_a_model_that_obeys_no_grammar(entities: str, facts: str, fault: str) -> None:
    model = Saying(entities, facts)
    report = measure_cleanliness(["Ada met Rome."], model, GENERAL, SETTINGS, HashedWords())
    assert report[fault] >= 1
    assert report["examples"][fault]


@pytest.fixture
def guided(tmp_path: Path) -> ExtractSettings:
    """Guided by two sentences whose facts have ends of every kind."""
    known = tmp_path / "known.jsonl"
    sentences = (
        ("Ada Byron was born in London in 1815.", ["Ada Byron", "born_in", "London"]),
        ("Ada Byron was born on December 10, 1815.", ["Ada Byron", "birth_date", "December 10, 1815"]),
    )
    lines = (json.dumps({"text": text, "facts": [fact]}) for text, fact in sentences)
    known.write_text("\n".join(lines), encoding="utf-8")
    return SETTINGS.model_copy(update={"known_facts": str(known), "guided_threshold": 0.0})


def test_nothing_hostile_makes_a_guided_answer_or_result_unclean(guided: ExtractSettings) -> None:
    texts = adversarial_texts(60, 6)
    report = measure_cleanliness(texts, GrammarWalker(12), GENERAL, guided, HashedWords())
    assert report["method"] == "guided"
    assert {fault: report[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0), report["examples"]
    assert sum(report["states"].values()) == 60
    assert report["kept"] > 20


class Lines(GrammarWalker):
    """Gives one answer to every guided call."""

    def __init__(self, said: str) -> None:
        super().__init__(1)
        self._said = said

    def complete(self, request: Request) -> Completion:
        return replace(super().complete(request), text=self._said, finish_reason="stop")


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("born_in: Rome | Ada", "unreadable"),  # the line has no end
        ("\n", "unreadable"),
        ("born_in: Rome\n", "unreadable"),
        ("born_in: Rome | Ada | Eve\n", "unreadable"),
        ("devours: Rome | Ada\n", "out_of_schema"),
        ("born_in: Paris | Ada\n", "ungrounded"),
        ("born_in: Rome | Eve\n", "ungrounded"),
        ("born_in:  | Ada\n", "ungrounded"),
        ("born_in: Rome | Ada\n", None),
    ],
)
def test_the_counter_sees_guided_answers_that_obey_no_grammar(
    guided: ExtractSettings, said: str, fault: str | None
) -> None:
    report = measure_cleanliness(["Ada was born in Rome."], Lines(said), GENERAL, guided, HashedWords())
    assert report["answers"] == 1
    assert {name: report[name] for name in FAULTS} == {name: int(name == fault) for name in FAULTS}


ADA = FoundEntity(name="Ada", type="person", confidence=1.0, spans=((0, 3),))
ROME = FoundEntity(name="Rome", type="place", confidence=1.0, spans=((16, 20),))


def _relation(head: int, name: str, tail: int) -> FoundRelation:
    return FoundRelation(head=head, type=name, tail=tail, confidence=1.0)


def _date(owner: int, value: str) -> FoundAttribute:
    return FoundAttribute(entity=owner, type="birth_date", value=value, start=16, end=20, confidence=1.0)


@pytest.mark.parametrize(
    ("result", "faults"),
    [
        (ChunkExtraction(entities=(ADA, ROME), relations=(_relation(0, "born_in", 1),)), []),
        (ChunkExtraction(entities=(ADA, ROME), relations=(_relation(1, "born_in", 0),)), ["domain_range"]),
        (ChunkExtraction(entities=(ADA,), relations=(_relation(0, "born_in", 1),)), ["dangling"]),
        (ChunkExtraction(entities=(ADA,), attributes=(_date(0, "Rome"),)), []),
        (ChunkExtraction(entities=(ROME,), attributes=(_date(0, "Rome"),)), ["domain_range"]),
        (ChunkExtraction(entities=(ADA,), attributes=(_date(0, "1815"),)), ["ungrounded"]),
        (ChunkExtraction(entities=(ROME.model_copy(update={"spans": ((0, 4),)}),)), ["ungrounded"]),
        # One name of two types: each fact is held against the type of its own end.
        (
            ChunkExtraction(
                entities=(ADA.model_copy(update={"type": "place"}), ADA, ROME),
                relations=(_relation(1, "born_in", 0),),
            ),
            [],
        ),
    ],
)
def test_the_counter_sees_what_was_kept_wrongly(result: ChunkExtraction, faults: list[str]) -> None:
    assert [fault for fault, _ in kept_faults("Ada was born in Rome.", result, GENERAL)] == faults
