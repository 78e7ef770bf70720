"""From completions to facts; also from a server that enforced no grammar."""

from __future__ import annotations

import math

import pytest

from hornbeam.extract.reading import ReadEntities, merge_entities, read_entities, read_relations
from hornbeam.extract.result import FoundEntity
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Completion, TokenScore, Usage
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType

SCHEMA = GraphSchema(
    name="test",
    entity_types=(EntityType(name="person"), EntityType(name="place")),
    relation_types=(
        RelationType(name="born_in", domain=("person",), range=("place",)),
        RelationType(name="knows", domain=("person",), range=("person",)),
    ),
    attribute_types=(
        AttributeType(name="birth", domain=("person",), kind="date"),
        AttributeType(name="trade", domain=("person",), kind="text"),
    ),
)
TEXT = "In 1700 Ada was born in Rome. Ada met Bob, a smith, in 1815. In 1900 Rome fell."
LEXICON = SpanLexicon(TEXT, 10)


def completion(*pieces: tuple[str, float]) -> Completion:
    tokens = tuple(TokenScore(text, math.log(probability)) for text, probability in pieces)
    return Completion("r", "".join(text for text, _ in pieces), "stop", Usage(), tokens)


def entity(name: str, entity_type: str, confidence: float = 1.0) -> FoundEntity:
    spans = tuple(LEXICON.occurrences(name))
    assert spans
    return FoundEntity(name=name, type=entity_type, confidence=confidence, spans=spans)


def test_an_entity_has_all_its_places_and_the_mean_of_name_and_type() -> None:
    answer = completion(("[", 0.1), ('"Ada"', 0.5), (",", 0.1), ('"person"', 0.125), ("]", 0.1), ("]}", 0.1))
    read = read_entities(answer, LEXICON, SCHEMA)
    (ada,) = read.entities
    assert [TEXT[start:end] for start, end in ada.spans] == ["Ada", "Ada"]
    assert ada.confidence == pytest.approx(0.25)
    assert read.complete


def test_a_name_given_twice_keeps_the_more_confident_type_and_is_counted() -> None:
    answer = completion(
        ('["Rome","person"]', 0.2), (',["Rome","place"]', 0.9), (',["Rome","person"]', 0.3), ("]}", 1)
    )
    read = read_entities(answer, LEXICON, SCHEMA)
    assert [(found.name, found.type) for found in read.entities] == [("Rome", "place")]
    assert read.repeated == 2


def test_what_no_grammar_would_have_allowed_is_not_an_entity() -> None:
    answer = completion(('["Zoe","person"],["Ada","robot"],["Ada"],["Bob","person"]]}', 1))
    read = read_entities(answer, LEXICON, SCHEMA)
    assert [found.name for found in read.entities] == ["Bob"]
    assert read.dropped == 3


def test_a_relation_multiplies_the_confidence_of_head_type_and_tail() -> None:
    found = (entity("Ada", "person", 0.5), entity("Rome", "place", 0.9))
    answer = completion(
        *(("[", 1), ('"Ada"', 0.1), (",", 1), ('"born_in"', 0.5), (",", 1), ('"Rome"', 0.25), ("]", 1)),
        ('],"attributes":[]}', 1),
    )
    read = read_relations(answer, found, LEXICON, SCHEMA)
    (relation,) = read.relations
    assert (relation.head, relation.type, relation.tail) == (0, "born_in", 1)
    assert relation.confidence == pytest.approx(0.5 * 0.5 * 0.25, abs=0.00051)
    assert read.complete


