"""Questions about types, the answers that are read from completions, and how they come together."""

import math
from pathlib import Path

import pytest
import regex

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.evolve.asking import Asker, Question, as_many_as_fit, things_of
from hornbeam.evolve.gathering import gather, sightings_of
from hornbeam.evolve.prompts import ProposalPrompt
from hornbeam.evolve.suggestions import ChunkSuggestions, Thing, read_entity_types, read_fact_types
from hornbeam.extract.result import ChunkExtraction, FoundEntity
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.grammar.type_names import name_rules
from hornbeam.prompts import load_prompts, shipped_prompts
from hornbeam.schema import load_schema
from hornbeam.schema.proposals import Sighting
from hornbeam.settings import EvolveSettings, PromptSettings
from support.type_scripts import TypeScript, completion, entity_answer, fact_answer
from support.version_by_hand import HashedWords

TEXT = "Ilsabet built the Selkie turbine at the Corvane Institute in 1931. Selkie weighs 40 tonnes."
LEXICON = SpanLexicon(TEXT, 8)


def place_of(surface: str, occurrence: int = 0) -> tuple[int, int]:
    start = TEXT.index(surface) if not occurrence else TEXT.rindex(surface)
    return start, start + len(surface)


ILSABET = Thing("Ilsabet", "person", place_of("Ilsabet"))
TURBINE = Thing("Selkie turbine", "product", place_of("Selkie turbine"))


# Reading


def test_an_entity_type_has_its_span_and_the_mean_of_its_tokens() -> None:
    said = completion(entity_answer([["Corvane Institute", "institute"]]), logprob=-0.5)

    (found,) = read_entity_types(said, LEXICON).suggestions

    assert (found.kind, found.name, found.places) == (
        "entity",
        "institute",
        (place_of("Corvane Institute"),),
    )
    assert found.confidence == pytest.approx(math.exp(-0.5), abs=1e-3)


def test_what_says_nothing_is_dropped() -> None:
    rows = [
        ["Selkie", "selkie"],  # its own name
        ["Nowhere", "town"],  # not in the text
        ["Ilsabet", '"'],  # no name for a type
        ["Corvane Institute", "institute"],
        ["Corvane Institute", "institutes"],  # the same again
        ["Ilsabet"],
    ]

    found = read_entity_types(completion(entity_answer(rows)), LEXICON)

    assert [each.name for each in found.suggestions] == ["institute"]
    assert found.complete


def test_of_an_answer_that_is_cut_the_complete_items_are_kept() -> None:
    whole = entity_answer([["Corvane Institute", "institute"], ["Selkie turbine", "turbine_kind"]])

    found = read_entity_types(completion(whole[:-12]), LEXICON)

    assert len(found.suggestions) == 1
    assert not found.complete


def test_facts_have_the_types_of_their_ends_and_the_kind_of_their_value() -> None:
    answer = fact_answer(
        [
            ["Ilsabet", "built", "Selkie turbine"],
            ["Ilsabet", "built", "Ilsabet"],
            ["Ilsabet", "built", "Nobody"],
        ],
        [
            ["Selkie turbine", "weighs", "40"],
            ["Selkie turbine", "year", "1931"],
            ["Ilsabet", "at", "Corvane"],
        ],
    )

    built, weight, year, at = read_fact_types(completion(answer), [ILSABET, TURBINE], LEXICON).suggestions

    assert (built.kind, built.types, built.places) == (
        "relation",
        ("person", "product"),
        (ILSABET.span, TURBINE.span),
    )
    assert (weight.types, weight.value_kind, weight.places[1]) == (("product",), "number", place_of("40"))
    assert (year.value_kind, at.value_kind) == ("number", "text")


# Asking


def ask(
    model: TypeScript, *questions: Question, schema: str | None = "general"
) -> dict[str, ChunkSuggestions]:
    asker = Asker(model, load_schema(schema) if schema else None, EvolveSettings(), any_words=False)
    answers = [answer for some in asker.ask(questions) for answer in some]
    assert len(answers) == len(questions)
    return {answer.key: answer.found for answer in answers if answer.found is not None}


def test_every_question_is_answered_and_one_without_words_costs_no_call() -> None:
    model = TypeScript(lambda text: [["Corvane Institute", "institute"]])

    found = ask(
        model,
        Question("a", TEXT),
        Question("b", "?!"),
        Question("c", TEXT, (ILSABET, TURBINE)),
        Question("d", "— … —", ()),
    )

    assert set(found) == {"a", "b", "c", "d"}
    assert found["a"].suggestions[0].name == "institute"
    assert found["b"] == found["d"] == ChunkSuggestions()
    assert model.calls == 2


def test_a_failed_question_has_no_answer_and_an_error() -> None:
    asker = Asker(TypeScript(fail_when=lambda request: "down"), None, EvolveSettings(), any_words=False)

    (answers,) = asker.ask([Question("a", TEXT)])

    assert answers[0].found is None
    assert answers[0].error == "down"


def test_a_model_with_too_little_room_is_told_before_anything_is_asked() -> None:
    asker = Asker(TypeScript(max_model_len=500), load_schema("general"), EvolveSettings(), any_words=False)

    with pytest.raises(ModelError, match="asking for types needs"):
        asker.check_room(320)


