"""Worked examples as a file holds them: texts with the entities, relations and attributes that they state."""

from __future__ import annotations

from string import Template

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from hornbeam.errors import UsageError


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkedExample(_Written):
    """Facts that a text states, in the types of a schema: entities in the order in which they appear."""

    text: str = Field(min_length=1)
    entities: tuple[tuple[str, str], ...] = Field(min_length=1)  # name, type
    relations: tuple[tuple[str, str, str], ...] = ()  # head, type, tail
    attributes: tuple[tuple[str, str, str], ...] = ()  # entity, type, value
    descriptions: tuple[tuple[str, str], ...] = ()  # entity, what the text says that it is


class ExampleFile(_Written):
    """The worked examples of one language, by the name of their schema.

    For a schema without any, one is made of plain sentences about invented `names`: `fact` says a relation
    ($head, $relation, $tail), `bare` names a thing of a schema that has none ($name).
    """

    names: tuple[str, ...] = Field(min_length=10)
    fact: str
    bare: str
    schemas: dict[str, tuple[WorkedExample, ...]] = {}

    @field_validator("fact", "bare")
    @classmethod
    def _holds_its_placeholders(cls, sentence: str, field: ValidationInfo) -> str:
        wanted = {"head", "relation", "tail"} if field.field_name == "fact" else {"name"}
        if set(Template(sentence).get_identifiers()) != wanted:
            raise ValueError(f"needs the placeholders {', '.join(f'${name}' for name in sorted(wanted))}")
        return sentence


class TypeExample(_Written):
    """A text with the types that it uses: what stands for each, and a general word for its kind."""

    text: str = Field(min_length=1)
    things: tuple[str, ...]  # of which facts are asked
    entity_types: tuple[tuple[str, str], ...] = ()  # thing, type
    relation_types: tuple[tuple[str, str, str], ...] = ()  # head, type, tail
    attribute_types: tuple[tuple[str, str, str], ...] = ()  # thing, type, value


_TYPE_EXAMPLES = TypeAdapter(tuple[TypeExample, ...])


def parse_type_examples(written: str, origin: str) -> tuple[TypeExample, ...]:
    """
    Raises:
        UsageError: it is not of the form; the first fault and `origin` are named.
    """
    try:
        return _TYPE_EXAMPLES.validate_json(written)
    except ValidationError as error:
        raise UsageError(f"examples {origin}: {first_fault(error)}") from error


def parse_examples(written: str, origin: str) -> ExampleFile:
    """
    Raises:
        UsageError: it is not of the form; the first fault and `origin` are named.
    """
    try:
        return ExampleFile.model_validate_json(written)
    except ValidationError as error:
        raise UsageError(f"examples {origin}: {first_fault(error)}") from error


def first_fault(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else problem["msg"]
