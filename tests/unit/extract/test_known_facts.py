"""A store of known sentences: what it reads, proposes and shows."""

import json
from pathlib import Path

import pytest

from hornbeam.errors import UsageError
from hornbeam.extract.known_facts import KnownFacts, KnownSentence, plain_name, read_known_sentences
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType
from support.version_by_hand import HashedWords

SCHEMA = GraphSchema(
    name="people",
    entity_types=(EntityType(name="Person"), EntityType(name="Place")),
    relation_types=(
        RelationType(name="birthPlace", domain=("Person",), range=("Place",)),
        RelationType(name="deathPlace", domain=("Person",), range=("Place",)),
    ),
    attribute_types=(AttributeType(name="birthDate", domain=("Person",), kind="date"),),
)
BORN = KnownSentence(
    "Ada Byron was born in London on December 10, 1815.",
    (("Ada_Byron", "birthPlace", "London"), ("Ada_Byron", "birthDate", '"1815-12-10"')),
)
DIED = KnownSentence(
    "Karl Kesel died in Kent (England).", (("Karl_Kesel_(artist)", "deathPlace", "Kent_(England)"),)
)


def store(*sentences: KnownSentence) -> KnownFacts:
    return KnownFacts(sentences, SCHEMA, HashedWords(), 10)


def test_examples_are_written_as_their_sentences_write_them() -> None:
    known = store(BORN, DIED)
    assert known.example(0)[1] == (
        ("Ada Byron", "birthPlace", "London"),
        ("Ada Byron", "birthDate", "December 10, 1815"),
    )
    assert known.example(1)[1] == (("Karl Kesel", "deathPlace", "Kent (England)"),)


def test_the_nearest_sentence_and_its_types_come_first() -> None:
    known = store(BORN, DIED)
    sentence = known.read(["Mary Shelley was born in Paris on May 1, 1820."])[0]
    assert known.nearest(sentence)[0] == 0
    votes = known.proposals(sentence)
    assert votes["birthPlace"] > votes["deathPlace"]
    assert votes.keys() == {"birthPlace", "deathPlace", "birthDate"}


def test_a_type_that_the_text_names_is_proposed_without_a_known_sentence() -> None:
    known = store(DIED)
    votes = known.proposals(known.read(["His birth place is Rome."])[0])
    assert votes["birthPlace"] == pytest.approx(0.3)


def test_types_that_the_schema_lacks_are_left_out() -> None:
    known = store(BORN, KnownSentence("Ada Byron met Karl.", (("Ada Byron", "met", "Karl"),)))
    assert len(known) == 1


def test_the_version_follows_the_sentences() -> None:
    assert store(BORN).version == store(BORN).version
    assert store(BORN).version != store(BORN, DIED).version


def test_an_empty_store_proposes_what_is_named_alone() -> None:
    known = store()
    assert known.nearest(known.read(["Rome."])[0]) == []
    assert set(known.proposals(known.read(["Rome."])[0]).values()) == {0.0}


def test_plain_names() -> None:
    assert plain_name("Mermaid_(Train_song)") == "Mermaid"
    assert plain_name('"Yes"') == "Yes"
    assert plain_name("(all)") == "(all)"


@pytest.mark.parametrize(
    "written",
    ["{", '{"text": "a"}', '{"text": "a", "facts": [["x", "y"]]}', '{"text": 1, "facts": []}', "[]"],
)
def test_a_line_of_another_form_is_named(tmp_path: Path, written: str) -> None:
    file = tmp_path / "known.jsonl"
    file.write_text(json.dumps({"text": "a", "facts": []}) + "\n" + written + "\n", "utf-8")
    with pytest.raises(UsageError, match="line 2"):
        read_known_sentences(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.jsonl"):
        read_known_sentences(tmp_path / "missing.jsonl")