def test_the_prompt_names_the_known_types_and_shows_no_known_one_as_lacking() -> None:
    medical = load_schema("medical")
    prompt = ProposalPrompt(medical, TypeScript(), shipped_prompts()).entity_types("A text.")

    assert "disease" in {item.name for item in medical.entity_types}
    assert '"marsh fever","disease"' not in prompt
    assert '"osprey","bird"' in prompt
    assert "none" in ProposalPrompt(None, TypeScript(), shipped_prompts()).entity_types("A text.")


def test_a_chunk_is_asked_about_in_its_language_and_in_the_users_words(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "entity_types.txt").write_text(
        "Kinds, please.\n$known\n$examples\n---\n$text", "utf-8"
    )
    own = load_prompts(PromptSettings(directory=str(tmp_path)))
    model = TypeScript()
    settings = EvolveSettings()
    asker = Asker(model, None, settings, any_words=True, prompts=own)
    list(asker.ask([Question("a", "史进去寻王进。"), Question("b", TEXT)]))
    chinese, english = (request.prompt for request in model.requests)
    assert "文本：史进去寻王进。" in chinese
    assert "Kinds, please." in english
    shipped = Asker(model, None, settings, any_words=True)
    assert shipped.version == Asker(model, None, settings, any_words=True, prompts=shipped_prompts()).version
    assert shipped.version != asker.version


def test_things_are_in_reading_order_and_as_many_as_fit() -> None:
    entities = tuple(
        FoundEntity(name=f"name {n}", type="person", confidence=0.5, spans=((n * 10, n * 10 + 6),))
        for n in reversed(range(30))
    )

    things = things_of(ChunkExtraction(entities=entities))

    assert [thing.name for thing in things] == [f"name {n}" for n in range(16)]
    assert as_many_as_fit([Thing("x" * 700, "person", (0, 700))]) == ()


# Names


def names_of(text: str, **options: bool) -> str:
    return name_rules(SpanLexicon(text, 8), "name", **options)


def test_names_are_lower_cased_words_of_the_chunk() -> None:
    rules = names_of("The Corvane Institute of Tides, 1931")

    assert '"institute"' in rules
    assert "1931" not in rules
    first, following = (line for line in rules.splitlines()[1:])
    assert '"of"' in following
    assert '"of"' not in first


def test_scripts_without_spaces_give_runs_of_characters() -> None:
    rules = names_of("北京大学位于海淀区。")

    assert '"大学"' in rules
    assert '"北京大学"' in rules
    assert '"区"' not in rules  # one alone
    assert "。" not in rules


def test_a_chunk_without_letters_has_no_names() -> None:
    assert names_of("1867 ?! 40") == ""
    assert name_rules(SpanLexicon("person", 8), "name", taken={"person"}) == ""


def test_free_names_are_of_small_letters_and_letters_without_case() -> None:
    letter = regex.compile(names_of("x", any_words=True).split("]")[0].split("::= ")[1] + "]")

    assert all(map(letter.fullmatch, "azßöčłžωύяёאيあタ大도"))
    assert not any(map(letter.fullmatch, "AČŁŽΩЯЁ÷・゛_1 "))


# Gathering


def said(kind: str, document: str) -> list[Sighting]:
    script = TypeScript(lambda text: [["Corvane Institute", kind]])
    found = ask(script, Question(document, TEXT))[document]
    return list(sightings_of(found, document, f"t{document}", f"{document}c0", TEXT, documents=50))


def test_in_very_few_documents_support_is_counted_in_chunks() -> None:
    found = ask(TypeScript(lambda text: [["Corvane Institute", "institute"]]), Question("q", TEXT))["q"]

    def support(documents: int) -> int:
        chunks = [
            sighting
            for number in range(3)
            for sighting in sightings_of(
                found, "book", f"t{number}", f"book c{number}", TEXT, documents=documents
            )
        ]
        ((proposal, _),) = gather(chunks, None, HashedWords(), EvolveSettings())
        return proposal.support

    assert support(documents=1) == support(documents=9) == 3
    assert support(documents=10) == 1


def test_forms_and_synonyms_come_together_and_the_nearest_known_type_is_named() -> None:
    sightings = [*said("institute", "d1"), *said("institutes", "d2"), *said("turbine", "d3")]

    gathered = gather(sightings, load_schema("general"), HashedWords(), EvolveSettings())

    assert [(each.name, each.support, each.also) for each, _ in gathered] == [
        ("institute", 2, ("institutes",)),
        ("turbine", 1, ()),
    ]
    example = gathered[0][0].examples[0]
    assert (example.chunk_id, example.places[0].surface) == ("d1c0", "Corvane Institute")
    assert TEXT[example.places[0].start : example.places[0].end] == example.places[0].surface
    assert all(each.nearest for each, _ in gathered)


def test_names_that_are_alike_are_one_proposal() -> None:
    settings = EvolveSettings(synonym_similarity=0.6)
    sightings = [*said("corvane_institute_tonnes", "d1"), *said("institute_tonnes", "d2")]

    gathered = gather(sightings, None, HashedWords(), settings)

    assert [(each.support, len(each.also)) for each, _ in gathered] == [(2, 1)]
    assert gathered[0][0].nearest is None