def test_repeated_and_self_relations_and_wrong_ones_are_left_out() -> None:
    found = (entity("Ada", "person"), entity("Rome", "place"))
    items = [
        *('["Ada","born_in","Rome"]', '["Ada","born_in","Rome"]', '["Ada","knows","Ada"]'),
        *(
            '["Rome","born_in","Ada"]',
            '["Ada","owns","Rome"]',
            '["Ada","born_in","Bob"]',
            '["Ada","born_in"]',
        ),
    ]
    read = read_relations(completion((",".join(items) + '],"attributes":[]}', 1)), found, LEXICON, SCHEMA)
    assert [(r.head, r.type, r.tail) for r in read.relations] == [(0, "born_in", 1)]
    assert read.repeated == 1
    assert read.complete


def attribute_of_ada(name: str, value: str) -> list[str]:
    answer = completion((f'],"attributes":[["Ada","{name}","{value}"]]}}', 1))
    read = read_relations(answer, (entity("Ada", "person"), entity("Rome", "place")), LEXICON, SCHEMA)
    return [TEXT[fact.start : fact.end] for fact in read.attributes]


def test_an_attribute_stands_where_its_value_does_and_only_if_it_does() -> None:
    assert attribute_of_ada("birth", "1815") == ["1815"]
    assert attribute_of_ada("trade", "a smith") == ["a smith"]
    assert attribute_of_ada("birth", "1816") == []
    assert attribute_of_ada("birth", "a smith") == []
    assert attribute_of_ada("height", "1815") == []


def test_of_several_places_of_a_value_the_nearest_behind_the_owner_is_taken() -> None:
    text = "1815 was bad. Ada came in 1815, and 1815 ended."
    lexicon = SpanLexicon(text, 10)
    ada = FoundEntity(name="Ada", type="person", confidence=1.0, spans=tuple(lexicon.occurrences("Ada")))
    answer = completion(('],"attributes":[["Ada","birth","1815"]]}', 1))
    (fact,) = read_relations(answer, (ada,), lexicon, SCHEMA).attributes
    assert fact.start == text.index("1815,")
    before = SpanLexicon("1815 was bad for Ada", 10)
    ada = FoundEntity(name="Ada", type="person", confidence=1.0, spans=tuple(before.occurrences("Ada")))
    (fact,) = read_relations(answer, (ada,), before, SCHEMA).attributes
    assert (fact.start, fact.end) == (0, 4)


@pytest.mark.parametrize(
    ("text", "relations", "attributes"),
    [
        ("", 0, 0),
        ('["Ada","born_in","Ro', 0, 0),
        ('["Ada","born_in","Rome"]', 1, 0),
        ('["Ada","born_in","Rome"],["Ada', 1, 0),
        ('["Ada","born_in","Rome"]],"attri', 1, 0),
        ('["Ada","born_in","Rome"]],"attributes":[["Ada","birth","1815"],["A', 1, 1),
    ],
)
def test_a_cut_answer_keeps_its_complete_facts_and_is_incomplete(
    text: str, relations: int, attributes: int
) -> None:
    found = (entity("Ada", "person"), entity("Rome", "place"))
    read = read_relations(completion((text, 1)), found, LEXICON, SCHEMA)
    assert (len(read.relations), len(read.attributes), read.complete) == (relations, attributes, False)


def test_entities_of_several_calls_come_together_in_reading_order_with_all_their_places() -> None:
    lexicon = SpanLexicon("Ada met Bob. Bob met Ada.", 10)

    def found(name: str, kind: str, confidence: float, *spans: tuple[int, int]) -> FoundEntity:
        return FoundEntity(name=name, type=kind, confidence=confidence, spans=spans)

    first = ReadEntities((found("Bob", "person", 0.5, (8, 11)), found("Ada", "place", 0.2, (0, 3))), False, 0)
    second = ReadEntities((found("Ada", "person", 0.9, (8, 11)),), True, 0).shifted(13)
    merged = merge_entities([first, second], lexicon)
    assert [(entity.name, entity.type) for entity in merged] == [("Ada", "person"), ("Bob", "person")]
    assert merged[0].spans == ((0, 3), (21, 24))
    assert merged[1].spans == ((8, 11), (13, 16))
