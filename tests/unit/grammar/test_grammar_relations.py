"""The text of the two grammars where a walk cannot show what is missing."""

from __future__ import annotations

import pytest

from hornbeam.grammar.ebnf import alternatives, json_inner, literal
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.relations import NamedEntity, relation_grammar
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType

SCHEMA = GraphSchema(
    name="test",
    entity_types=(EntityType(name="person"), EntityType(name="place")),
    relation_types=(
        RelationType(name="born_in", domain=("person",), range=("place",)),
        RelationType(name="knows", domain=("person",), range=("person",)),
    ),
    attribute_types=(AttributeType(name="age", domain=("person",), kind="number"),),
)


def grammar(*entities: tuple[str, str], text: str = "Ada met Bob in Rome", facts: int = 2) -> str | None:
    named = [NamedEntity(*entity) for entity in entities]
    lexicon = SpanLexicon(text, 10)
    return relation_grammar(named, lexicon, SCHEMA, relations_per_head=facts, attributes_per_entity=facts)


def test_a_relation_type_that_no_entity_fits_is_not_in_the_grammar() -> None:
    text = grammar(("Ada", "person"), ("Rome", "place"))
    assert text is not None
    assert "born_in" in text
    assert "knows" not in text  # Ada could know only herself


def test_a_second_entity_of_the_type_brings_the_relation_back() -> None:
    text = grammar(("Ada", "person"), ("Bob", "person"))
    assert text is not None
    assert "knows" in text
    assert "born_in" not in text


def test_there_is_no_grammar_where_nothing_can_be_said() -> None:
    assert grammar() is None
    assert grammar(("Rome", "place")) is None
    assert grammar(("Ada", "person")) is None  # no number in the text
    assert grammar(("Ada", "person"), text="Ada is 36") is not None
    assert grammar(("Ada", "person"), ("Rome", "place"), facts=0) is None


def test_a_text_without_words_has_no_entity_grammar() -> None:
    assert entity_grammar(SpanLexicon("... !", 10), SCHEMA, 3) is None


def test_the_first_line_defines_the_root_in_ebnf() -> None:
    """vLLM takes a grammar for Lark unless it sees `::=` before any comment sign of a line."""
    text = grammar(("Ada # // x", "person"), ("Rome", "place"))
    assert text is not None
    assert text.startswith("root ::= ")


def test_literals_escape_for_ebnf_and_leave_other_scripts_alone() -> None:
    assert literal('a"\\') == r'"a\"\\"'
    assert literal("字👍") == '"字👍"'
    assert json_inner('"字') == r"\"字"


def test_alternatives_are_written_once_and_never_none() -> None:
    assert alternatives(["b", "a", "b"]) == "b | a"
    with pytest.raises(ValueError, match="at least one"):
        alternatives([])
