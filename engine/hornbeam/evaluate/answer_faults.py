"""What is wrong in a raw answer, told without the code that reads answers for a build.

That code drops what does not belong; here it is counted. `evaluate.cleanliness` says what the faults mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from hornbeam.grammar import entities as entity_stage
from hornbeam.grammar import relations as relation_stage
from hornbeam.llm.protocol import Completion, Request
from hornbeam.schema.model import GraphSchema

#: What is wrong, and the words that show it.
Fault: TypeAlias = tuple[str, str]
_Lists: TypeAlias = dict[str, list[list[str]]]

_ITEM = re.compile(r'\["(?:[^"\\]|\\.)*"(?:,"(?:[^"\\]|\\.)*")*\]')


def items_and_faults(
    request: Request, completion: Completion, text: str, schema: GraphSchema
) -> tuple[int, list[Fault]]:
    """How many items an answer about a text has, and what is wrong with it.

    Args:
        completion: of a call that did not fail.
    """
    flat = " ".join(text.split())
    if request.prompt.endswith(relation_stage.OPENING):
        lists = _lists(relation_stage.OPENING, completion, ("relations", "attributes"), 3)
    elif request.prompt.endswith(entity_stage.OPENING):
        lists = _lists(entity_stage.OPENING, completion, ("entities",), 2)
    else:
        return _lines_and_faults(completion, flat, schema)
    if lists is None:
        return 0, [("unreadable", completion.text)]
    faults = list(entity_faults(lists.get("entities", ()), flat, schema))
    if "relations" in lists:
        faults += _fact_faults(lists, _shown_entities(request.prompt), flat, schema)
    return sum(map(len, lists.values())), faults


def _lists(opening: str, completion: Completion, names: tuple[str, ...], width: int) -> _Lists | None:
    said = opening + completion.text
    if completion.finish_reason == "length":
        return _complete_items(said, names)
    try:
        lists: _Lists = json.loads(said)
    except ValueError:
        return None
    fits = list(lists) == list(names) and all(
        len(item) == width and all(isinstance(part, str) for part in item)
        for name in names
        for item in lists[name]
    )
    return lists if fits else None


def _complete_items(said: str, names: tuple[str, ...]) -> _Lists:
    """The items of an answer that was cut: what stands whole between brackets."""
    lists: _Lists = {name: [] for name in names}
    parts = re.split(r'(?:\{|\],)"(' + "|".join(names) + r')":\[', said)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        lists[name] = [json.loads(match) for match in _ITEM.findall(body)]
    return lists


def _shown_entities(prompt: str) -> dict[str, str]:
    """Name → type of the entities that a second prompt ends with."""
    shown = prompt.rpartition(entity_stage.OPENING)[2].removesuffix("\n" + relation_stage.OPENING)
    return dict(json.loads("[" + shown.removesuffix("}")))


def entity_faults(items: list[list[str]] | tuple[()], flat: str, schema: GraphSchema) -> Iterator[Fault]:
    """Of pairs of name and type in a text with single blanks."""
    known = {entity_type.name for entity_type in schema.entity_types}
    for name, entity_type in items:
        if entity_type not in known:
            yield "out_of_schema", entity_type
        if not name.strip() or name not in flat:
            yield "ungrounded", name


def _fact_faults(
    lists: _Lists, entities: Mapping[str, str], flat: str, schema: GraphSchema
) -> Iterator[Fault]:
    for head, relation, tail in lists["relations"]:
        if head not in entities or tail not in entities:
            yield "dangling", f"{head} {relation} {tail}"
        yield from relation_faults(relation, entities.get(head), entities.get(tail), schema)
    for owner, attribute, value in lists["attributes"]:
        if owner not in entities:
            yield "dangling", f"{owner} {attribute}"
        yield from attribute_faults(attribute, entities.get(owner), schema)
        if not value.strip() or value not in flat:
            yield "ungrounded", value


def relation_faults(
    relation: str, head_type: str | None, tail_type: str | None, schema: GraphSchema
) -> Iterator[Fault]:
    """None: an end that is no entity, which has no type to hold against the domain or range."""
    if relation not in {each.name for each in schema.relation_types}:
        yield "out_of_schema", relation
    elif head_type and tail_type and not schema.allows(relation, head_type, tail_type):
        yield "domain_range", f"{head_type} {relation} {tail_type}"


def attribute_faults(attribute: str, owner_type: str | None, schema: GraphSchema) -> Iterator[Fault]:
    if attribute not in {each.name for each in schema.attribute_types}:
        yield "out_of_schema", attribute
    elif owner_type is not None and attribute not in {e.name for e in schema.attributes_of(owner_type)}:
        yield "domain_range", f"{owner_type} {attribute}"


def _lines_and_faults(completion: Completion, flat: str, schema: GraphSchema) -> tuple[int, list[Fault]]:
    """Of guided extraction's answers, a fact a line: `relation: tail | head`. Ends have no types yet."""
    *lines, rest = completion.text.split("\n")
    faults: list[Fault] = []
    if completion.finish_reason != "length" and (rest or not lines):
        faults.append(("unreadable", completion.text))
    known = [each.name for each in (*schema.relation_types, *schema.attribute_types)]
    for line in lines:
        names = [name for name in known if line.startswith(f"{name}: ")]
        ends = [line.removeprefix(f"{name}: ").split(" | ") for name in names]
        if not names:
            faults.append(("out_of_schema" if ": " in line else "unreadable", line))
        elif not any(len(pair) == 2 for pair in ends):
            faults.append(("unreadable", line))
        elif not any(all(end.strip() and end in flat for end in pair) for pair in ends if len(pair) == 2):
            faults.append(("ungrounded", line))
    return len(lines), faults
