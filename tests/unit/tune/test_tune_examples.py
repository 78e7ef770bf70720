"""Training examples: the engine's own prompts, with answers that its grammar allows and its reader reads."""

import json
import random
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError, UsageError
from hornbeam.evaluate.fact_sets import read_fact_sets
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.known_facts import KnownSentence
from hornbeam.grammar.facts import read_facts
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Usage
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.prompts import shipped_prompts
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType
from hornbeam.settings import ExtractSettings
from hornbeam.tune.annotated import AnnotatedSet, AnnotatedText, read_annotated, renamed
from hornbeam.tune.batches import batches, sample
from hornbeam.tune.examples import JUDGED, TASKS, ExampleMaker, Piece, TrainingExample, answer_lines, folds
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

try:
    DIRECTORY = embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

SCHEMA = GraphSchema(
    name="people",
    entity_types=(EntityType(name="Person"), EntityType(name="Place")),
    relation_types=(
        RelationType(name="birthPlace", domain=("Person",), range=("Place",)),
        RelationType(name="deathPlace", domain=("Person",), range=("Place",)),
    ),
    attribute_types=(AttributeType(name="birthDate", domain=("Person",), kind="date"),),
)
PEOPLE = ["Ada Byron", "Karl Kesel", "Mary Shelley", "Ella Baker", "Hugo Ball", "Nora Barlow"]
PLACES = ["London", "Oslo", "Paris", "Norfolk", "Zurich", "Down"]
SET = AnnotatedSet(
    "people",
    SCHEMA,
    tuple(
        AnnotatedText(
            f"{person} was born in {place} on May {day}, 1900.",
            ((person, "birthPlace", place), (person, "birthDate", f"1900-05-{day:02}")),
        )
        for day, (person, place) in enumerate(zip(PEOPLE, PLACES, strict=True), start=1)
    ),
)


def maker(seed: int = 1) -> ExampleMaker:
    return ExampleMaker(GrammarWalker(1), HashedWords(), ExtractSettings(), shipped_prompts(), seed)


def test_guided_answers_say_what_is_stated_and_deny_what_is_not() -> None:
    stated = denied = 0
    for seed in range(4):
        for example in maker(seed).examples(SET, ["guided"]):
            asked = example.prompt.rpartition("Text: ")[2]
            (place,) = (place for place in PLACES if f"born in {place} on" in asked)
            for opening, learnt in zip(example.answer[0::2], example.answer[1::2], strict=True):
                assert not opening.learnt
                assert learnt.learnt
                written = opening.text + learnt.text
                kind = written.partition(":")[0].replace("_", "").replace(" ", "").lower()
                if written.endswith("| yes\n"):
                    stated += 1
                    assert kind == "birthdate" or (kind == "birthplace" and f": {place} |" in written)
                else:
                    denied += 1
                    assert written.endswith("| no\n")
                    assert not (kind == "birthplace" and f": {place} | " in written)
                    assert learnt.text == " | no\n"  # what the wrong line says is not learnt
    assert stated > 10
    assert denied > 10


def test_a_text_is_not_among_the_known_ones_of_its_own_prompt() -> None:
    for example in maker().examples(SET, ["guided"]):
        instructions, _, asked = example.prompt.rpartition("Text: ")
        assert asked.splitlines()[0] not in instructions
        assert "| yes" in instructions  # examples are in the form that is asked for


def test_staged_answers_are_entities_in_reading_order_and_facts_behind_them() -> None:
    first, second = (next(iter(maker().examples(SET, [task]))) for task in TASKS[1:])
    assert json.loads(f"[{first.answer[0].text.removesuffix('}')}") == [
        ["Ada Byron", "Person"],
        ["London", "Place"],
    ]
    assert second.prompt.startswith(first.prompt)
    relations = json.loads('{"relations":[' + second.answer[0].text)
    (relation,) = relations["relations"]
    assert relation[0] == "Ada Byron"
    assert relation[2] == "London"


def test_types_are_renamed_in_the_schema_and_the_facts_alike() -> None:
    snake = renamed(SET, "snake")
    assert [relation.name for relation in snake.schema.relation_types] == ["birth_place", "death_place"]
    assert snake.texts[0].facts[0] == ("Ada Byron", "birth_place", "London")
    assert renamed(snake, "camel").texts == SET.texts


def test_types_that_would_become_one_keep_their_names() -> None:
    schema = GraphSchema(
        name="x",
        entity_types=(EntityType(name="A"),),
        relation_types=(RelationType(name="partOf"), RelationType(name="part_of")),
    )
    one = AnnotatedSet("x", schema, (AnnotatedText("A part.", (("A", "partOf", "part"),)),))
    assert renamed(one, "words") is one


