"""The forms in which a schema can be read."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from hornbeam.errors import SchemaError
from hornbeam.schema import GraphSchema, read_schema


def read(content: Any, name: str = "given") -> GraphSchema:
    return read_schema(content if isinstance(content, str) else json.dumps(content), name)


def refusal(content: Any) -> str:
    with pytest.raises(SchemaError) as caught:
        read(content)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def relations_of(schema: GraphSchema) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return {r.name: (r.domain, r.range) for r in schema.relation_types}


class TestOwnForm:
    def test_optional_parts_may_be_left_out(self) -> None:
        schema = read(
            {"name": "mine", "entity_types": [{"name": "person"}], "relation_types": [{"name": "knows"}]}
        )
        assert (schema.name, schema.version) == ("mine", 1)
        assert schema.allows("knows", "person", "person")

    def test_a_mistyped_key_is_refused_with_the_nearest(self) -> None:
        content = {
            "name": "m",
            "entity_types": [{"name": "a"}],
            "relation_types": [{"name": "r", "rnage": ["a"]}],
        }
        assert refusal(content) == "unknown key 'relation_types[0].rnage'; did you mean 'range'?"
        assert refusal({"nam": "m", "entity_types": []}).startswith("name: Field required; unknown key 'nam'")

    def test_a_wrong_kind_of_value_is_refused_with_its_place(self) -> None:
        content = {
            "name": "m",
            "entity_types": [{"name": "a"}],
            "attribute_types": [{"name": "x", "kind": "colour"}],
        }
        assert refusal(content) == "attribute_types[0].kind: Input should be 'text', 'number' or 'date'"

    def test_an_inconsistency_is_refused_with_the_reason(self) -> None:
        assert (
            refusal({"name": "m", "entity_types": []})
            == "schema 'm' declares no entity type; at least one is needed"
        )

    def test_a_key_that_stands_twice_is_refused(self) -> None:
        content = '{"name": "m", "entity_types": [{"name": "a"}], "entity_types": [{"name": "b"}]}'
        assert refusal(content) == "the key 'entity_types' stands twice in one JSON object"


class TestFlatLists:
    def test_relations_and_attributes_hold_for_any_type(self) -> None:
        schema = read({"Nodes": ["person", "place"], "Relations": ["born_in"], "Attributes": ["age"]}, "flat")
        assert schema.name == "flat"
        assert schema.allows("born_in", "place", "person")
        assert [(a.name, a.kind) for a in schema.attributes_of("person")] == [("age", "text")]

    def test_a_missing_list_is_empty_and_key_order_does_not_matter(self) -> None:
        assert read({"Relations": ["r"], "Nodes": ["n"]}).attribute_types == ()

    def test_what_is_no_list_of_names_is_refused(self) -> None:
        assert refusal({"Nodes": [{"name": "person"}]}) == "'Nodes' must be a list of names"
        assert refusal({"Nodes": ["a"], "Relation": []}).startswith("unknown key 'Relation' beside Nodes")
        assert "declares no entity type" in refusal({"Relations": ["r"]})


class TestOntology:
    def ontology(self, *relations: dict[str, Any], **more: Any) -> GraphSchema:
        concepts = [
            {"qid": "Q5", "label": "human"},
            {"qid": "Q11424", "label": "film"},
            {"qid": "Q483394", "label": "genre"},
        ]
        return read({"title": "Film Ontology", "concepts": concepts, "relations": list(relations), **more})

    def test_domain_and_range_are_read_by_identifier_and_by_label(self) -> None:
        schema = self.ontology(
            {"pid": "P57", "label": "director", "domain": "Q11424", "range": "Q5"},
            {"pid": "P136", "label": "genre", "domain": "film", "range": "Genre"},
        )
        assert schema.name == "Film Ontology"
        assert relations_of(schema) == {"director": (("film",), ("human",)), "genre": (("film",), ("genre",))}

    @pytest.mark.parametrize("nothing", ["", None, [], "  "])
    def test_an_empty_domain_or_range_is_any_type(self, nothing: object) -> None:
        schema = self.ontology({"pid": "P1", "label": "based on", "domain": "film", "range": nothing})
        assert relations_of(schema) == {"based on": (("film",), ())}

    def test_an_undeclared_literal_becomes_an_entity_type_with_a_description(self) -> None:
        schema = self.ontology(
            {"pid": "a", "label": "runtime", "domain": "film", "range": "number"},
            {"pid": "b", "label": "released", "domain": "film", "range": "Date"},
            {"pid": "c", "label": "premiere", "domain": "film", "range": "date"},
        )
        assert schema.tail_types("runtime") == ("number",)
        assert schema.entity_type("number").description == "a number, with its unit"
        # One type, in the spelling that came first.
        assert schema.tail_types("released") == schema.tail_types("premiere") == ("Date",)

    def test_an_undeclared_name_becomes_an_entity_type(self) -> None:
        schema = self.ontology({"pid": "a", "label": "studio", "domain": "film", "range": "Company"})
        assert schema.tail_types("studio") == ("Company",)

    def test_an_undeclared_bare_identifier_is_any_type_and_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            schema = self.ontology(
                {"pid": "a", "label": "adapted from", "domain": "film", "range": "Q47461344"}
            )
        assert relations_of(schema) == {"adapted from": (("film",), ())}
        assert "'adapted from' names Q47461344, which is not declared" in caplog.text

    def test_a_relation_given_twice_is_one_over_the_union(self) -> None:
        schema = self.ontology(
            {"pid": "P1", "label": "creator", "domain": "film", "range": "human"},
            {"pid": "P2", "label": "creator", "domain": "genre", "range": "human"},
            {"pid": "P3", "label": "subject", "domain": "film", "range": "human"},
            {"pid": "P4", "label": "subject", "domain": "film", "range": ""},
        )
        assert relations_of(schema) == {
            "creator": (("film", "genre"), ("human",)),
            "subject": (("film",), ()),  # any type, united with some, is any type
        }

    def test_concepts_of_one_label_are_one_type(self) -> None:
        concepts = [{"qid": "Q1", "label": "team"}, {"qid": "Q2", "label": "team"}]
        schema = read({"concepts": concepts, "relations": [{"label": "beat", "domain": "Q1", "range": "Q2"}]})
        assert [e.name for e in schema.entity_types] == ["team"]
        assert relations_of(schema) == {"beat": (("team",), ("team",))}

    def test_white_space_around_and_within_labels_is_tidied(self) -> None:
        content = {
            "concepts": [{"qid": "Q1", "label": "award "}],
            "relations": [{"label": "won\n  by", "domain": "Q1"}],
        }
        assert relations_of(read(content)) == {"won by": (("award",), ())}

    def test_a_relation_holds_for_subtypes_even_in_a_cyclic_hierarchy(self) -> None:
        content = {
            "title": "t",
            "entity type": [{"id": x, "label": x} for x in ("Person", "Politician", "Mayor", "City")],
            "relation": [{"id": "bornIn", "label": "bornIn", "domain": "Person", "range": "City"}],
            "hierarchy": [
                {"id": "IsA", "label": "IsA", "domain": "Politician", "range": "Person"},
                {"id": "IsA", "label": "IsA", "domain": "Mayor", "range": "Politician"},
                {"id": "IsA", "label": "IsA", "domain": "Person", "range": "Mayor"},
            ],
        }
        assert relations_of(read(content)) == {"bornIn": (("Person", "Politician", "Mayor"), ("City",))}

    def test_malformed_items_are_refused(self) -> None:
        assert (
            refusal({"concepts": [{"label": " "}], "relations": []})
            == "concept 1 has no label: {'label': ' '}"
        )
        assert refusal({"concepts": ["person"], "relations": []}) == "'concepts' must be a list of objects"
        assert refusal({"concepts": [{"label": "a"}], "relations": [{"label": "r", "domain": 3}]}) == (
            "'r': a domain or range is a name or a list of names, not 3"
        )


BRAT = """
# a comment
[entities]
PERSON\t<NORM>:Wikidata
ORGANIZATION
!PLACE
\tCITY
\tCOUNTRY
\t\tISLAND
-----
DATE

