"""Consistency, lookups and the stored form of a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from hornbeam.errors import SchemaError
from hornbeam.schema import AttributeType, EntityType, GraphSchema, RelationType


def schema(**changes: Any) -> GraphSchema:
    fields: dict[str, Any] = {
        "name": "small",
        "entity_types": (
            EntityType(name="person", description="a human being"),
            EntityType(name="organization"),
            EntityType(name="place"),
        ),
        "relation_types": (
            RelationType(name="works_for", domain=("person",), range=("organization",), inverse="employs"),
            RelationType(name="employs", domain=("organization",), range=("person",)),
            RelationType(name="located_in", domain=("organization", "place"), range=("place",)),
            RelationType(name="spouse_of", domain=("person",), range=("person",), symmetric=True),
            RelationType(name="related_to"),
        ),
        "attribute_types": (
            AttributeType(name="birth_date", domain=("person",), kind="date"),
            AttributeType(name="website"),
        ),
    }
    return GraphSchema(**(fields | changes))


def relation(**fields: Any) -> tuple[RelationType, ...]:
    return (RelationType(**fields),)


class TestConsistency:
    def test_a_schema_without_relations_and_attributes_is_fine(self) -> None:
        assert schema(relation_types=(), attribute_types=()).relation_types == ()

    def test_names_in_any_script_are_fine(self) -> None:
        types = (EntityType(name="人物"), EntityType(name="организация"), EntityType(name="film genre"))
        made = schema(
            entity_types=types, relation_types=relation(name="出生于", range=("人物",)), attribute_types=()
        )
        assert made.allows("出生于", "организация", "人物")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"entity_types": ()}, "schema 'small' declares no entity type; at least one is needed"),
            ({"name": "  "}, "the schema's name must be one line of text, not '  '"),
            (
                {"entity_types": (EntityType(name="person"), EntityType(name="person"))},
                "entity type 'person' is declared twice",
            ),
            (
                {"entity_types": (EntityType(name="person"), EntityType(name="Person"))},
                "entity type 'Person' differs only in case from 'person'",
            ),
            (
                {"entity_types": (EntityType(name="straße"), EntityType(name="STRASSE"))},
                "entity type 'STRASSE' differs only in case from 'straße'",
            ),
            (
                {"relation_types": (RelationType(name="knows"), RelationType(name="KNOWS"))},
                "relation type 'KNOWS' differs only in case from 'knows'",
            ),
            (
                {"attribute_types": (AttributeType(name="age"), AttributeType(name="age"))},
                "attribute type 'age' is declared twice",
            ),
            (
                {"relation_types": relation(name="knows", domain=("persn",))},
                "relation type 'knows': its domain names 'persn', which is no entity type of the schema; "
                "did you mean 'person'?",
            ),
            (
                {"relation_types": relation(name="knows", range=("xyz",))},
                "relation type 'knows': its range names 'xyz', which is no entity type of the schema",
            ),
            (
                {"relation_types": relation(name="knows", range=("person", "person"))},
                "relation type 'knows': its range names a type twice",
            ),
            (
                {"attribute_types": (AttributeType(name="age", domain=("human",)),)},
                "attribute type 'age': its domain names 'human', which is no entity type of the schema",
            ),
            (
                {"relation_types": relation(name="knows", inverse="zzz")},
                "relation type 'knows': its inverse 'zzz' is no relation type of the schema",
            ),
            (
                {"relation_types": relation(name="leads", domain=("person",), symmetric=True)},
                "relation type 'leads': it is symmetric, so its domain and range must be the same types",
            ),
            (
                {
                    "relation_types": (
                        RelationType(name="leads", domain=("person",), inverse="led_by"),
                        RelationType(name="led_by", domain=("person",)),
                    )
                },
                "relation type 'leads': its inverse 'led_by' must have its range as domain and vice versa",
            ),
            (
                {
                    "relation_types": (
                        RelationType(name="a", inverse="b"),
                        RelationType(name="b", inverse="c"),
                        RelationType(name="c", inverse="b"),
                    )
                },
                "relation type 'a': its inverse 'b' names another inverse, 'c'",
            ),
        ],
    )
    def test_an_inconsistent_schema_is_refused_in_one_line(
        self, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(SchemaError) as caught:
            schema(**changes)
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("", "relation type: the name is empty"),
            (" \u3000", "relation type: the name is empty"),
            (" a", "relation type ' a': the name begins or ends with a space"),
            ("x" * 65, "the name has 65 characters; at most 64 are allowed"),
            ("a\nb", r"'\n' is not allowed in a name"),
            ("a\u2028b", "is not allowed in a name"),
            ('a"b', "is not allowed in a name"),
            ("a'b", "is not allowed in a name"),
            ("a\\b", "is not allowed in a name"),
            ("a\x07b", r"'\x07' is not allowed in a name"),
            ("a\ud800b", r"'\ud800' is not allowed in a name"),
        ],
    )
    def test_a_name_that_cannot_stand_in_a_grammar_is_refused(self, name: str, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            RelationType(name=name)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_name_of_the_maximal_length_is_fine(self) -> None:
        assert EntityType(name="名" * 64).name == "名" * 64

    def test_a_description_of_two_lines_is_refused(self) -> None:
        with pytest.raises(SchemaError, match=r"entity type: the description .* has a line break"):
            EntityType(name="person", description="a\nb")

    def test_a_schema_cannot_be_changed(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            schema().version = 2  # type: ignore[misc]


class TestLookups:
    @pytest.mark.parametrize(
        ("triple", "allowed"),
        [
            (("works_for", "person", "organization"), True),
            (("works_for", "organization", "person"), False),
            (("located_in", "place", "place"), True),
            (("related_to", "place", "person"), True),  # no domain, no range: any
            (("related_to", "place", "animal"), False),  # any type *of the schema*
            (("invented", "person", "place"), False),
        ],
    )
    def test_a_typed_triple_is_allowed_by_domain_and_range(
        self, triple: tuple[str, str, str], allowed: bool
    ) -> None:
        assert schema().allows(*triple) is allowed

    def test_relations_between_two_types_respect_direction(self) -> None:
        def between(head: str, tail: str) -> list[str]:
            return [r.name for r in schema().relations_between(head, tail)]

        assert between("person", "organization") == ["works_for", "related_to"]
        assert between("organization", "person") == ["employs", "related_to"]
        assert between("person", "person") == ["spouse_of", "related_to"]
        assert between("person", "animal") == []

    def test_any_type_is_written_out_for_heads_and_tails(self) -> None:
        assert schema().head_types("related_to") == ("person", "organization", "place")
        assert schema().tail_types("located_in") == ("place",)

    def test_attributes_of_a_type_include_those_of_any_type(self) -> None:
        assert [a.name for a in schema().attributes_of("person")] == ["birth_date", "website"]
        assert [a.name for a in schema().attributes_of("place")] == ["website"]
        assert schema().attributes_of("animal") == ()

    def test_types_are_found_by_name(self) -> None:
        assert schema().entity_type("person").description == "a human being"
        assert schema().relation_type("employs").domain == ("organization",)
        assert schema().attribute_type("birth_date").kind == "date"

    def test_an_unknown_name_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(
            SchemaError, match=r"^no relation type 'work_for' in the schema; did you mean 'works_for'"
        ):
            schema().relation_type("work_for")
        with pytest.raises(SchemaError, match=r"^no relation type 'zzz' in the schema$"):
            schema().head_types("zzz")


class TestStoredForm:
    def test_json_has_the_documented_form(self) -> None:
        made = schema(
            relation_types=relation(name="knows", domain=("person",), description="is acquainted with"),
        )
        assert json.loads(made.to_json()) == {
            "name": "small",
            "version": 1,
            "entity_types": [
                {"name": "person", "description": "a human being"},
                {"name": "organization", "description": ""},
                {"name": "place", "description": ""},
            ],
            "relation_types": [
                {"name": "knows", "domain": ["person"], "range": [], "description": "is acquainted with"}
            ],
            "attribute_types": [
                {"name": "birth_date", "domain": ["person"], "kind": "date"},
                {"name": "website", "domain": [], "kind": "text"},
            ],
        }

    def test_json_reads_back_as_the_same_schema(self) -> None:
        made = schema()
        again = GraphSchema.model_validate_json(made.to_json())
        made.allows("works_for", "person", "person")  # a used schema equals an unused one
        assert again == made
        assert again.hash() == made.hash()

    def test_hash_ignores_the_order_of_keys(self) -> None:
        stored = schema().to_dict()
        turned = dict(reversed(stored.items()))
        turned["relation_types"] = [dict(reversed(item.items())) for item in stored["relation_types"]]
        assert list(turned) != list(stored)
        assert GraphSchema.model_validate(turned).hash() == schema().hash()

    @pytest.mark.parametrize(
        "changes",
        [
            {"version": 2},
            {"name": "other"},
            {"attribute_types": (AttributeType(name="birth_date", domain=("person",), kind="text"),)},
            {"entity_types": (*schema().entity_types[:2], EntityType(name="place", description="a town"))},
            {"relation_types": schema().relation_types[:4]},
            {"relation_types": tuple(reversed(schema().relation_types))},  # their order in the prompt
        ],
    )
    def test_hash_changes_with_the_meaning(self, changes: dict[str, Any]) -> None:
        assert schema(**changes).hash() != schema().hash()

    def test_hash_is_stable_over_releases(self) -> None:
        """Stored results are keyed by it: when this value changes, every index is built anew."""
        tiny = GraphSchema(name="tiny", entity_types=(EntityType(name="人"),))
        assert tiny.hash() == "a750bf6032b4beac4af30c24d08beca4c45c0fd31da8989c1c1fb2c03814761d"
