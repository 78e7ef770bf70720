"""What differs between two schemas, type by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.schema.model import GraphSchema

_LISTS = {"entity": "entity_types", "relation": "relation_types", "attribute": "attribute_types"}


class TypeChange(BaseModel):
    """One type that was added (no `before`), removed (no `after`) or changed."""

    model_config = ConfigDict(frozen=True)

    kind: str
    name: str
    before: str | None  # the type as one line
    after: str | None

    def lines(self) -> list[str]:
        shown = []
        if self.before is not None:
            shown.append(f"- {self.kind} {self.before}")
        if self.after is not None:
            shown.append(f"+ {self.kind} {self.after}")
        return shown


def difference(before: GraphSchema, after: GraphSchema) -> list[TypeChange]:
    """Types that are not in both or not the same in both: kind by kind, in the order of `before`, then of
    `after`. The order of types within a schema is not compared."""
    found = []
    for kind in _LISTS:
        old, new = _by_name(before, kind), _by_name(after, kind)
        for name in dict.fromkeys([*old, *new]):
            one, other = old.get(name), new.get(name)
            if one is None or other is None or one[0] != other[0]:
                found.append(
                    TypeChange(
                        kind=kind,
                        name=name,
                        before=one[1] if one else None,
                        after=other[1] if other else None,
                    )
                )
    return found


def _by_name(schema: GraphSchema, kind: str) -> dict[str, tuple[dict[str, Any], str]]:
    """Name → the type's fields, sides as sets, and its line."""
    lines: Sequence[str] = {
        "entity": entity_lines,
        "relation": relation_lines,
        "attribute": attribute_lines,
    }[kind](schema)
    items = schema.to_dict()[_LISTS[kind]]
    fields = [
        {key: sorted(value) if isinstance(value, list) else value for key, value in item.items()}
        for item in items
    ]
    directions = [
        "".join(
            [
                f" [inverse of {item['inverse']}]" if "inverse" in item else "",
                " [symmetric]" if "symmetric" in item else "",
            ]
        )
        for item in items
    ]
    return {
        item["name"]: (fields[place], lines[place] + directions[place]) for place, item in enumerate(items)
    }
