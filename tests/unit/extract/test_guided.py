"""Guided extraction with the worst model: whatever it answers, facts are grounded, typed and counted."""

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError, UsageError
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.guided_facts import strongest
from hornbeam.extract.known_facts import KnownSentence
from hornbeam.extract.result import ChunkExtraction, Reason, Rung
from hornbeam.extract.tiers import chunk_extractor
from hornbeam.llm.checked import CheckedModel
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import LanguageModel, Request
from hornbeam.records import ChunkState
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType
from hornbeam.settings import ExtractSettings
from support.building import build, table, walker, walking_settings
from support.invariants import check_invariants
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

SCHEMA = GraphSchema(
    name="people",
    entity_types=(EntityType(name="Person"), EntityType(name="Place"), EntityType(name="Club")),
    relation_types=(
        RelationType(name="birthPlace", domain=("Person",), range=("Place",)),
        RelationType(name="plays for", domain=("Person",), range=("Club", "Place")),
    ),
    attribute_types=(AttributeType(name="birthDate", domain=("Person",), kind="date"),),
)
KNOWN = [
    KnownSentence(
        "Ada Byron was born in London on December 10, 1815.",
        (("Ada Byron", "birthPlace", "London"), ("Ada Byron", "birthDate", "1815-12-10")),
    ),
    KnownSentence("Karl Kesel plays for Kent Rovers.", (("Karl Kesel", "plays for", "Kent Rovers"),)),
]
TEXT = (
    "Akeem Ayers was born in Los Angeles on July 10, 1989. He plays for the Tennessee Titans.\n\n"
    "Mary Shelley was born on May 1, 1820 in Paris, France."
)


def extractor(model: LanguageModel, **settings: Any) -> GuidedExtractor:
    return GuidedExtractor(model, SCHEMA, ExtractSettings(**settings), KNOWN, HashedWords())


def run(model: LanguageModel, text: str = TEXT, **settings: Any) -> ChunkExtraction:
    ((_, result),) = extractor(model, **settings).run([("a", text)])
    return result


@pytest.mark.parametrize("seed", range(20))
def test_whatever_a_model_answers_is_typed_and_stands_in_the_text(seed: int) -> None:
    result = run(GrammarWalker(seed), guided_threshold=0.0)
    assert result.state is ChunkState.DONE
    assert result.relations
    for entity in result.entities:
        assert all(" ".join(TEXT[start:end].split()) == entity.name for start, end in entity.spans)
        assert entity.spans
    for fact in result.relations:
        assert SCHEMA.allows(fact.type, result.entities[fact.head].type, result.entities[fact.tail].type)
        assert fact.head != fact.tail
    for value in result.attributes:
        assert TEXT[value.start : value.end] == value.value
        assert (value.type, result.entities[value.entity].type) == ("birthDate", "Person")
        assert value.value in ("July 10, 1989", "May 1, 1820")


def test_a_call_is_short_sentences_of_a_paragraph_and_all_begin_alike() -> None:
    model = GrammarWalker(0)
    result = run(model)
    assert result.usage["facts"].calls == model.calls == 2
    assert "1989. He plays" in model.requests[0].prompt
    prompts = [request.prompt for request in model.requests]
    assert all("Extract the facts" in prompt.split("Text: ")[0] for prompt in prompts)
    assert len({prompt.split("Text: ")[0] for prompt in prompts}) == 1


def test_the_nearest_example_stands_last() -> None:
    model = GrammarWalker(0)
    run(model, "Jan Novak plays for Kent United.", examples=2)
    (prompt,) = (request.prompt for request in model.requests)
    assert prompt.index("Ada Byron") < prompt.index("Karl Kesel") < prompt.index("Jan Novak")


def test_examples_that_do_not_fit_the_context_are_left_out() -> None:
    model = GrammarWalker(0, max_model_len=512)
    run(model, examples=2, max_output_tokens=440)
    assert all("Ada Byron" not in request.prompt for request in model.requests)


def test_weak_facts_are_left_out_but_for_the_best_of_a_sentence() -> None:
    everything = run(GrammarWalker(1), guided_threshold=0.0)
    best = run(GrammarWalker(1), guided_threshold=1.0)
    assert len(best.relations) + len(best.attributes) == 2
    assert len(everything.relations) + len(everything.attributes) >= 2


def test_a_tail_belongs_to_one_fact_of_its_sentence() -> None:
    conversation = extractor(GrammarWalker(0)).facts("a", TEXT)
    model = GrammarWalker(0)
    for request in next(conversation):
        model.submit(request)
    with pytest.raises(StopIteration) as end:
        conversation.send(model.poll())
    facts = sorted(end.value.value, key=lambda fact: -fact.confidence)
    tails = [fact.tail for fact in strongest(facts, 0.0)]
    assert len(set(tails)) == len(tails)


@pytest.mark.parametrize("text", ["", "…", "nothing at all", "😀 😀", "\u200b\u200b", "word" * 3000])
def test_a_text_that_offers_nothing_is_done(text: str) -> None:
    result = run(GrammarWalker(0), text)
    assert result.state is ChunkState.DONE
    assert not result.reasons


def test_a_call_that_fails_costs_the_chunk_what_it_asked_about() -> None:
    def fail(request: Request) -> str | None:
        return "gone" if "Tennessee" in request.prompt else None

    result = run(GrammarWalker(0, fail_when=fail))
    assert result.state is ChunkState.DEGRADED
    assert result.reasons == (Reason.MODEL_ERROR,)
    assert result.detail == "gone"
    assert {entity.name for entity in result.entities}


