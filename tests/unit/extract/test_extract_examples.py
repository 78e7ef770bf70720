"""Examples: from a store, the first or the nearest, within the context; none of their text comes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError, UsageError
from hornbeam.extract.prompts import ExtractionPrompts
from hornbeam.extract.stages import Extractor
from hornbeam.prompts import shipped_prompts
from hornbeam.schema.load import load_schema
from hornbeam.settings import ExtractSettings
from support.walker import GrammarWalker

SCHEMA = load_schema("general")
TOPICS = ("harbour", "violin", "comet", "glacier")


class Topics:
    """A text is as like another as they share words of `TOPICS`."""

    fingerprint = "topics"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[float(topic in text) for topic in TOPICS] + [0.1] for text in texts]
        vectors = np.array(rows, np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def model() -> GrammarWalker:
    try:
        return GrammarWalker(3, closing=0.1)
    except ModelError as missing:
        pytest.skip(str(missing))


def example_line(topic: str) -> str:
    """Names that no text of these tests holds."""
    head, tail = f"Qu{topic}xa", f"Zy{topic}po"
    return json.dumps(
        {
            "text": f"{head} leads {tail} at the {topic}.",
            "entities": [[head, "person"], [tail, "organization"]],
            "relations": [[head, "leads", tail]],
        }
    )


@pytest.fixture
def store(tmp_path: Path) -> str:
    file = tmp_path / "examples.jsonl"
    file.write_text("\n".join(example_line(topic) for topic in TOPICS) + "\n", "utf-8")
    return str(file)


def prompts_of(model: GrammarWalker, **settings: object) -> ExtractionPrompts:
    chosen = ExtractSettings.model_validate(settings)
    return ExtractionPrompts(shipped_prompts(), SCHEMA, model, chosen, Topics())


def test_the_first_examples_of_a_store_are_the_same_for_every_chunk(model: GrammarWalker, store: str) -> None:
    prompts = prompts_of(model, example_file=store, examples=2)
    first, second = prompts.of("of a comet"), prompts.of("of a glacier")
    assert first.system == second.system
    assert "Quharbourxa" in first.system
    assert "Quviolinxa" in first.system
    assert "Qucometxa" not in first.system


def test_the_nearest_examples_stand_next_to_the_chunk_and_what_is_fixed_before_them(
    model: GrammarWalker, store: str
) -> None:
    prompts = prompts_of(model, example_file=store, examples=2, example_choice="nearest")
    comet, glacier = (prompts.of(f"A {topic} and a violin.").system for topic in ("comet", "glacier"))
    assert "Qucometxa" in comet
    assert "Qucometxa" not in glacier
    assert comet.index("attribute") < comet.index("Qucometxa")
    head = prompts_of(model, example_file=store, examples=0).of("").system
    assert comet.startswith(head)
    assert glacier.startswith(head)


def test_as_many_nearest_examples_as_the_context_has_room_for(store: str) -> None:
    def shown(max_model_len: int) -> int:
        model = GrammarWalker(max_model_len=max_model_len)
        prompts = prompts_of(model, example_file=store, examples=4, example_choice="nearest")
        chunk = "A violin on a comet."
        prompt = prompts.of(chunk).entities(chunk)
        assert model.tokenizer.count(prompt) + 512 <= max_model_len
        return prompt.count("Text: Qu")

    bare = GrammarWalker().tokenizer.count(prompts_of(GrammarWalker(), examples=0).of("").entities("")) + 520
    assert shown(bare + 1000) == 4
    assert 0 < shown(bare + 200) < 4
    assert shown(bare + 20) == 0


def test_the_version_follows_prompt_store_and_choice(model: GrammarWalker, store: str) -> None:
    settings: list[dict[str, object]] = [
        {}, {"examples": 1}, {"example_file": store}, {"example_file": store, "examples": 1},
        {"example_file": store, "example_choice": "nearest"}, {"relations_per_head": 0},
    ]  # fmt: skip
    versions = [prompts_of(model, **some).versions for some in settings]
    assert len({version["en"] for version in versions}) == len(settings)
    assert prompts_of(model, example_file=store).versions == versions[2]
    for version in versions:
        assert version[""] == version["en"] != version["zh"]


def test_types_that_are_not_asked_for_are_not_shown(model: GrammarWalker) -> None:
    system = prompts_of(model, relations_per_head=0, attributes_per_entity=0, examples=0).of("").system
    assert "person:" in system
    assert "works_for" not in system
    assert "birth_date" not in system


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 1: Invalid JSON"),
        ('{"text": "a", "entities": []}', "line 1: entities"),
        ('{"text": "a", "entities": [["a", "dragon"]]}', "no example is in the types of schema 'general'"),
        (
            '{"text": "a", "entities": [["a", "person"]], "relations": [["a", "leads", "b"]]}',
            "no example is in the types",
        ),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line(
    line: str, told: str, model: GrammarWalker, tmp_path: Path
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(line, "utf-8")
    with pytest.raises(UsageError, match=told):
        prompts_of(model, example_file=str(file))


@pytest.mark.parametrize("choice", ["fixed", "nearest"])
def test_no_text_of_an_example_comes_back_whatever_the_model_prefers(
    choice: str, model: GrammarWalker, store: str
) -> None:
    texts = {
        "1": "Ada Byron saw the comet over Bath. She told Mary Somerville of the violin.",
        "2": "The glacier feeds the harbour of Osterby, where Tom Veil was born on 3 June 1948.",
        "3": "林冲在沧州看见了彗星 comet。",
    }
    settings = ExtractSettings.model_validate(
        {"example_file": store, "example_choice": choice, "examples": 4}
    )
    extractor = Extractor(model, SCHEMA, settings, encoder=Topics())
    said = dict(extractor.run((key, text, "zh" if key == "3" else "en") for key, text in texts.items()))
    assert all("Qu" in request.prompt for request in model.requests)
    assert sum(len(result.entities) for result in said.values()) > 3
    for key, result in said.items():
        found = [entity.name for entity in result.entities] + [fact.value for fact in result.attributes]
        for name in found:
            assert "".join(name.split()) in "".join(texts[key].split())
            assert not any(f"Qu{topic}" in name or f"Zy{topic}" in name for topic in TOPICS)