[relations]
<GROUP>=ORGANIZATION|COUNTRY
WORKS_FOR\tArg1:PERSON, Arg2:<GROUP>
LIVES_IN Arg1:PERSON|ORGANIZATION,Arg2:PLACE
CAPITAL_OF\tArg1:CITY, Arg2:COUNTRY
SPOUSE\tArg1:PERSON, Arg2:PERSON, <REL-TYPE>:symmetric-transitive
SEE_ALSO\tArg1:<ENTITY>, Arg2:<ENTITY>
WORKS_FOR\tArg1:PERSON, Arg2:CITY
<OVERLAP>\tArg1:<ENTITY>, Arg2:<ENTITY>, <OVL-TYPE>:<ANY>
PRECEDES\tArg1:Attack, Arg2:<EVENT>
HARMED_IN\tArg1:PERSON, Arg2:Attack|DATE

[events]
Attack\tAgent?:PERSON, Place*:CITY

[attributes]
Negation\tArg:<EVENT>
"""


class TestBrat:
    def test_types_macros_hierarchy_and_repeated_relations_are_read(self) -> None:
        schema = read(BRAT, "news")
        assert schema.name == "news"
        assert [e.name for e in schema.entity_types] == [
            "PERSON",
            "ORGANIZATION",
            "CITY",
            "COUNTRY",
            "ISLAND",
            "DATE",
        ]
        assert relations_of(schema) == {
            "WORKS_FOR": (("PERSON",), ("ORGANIZATION", "COUNTRY", "ISLAND", "CITY")),
            "LIVES_IN": (("PERSON", "ORGANIZATION"), ("CITY", "COUNTRY", "ISLAND")),
            "CAPITAL_OF": (("CITY",), ("COUNTRY", "ISLAND")),
            "SPOUSE": (("PERSON",), ("PERSON",)),
            "SEE_ALSO": ((), ()),
            "HARMED_IN": (("PERSON",), ("DATE",)),
        }
        assert schema.relation_type("SPOUSE").symmetric

    def test_a_relation_over_events_only_is_left_out_and_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            schema = read(BRAT, "news")
        assert "PRECEDES" not in relations_of(schema)
        assert caplog.messages == [
            "news: relation PRECEDES has an argument that is never an entity: left out"
        ]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (
                "KNOWS\tArg1:PERSON, Arg2:ANIMAL",
                "relation KNOWS: 'ANIMAL' is no entity type, event type or macro",
            ),
            ("KNOWS\tArg1:PERSON", "relation KNOWS: two arguments are needed, there are 1"),
            ("KNOWS", "relation KNOWS: two arguments are needed, there are 0"),
            ("KNOWS\tPERSON, PERSON", "relation KNOWS: 'PERSON' is not of the form Arg1:TYPE"),
            ("<A>=<B>\n<B>=<A>\nKNOWS\tArg1:<A>, Arg2:PERSON", "relation KNOWS: macro <A> contains itself"),
        ],
    )
    def test_a_malformed_relation_is_refused_by_name(self, line: str, message: str) -> None:
        assert refusal(f"[entities]\nPERSON\n[relations]\n{line}\n") == message

    def test_a_file_without_entities_is_refused(self) -> None:
        assert "declares no entity type" in refusal("[relations]\n[events]\n")


class TestUnknownForms:
    @pytest.mark.parametrize("text", ["", "person, place", '["person"]', "<xml/>", "[section]\nkey = 1"])
    def test_text_in_no_known_form_is_refused_with_the_forms(self, text: str) -> None:
        message = refusal(text)
        assert message.startswith("the form of this file is not known; a schema is JSON with 'entity_types'")
        assert "'Nodes', 'Relations' and 'Attributes'" in message
        assert "'concepts' and 'relations'" in message
        assert "annotation.conf" in message

    def test_a_json_object_of_no_known_form_is_refused_with_its_keys(self) -> None:
        assert refusal({"classes": [], "edges": []}).startswith(
            "this JSON object has 'classes', 'edges'; a schema is"
        )
        assert refusal({}).startswith("this JSON object has no keys; a schema is")

    def test_broken_json_is_refused_with_its_place(self) -> None:
        assert refusal('{"name": "x",\n "entity_types": [}') == (
            "not valid JSON: line 2, column 19: Expecting value"
        )

    def test_json_nested_without_end_is_refused(self) -> None:
        assert "nested too deeply" in refusal('{"a":' * 100_000)
