"""P(yes) from an answer's tokens, and the questions that are asked."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.extract.result import (
    ChunkExtraction,
    ChunkVerification,
    FoundAttribute,
    FoundEntity,
    FoundRelation,
)
from hornbeam.extract.stages import Extractor
from hornbeam.extract.verification import Chunk, Verifier, probability_of_yes
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Request, TokenScore, Usage
from hornbeam.schema.load import load_schema
from hornbeam.settings import ExtractSettings
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

GENERAL = load_schema("general")
TEXT = "Ada Byron, born in 1815, lived in London."
FOUND = ChunkExtraction(
    entities=(
        FoundEntity(name="Ada Byron", type="person", confidence=1, spans=((0, 9),)),
        FoundEntity(name="London", type="location", confidence=1, spans=((34, 40),)),
    ),
    relations=(FoundRelation(head=0, type=GENERAL.relation_types[0].name, tail=1, confidence=1),),
    attributes=(
        FoundAttribute(
            entity=0, type=GENERAL.attribute_types[0].name, value="1815", start=19, end=23, confidence=1
        ),
    ),
)  # fmt: skip


def answer(text: str, *probabilities: float, reason: str = "stop") -> Completion:
    tokens = tuple(TokenScore("", math.log(p)) for p in probabilities)
    return Completion("a", text, reason, Usage(), tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("completion", "probability"),
    [
        (answer("yes", 0.8), 0.8),
        (answer("yes", 0.8, 1.0), 0.8),  # and the token that ends it
        (answer("no", 0.9), 0.1),
        (answer(" no", 0.5, 0.5), 0.75),
        (answer("yes"), 1.0),  # a server that tells no probabilities
        (answer("perhaps", 0.9), None),
        (answer("", reason="error"), None),
    ],
)
def test_p_yes_is_the_probability_of_the_answer_or_what_it_leaves(
    completion: Completion, probability: float | None
) -> None:
    assert probability_of_yes(completion) == (
        None if probability is None else pytest.approx(probability, abs=1e-3)
    )


def verify(model: GrammarWalker, retries: int = 1) -> ChunkVerification:
    settings = ExtractSettings(retries=retries)
    verifier = Verifier(Extractor(model, GENERAL, settings), GENERAL, settings)
    ((key, found),) = verifier.run([Chunk("k", TEXT, FOUND)])
    assert key == "k"
    assert isinstance(found, ChunkVerification)
    return found


def test_every_fact_is_asked_about_behind_the_prompt_of_its_chunk() -> None:
    model = GrammarWalker(1)
    prompt = Extractor(model, GENERAL, ExtractSettings()).prompts.of(TEXT)
    found = verify(model)
    shared = prompt.entities(TEXT).index(TEXT) + len(TEXT)
    assert len(model.requests) == 2
    for request, said in zip(model.requests, ("London", "1815"), strict=True):
        assert request.prompt[:shared] == prompt.entities(TEXT)[:shared]
        assert "Ada Byron" in request.prompt[shared:]
        assert said in request.prompt[shared:]
    assert found.complete


def test_a_call_that_fails_is_tried_again_and_then_leaves_its_fact_alone_unverified() -> None:
    def fails(request: Request) -> str | None:
        return "gone" if request.request_id == "k/1" else None

    model = GrammarWalker(1, fail_when=fails)
    found = verify(model, retries=2)
    assert [r.request_id for r in model.requests] == ["k/0", "k/1", "k/1", "k/1"]
    assert found.relations[0] is not None
    assert found.attributes == (None,)
    assert found.detail == "gone"
    assert found.usage["verification"].calls == 4