def test_a_chunk_whose_calls_all_fail_is_failed() -> None:
    model = GrammarWalker(0, fail_when=lambda request: "gone")
    result = run(model, retries=1)
    assert result.state is ChunkState.FAILED
    assert model.calls == 4


LONG_WORDS = ("a", "Ж", "字", "e\u0301", "ab1_", "👍🏽")


@pytest.mark.parametrize("letter", LONG_WORDS)
def test_a_word_that_fills_the_context_costs_a_chunk_itself_alone(letter: str) -> None:
    word = letter * (10_000 // len(letter))
    text = f"{TEXT} Ada Lovelace was born with {word} in London on May 2, 1815. {TEXT}"
    model = GrammarWalker(2, max_model_len=2048)
    result = run(model, text, guided_threshold=0.0)
    assert result.state in (ChunkState.DONE, ChunkState.DEGRADED)
    assert set(result.reasons) <= {Reason.PROMPT_TOO_LONG}
    assert result.rungs[Rung.SPLIT] >= 1
    names = {entity.name for entity in result.entities}
    assert {"Akeem Ayers", "Mary Shelley"} & names
    for entity in result.entities:
        assert len(entity.name) < 300
        assert all(" ".join(text[start:end].split()) == entity.name for start, end in entity.spans)
    for value in result.attributes:
        assert text[value.start : value.end] == value.value


def test_a_chunk_of_nothing_but_a_word_that_does_not_fit_is_failed_with_the_reason() -> None:
    result = run(GrammarWalker(0, max_model_len=512), "Ж" * 10_000)
    assert result.state is ChunkState.FAILED
    assert result.reasons == (Reason.PROMPT_TOO_LONG,)
    assert "10000 characters" in result.detail
    assert not result.usage


def test_a_text_that_a_server_finds_too_long_is_asked_about_in_halves() -> None:
    def fail(request: Request) -> str | None:
        asked = request.prompt.rsplit("Text: ", 1)[1]
        both = "Akeem" in asked and "plays" in asked
        return "prompt of 9 tokens exceeds the context of 8" if both else None

    model = GrammarWalker(0, fail_when=fail)
    result = run(model, guided_threshold=0.0)
    assert result.state is ChunkState.DONE
    assert result.rungs == {Rung.SPLIT: 1}
    assert len({request.request_id for request in model.requests}) == model.calls
    first = len(TEXT.split("plays")[0])
    assert any(start < first for entity in result.entities for start, _ in entity.spans)
    assert any(first < start < len(TEXT) - 60 for entity in result.entities for start, _ in entity.spans)


def test_a_refused_grammar_is_halved_down_to_one_pair_of_ends() -> None:
    class Strict:
        """Allows the grammar of one pair of ends, and few more."""

        def submit(self, grammar: str) -> Future[bool]:
            verdict: Future[bool] = Future()
            verdict.set_result(len(grammar) > 130)
            return verdict

    everything = run(GrammarWalker(0), guided_threshold=0.0)
    result = run(CheckedModel(GrammarWalker(0), Strict()), guided_threshold=0.0)
    assert result.state is ChunkState.DONE
    assert result.rungs[Rung.GRAMMAR_SPLIT] > 2
    assert len(result.relations) >= len(everything.relations)
    for fact in result.relations:
        assert SCHEMA.allows(fact.type, result.entities[fact.head].type, result.entities[fact.tail].type)


def test_grammars_that_are_all_refused_fail_the_chunk_without_asking_again_and_again() -> None:
    class Never:
        def submit(self, grammar: str) -> Future[bool]:
            verdict: Future[bool] = Future()
            verdict.set_result(True)
            return verdict

    model = GrammarWalker(0)
    result = run(CheckedModel(model, Never()))
    assert result.state is ChunkState.FAILED
    assert result.reasons == (Reason.GRAMMAR_TOO_LARGE,)
    assert model.calls == 0


def test_the_version_follows_the_known_facts() -> None:
    model = GrammarWalker(0)
    other = GuidedExtractor(model, SCHEMA, ExtractSettings(), KNOWN[:1], HashedWords())
    assert extractor(model).versions == extractor(model).versions != other.versions


def test_a_chunk_that_can_never_fit_is_refused() -> None:
    with pytest.raises(ModelError, match="context"):
        extractor(GrammarWalker(0, max_model_len=512)).check_room(400)


def _write(file: Path, known: list[KnownSentence]) -> None:
    lines = [json.dumps({"text": sentence.text, "facts": sentence.facts}) for sentence in known]
    file.write_text("\n".join(lines), "utf-8")


def test_known_facts_without_a_type_of_the_schema_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "known.jsonl"
    _write(file, [KnownSentence("a b", (("a", "unheard", "b"),))])
    with pytest.raises(UsageError, match="no fact has a type"):
        chunk_extractor(GrammarWalker(0), SCHEMA, ExtractSettings(known_facts=str(file)), HashedWords())


def test_a_build_that_is_guided_keeps_every_invariant(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text(TEXT, "utf-8")
    _write(tmp_path / "known.jsonl", KNOWN)
    settings = walking_settings(extract={"known_facts": str(tmp_path / "known.jsonl")})
    index = tmp_path / "index"
    report = build(index, [tmp_path / "corpus"], schema=SCHEMA, settings=settings)
    assert report.exit_code == 0
    check_invariants(index / "versions" / str(report.version))
    assert table(index, report.version, "relations")
    again = walker()
    assert build(index, [tmp_path / "corpus"], schema=SCHEMA, settings=settings, model=again).version == (
        report.version
    )
    assert again.calls == 0
