from hashlib import sha256

import pytest

from hornbeam.index.texts import (
    TEXTS_VERSION,
    chunk_text,
    community_text,
    entity_text,
    entity_texts,
    relation_words,
    triple_text,
)
from hornbeam.records import Attribute, Entity


def test_relation_types_become_words() -> None:
    assert [relation_words(kind) for kind in ("born_in", "bornIn", "part-of", "USES")] == [
        "born in",
        "born in",
        "part of",
        "USES",
    ]


def test_an_entity_is_its_name_type_description_and_best_attributes() -> None:
    entity = Entity("e1", "Marie Curie", "person", "Polish physicist.", [], 1, 1, 1.0)
    attributes = [
        Attribute("a2", "e1", "birth_year", "1867", 0.9),
        Attribute("a1", "e1", "field", "physics", 0.5),
    ]
    assert entity_texts([entity], {"e1": attributes[::-1]}) == [
        "Marie Curie (person). Polish physicist. birth year: 1867; field: physics"
    ]
    assert entity_text("Curie", "", "", []) == "Curie"


def test_a_triple_is_a_sentence_without_punctuation() -> None:
    assert triple_text("Warsaw", "capital_of", "Poland") == "Warsaw capital of Poland"
    assert triple_text("Warsaw", "capital_of", "Poland", "Warsaw is large.") == "Warsaw capital of Poland"


@pytest.mark.parametrize("relation", ["occurs_with", "occursWith", "related_to", "RELATED_TO", "Related-To"])
def test_where_a_relation_tells_nothing_the_sentence_is_the_fact(relation: str) -> None:
    sentence = "Marie Curie was born in Warsaw."
    words = relation_words(relation)

    assert triple_text("Marie Curie", relation, "Warsaw", sentence) == sentence
    assert triple_text("Curie", relation, "Paris", sentence) == f"Curie {words} Paris. {sentence}"
    assert triple_text("Curie", relation, "Paris") == f"Curie {words} Paris"


def test_a_title_leads_its_chunk_unless_it_says_nothing_new() -> None:
    assert chunk_text("Curie", "a.jsonl#3", "She moved.") == "Curie\nShe moved."
    assert chunk_text("Curie", "a.txt", "Curie moved.") == "Curie moved."
    assert chunk_text("notes", "/in/notes.txt", "She moved.") == "She moved."
    assert chunk_text("", "a.txt", "She moved.") == "She moved."


def test_a_community_leaves_out_what_it_lacks() -> None:
    assert (
        community_text("Radium", ["Curie", "polonium"], "Discovery.") == "Radium. Curie, polonium. Discovery"
    )
    assert community_text("Radium", [], "") == "Radium"


def test_other_texts_are_of_another_version() -> None:
    """An update takes over the vectors of texts of the same version: raise it where this fails."""
    long = "word " * 200
    texts = [
        entity_text("Marie Curie", "person", "", []),
        entity_text("Marie Curie", "research_field", f"{long}.", [("birthYear", long)] * 6),
        triple_text("Marie Curie", "born_in", "Warsaw", "Marie Curie was born in Warsaw."),
        triple_text("Marie Curie", "relatedTo", "Warsaw", "Marie Curie was born in Warsaw."),
        triple_text("Marie Curie", "occurs_with", "Paris", "Curie lived there."),
        triple_text("居里夫人", "RELATED_TO", "华沙", "居里夫人生于华沙。"),
        chunk_text("Radium", "radium.txt", "It glows."),
        chunk_text("Radium pioneers", "radium.txt#2", "They met."),
        community_text("Radioactivity.", ["radium", "Curie"], "A summary. "),
    ]
    digest = sha256("\n".join(texts).encode()).hexdigest()[:16]
    assert (TEXTS_VERSION, digest) == ("2", "f4a11a58ceb0fc86")