def test_folds_keep_a_subject_together() -> None:
    texts = [AnnotatedText(f"{p} {n}", ((p, "birthPlace", str(n)),)) for n in range(4) for p in PEOPLE]
    fold_of = {}
    for number, some in folds(texts).items():
        for text in some:
            assert fold_of.setdefault(text.subject, number) == number
    assert len(set(fold_of.values())) > 1


def test_learnt_tokens_are_those_of_the_learnt_pieces() -> None:
    tokenizer = DirectoryTokenizer(DIRECTORY)
    answer = (
        Piece("team: Titans | Akeem", False),
        Piece(" | no\n", True),
        Piece("née: ", False),
        Piece("1900 | é | yes\n", True),
    )
    made = sample(TrainingExample("guided", "s", "Facts:\n", answer), tokenizer)
    decode = tokenizer.decoder()
    pieces = [decode(token) for token in made.ids]
    assert "".join(pieces) == "Facts:\n" + "".join(piece.text for piece in answer)
    learnt = "".join(pieces[place] for place in made.learnt)
    assert learnt.replace("\n 1900", "\n1900") == " | no\n1900 | é | yes\n"


def test_batches_hold_every_sample_once_and_no_more_tokens_than_asked() -> None:
    tokenizer = DirectoryTokenizer(DIRECTORY)
    samples = [
        sample(TrainingExample("guided", str(n), "a " * n, (Piece("yes", True),)), tokenizer)
        for n in range(1, 150)
    ]
    made = list(batches(samples, 64, random.Random(1)))
    assert sorted(one.set_name for some in made for one in some) == sorted(one.set_name for one in samples)
    assert all(len(some) == 1 or len(some) * max(len(one.ids) for one in some) <= 64 for some in made)


def test_what_is_learnt_is_what_a_reader_reads() -> None:
    """An example's answer, given by a model, comes back as facts with their judgement."""
    known = [KnownSentence(text.text, text.facts) for text in SET.texts[1:]]
    extractor = GuidedExtractor(
        GrammarWalker(1),
        SCHEMA,
        ExtractSettings(),
        known,
        HashedWords(),
        scores=JUDGED,
    )
    (question,) = extractor.questions(SET.texts[0].text)
    pieces = answer_lines(question, [("Ada Byron", "birthPlace", "London")], extractor, random.Random(3))
    text = "".join(piece.text for piece in pieces)
    read = read_facts(Completion("a", text, "stop", Usage()), question.slots, judged=True)
    assert len(read) == len(question.slots)


def test_sources_are_told_apart_and_faults_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of annotated texts"):
        read_annotated(tmp_path / "nothing", None)
    file = tmp_path / "worked.jsonl"
    file.write_text(
        json.dumps(
            {
                "text": "Ada met Bo in Oslo.",
                "entities": [["Ada", "person"], ["Oslo", "place"]],
                "relations": [["Ada", "located_in", "Oslo"]],
            }
        )
        + "\n"
    )
    with pytest.raises(UsageError, match="--schema"):
        read_annotated(file, None)


def test_a_set_that_is_tested_on_gives_only_what_it_counts_as_known(tmp_path: Path) -> None:
    root = tmp_path / "set"
    for folder in ("ontologies", "train", "ground_truth"):
        (root / folder).mkdir(parents=True)
    ontology = {
        "title": "People",
        "id": "ont_1",
        "concepts": [{"qid": "P", "label": "person"}, {"qid": "L", "label": "place"}],
        "relations": [{"pid": "b", "label": "birth place", "domain": "P", "range": "L"}],
    }
    for number, name in ((1, "people"), (2, "others")):
        (root / "ontologies" / f"{number}_{name}_ontology.json").write_text(json.dumps(ontology))
        lines = [
            json.dumps(
                {
                    "id": person,
                    "sent": f"{person} was born in {place}.",
                    "triples": [{"sub": person, "rel": "birth place", "obj": place}],
                }
            )
            for person, place in zip(PEOPLE, PLACES, strict=True)
        ]
        part = f"ont_{number}_{name}"
        (root / "train" / f"{part}_train.jsonl").write_text("\n".join(lines[:5]))
        if number == 1:
            (root / "ground_truth" / f"{part}_ground_truth.jsonl").write_text(lines[5])
    tested, untested = read_annotated(root, None)
    asked = {one.text for found in read_fact_sets(root, None, "test") for one in found.asked}
    assert asked == {"Nora Barlow was born in Down."}
    assert {text.text for text in tested.texts}.isdisjoint(asked)
    assert len(tested.texts) == len(untested.texts) == 5
