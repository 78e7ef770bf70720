"""The lines that a model reads."""

from __future__ import annotations

import pytest

from hornbeam.schema import (
    AttributeType,
    EntityType,
    GraphSchema,
    RelationType,
    attribute_lines,
    entity_lines,
    relation_lines,
)

SCHEMA = GraphSchema(
    name="small",
    entity_types=(
        EntityType(name="person", description="a human being"),
        EntityType(name="organization"),
        EntityType(name="place"),
    ),
    relation_types=(
        RelationType(
            name="works_for", domain=("person",), range=("organization",), description="is employed by"
        ),
        RelationType(name="located_in", domain=("organization", "place"), range=("place",)),
        RelationType(name="related_to"),
    ),
    attribute_types=(
        AttributeType(name="birth_date", domain=("person",), kind="date", description="day of birth"),
        AttributeType(name="website"),
    ),
)


def test_entity_lines_give_name_and_description() -> None:
    assert entity_lines(SCHEMA) == ["person: a human being", "organization", "place"]


def test_relation_lines_give_signature_and_description() -> None:
    assert relation_lines(SCHEMA) == [
        "works_for(person, organization): is employed by",
        "located_in(organization|place, place)",
        "related_to(any, any)",
    ]


@pytest.mark.parametrize(
    ("present", "lines"),
    [
        (
            {"person", "organization"},
            ["works_for(person, organization): is employed by", "related_to(any, any)"],
        ),
        ({"place"}, ["located_in(place, place)", "related_to(any, any)"]),
        ({"person"}, ["related_to(any, any)"]),
        (set(), []),
    ],
)
def test_relation_lines_hold_only_what_the_present_types_can_have(
    present: set[str], lines: list[str]
) -> None:
    assert relation_lines(SCHEMA, present) == lines


def test_relation_lines_agree_with_what_the_schema_allows() -> None:
    for present in ({"person"}, {"person", "place"}, {"organization", "place"}):
        shown = {line.split("(")[0] for line in relation_lines(SCHEMA, present)}
        possible = {r.name for a in present for b in present for r in SCHEMA.relations_between(a, b)}
        assert shown == possible


def test_attribute_lines_give_owner_kind_and_description() -> None:
    assert attribute_lines(SCHEMA) == ["birth_date(person) date: day of birth", "website(any) text"]
    assert attribute_lines(SCHEMA, ["place"]) == ["website(any) text"]
    assert attribute_lines(SCHEMA, []) == []
