"""A question taken apart: typed sub-questions that may rest on earlier ones' answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

#: What answers a sub-question: one thing's description, a fact between two things, or a whole topic.
Level = Literal["node", "triple", "community"]


@dataclass(frozen=True, slots=True)
class SubQuestion:
    number: int  # from 1
    text: str  # "#1" stands for the answer of sub-question 1
    level: Level
    types: tuple[str, ...]  # of the schema, that it involves
    depends_on: tuple[int, ...]  # earlier numbers, ascending

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "question": self.text,
            "level": self.level,
            "types": list(self.types),
            "depends_on": list(self.depends_on),
        }
