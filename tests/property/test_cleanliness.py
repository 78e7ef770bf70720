"""Hostile texts change nothing of what the grammars guarantee; and the counter of faults sees faults."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.evaluate.adversarial import LONG_WORD, adversarial_texts
from hornbeam.evaluate.cleanliness import FAULTS, measure_cleanliness
from hornbeam.grammar import relations as relation_stage
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Request
from hornbeam.schema.load import load_schema
from hornbeam.settings import ExtractSettings
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
    report = measure_cleanliness(adversarial_texts(40, 5), model, GENERAL, SETTINGS)
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
    report = measure_cleanliness(["Ada met Rome."], Saying(entities, facts), GENERAL, SETTINGS)
    assert report[fault] >= 1
    assert report["examples"][fault]
