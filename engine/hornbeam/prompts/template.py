"""One prompt file: instructions, a line of three dashes, and the question that follows them.

Both are `string.Template`s. The instructions are the same for every call of a build, or begin the same, so
that they come out of the prefix cache; the question holds what changes. A task whose question follows
another's prompt has no instructions and no dashes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from string import Template
from typing import Literal

from hornbeam.errors import UsageError

_DASHES = "---"

#: What a prompt is for: the extraction and the texts of a build, types that its schema lacks, questions.
Use = Literal["build", "evolve", "answer"]


@dataclass(frozen=True, slots=True)
class TaskForm:
    """What a task's file must hold, each placeholder at least once and no other.

    `instructions` None: the file is a question alone.
    """

    instructions: frozenset[str] | None
    question: frozenset[str]
    use: Use = "build"


def _form(instructions: str | None, question: str, use: Use = "build") -> TaskForm:
    wanted = None if instructions is None else frozenset(instructions.split())
    return TaskForm(wanted, frozenset(question.split()), use)


#: By the name of the file without its ending.
TASKS: dict[str, TaskForm] = {
    # Entities, and then relations and attributes: the second call goes on from the first, in the same prompt.
    "extraction": _form("entity_types relation_types attribute_types examples", "text"),
    "describing": _form(None, ""),  # stands behind the entity types where descriptions are asked for
    "guided": _form("examples", "text"),  # extraction in one call, with `extract.known_facts`
    "verification": _form(None, "statement"),  # behind the prompt that found the fact
    "naming": _form("", "facts"),  # of communities
    "summarising": _form("", "name descriptions"),  # of an entity's descriptions
    "same_thing": _form("", "first told_of_first second told_of_second"),  # of two names
    "entity_types": _form("known examples", "text", "evolve"),  # that the schema lacks
    "fact_types": _form("known_relations known_attributes examples", "text things", "evolve"),
    "extract": _form("", "evidence question", "answer"),  # a phrase of the evidence
    "short": _form("", "evidence question", "answer"),
    "sentences": _form("", "evidence question", "answer"),
    "answerable": _form("", "evidence question", "answer"),  # yes or no
    "points": _form("", "evidence question", "answer"),  # of community summaries
    "plan": _form("", "types question", "answer"),
    "step": _form("", "evidence found question", "answer"),
    "standalone": _form("", "history question", "answer"),  # a question of a conversation, by itself
}


@dataclass(frozen=True, slots=True)
class PromptText:
    """The prompt of one task in one language."""

    instructions: str
    question: str
    origin: str  # file

    @property
    def content(self) -> str:
        """As a file holds it, but for white space around the parts."""
        parts = (self.instructions, _DASHES, self.question)
        return "\n".join(parts) if self.instructions else self.question

    @property
    def version(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()[:16]

    def instruct(self, **values: str) -> str:
        return Template(self.instructions).substitute(values).strip()

    def ask(self, **values: str) -> str:
        return Template(self.question).substitute(values)


def parse_prompt(task: str, written: str, origin: str) -> PromptText:
    """
    Raises:
        UsageError: a placeholder is missing, unknown or no name, or the line of dashes is missing; `origin`
            is named.
    """
    form = TASKS[task]
    if form.instructions is None:
        instructions, question = "", written
    else:
        lines = written.splitlines()
        if lines.count(_DASHES) != 1:
            raise UsageError(
                f"prompt {origin}: instructions and question must be parted by one line '{_DASHES}'"
            )
        place = lines.index(_DASHES)
        instructions, question = "\n".join(lines[:place]), "\n".join(lines[place + 1 :])
    prompt = PromptText(instructions.strip(), question.strip(), origin)
    _check(prompt.instructions, form.instructions or frozenset(), "the instructions", origin)
    _check(prompt.question, form.question, "the question", origin)
    return prompt


def _check(text: str, wanted: frozenset[str], part: str, origin: str) -> None:
    template = Template(text)
    if not template.is_valid():
        raise UsageError(f"prompt {origin}: a '$' in {part} begins no placeholder; write '$$' for the sign")
    found = set(template.get_identifiers())
    if missing := sorted(wanted - found):
        raise UsageError(f"prompt {origin}: {part} lack{_s(part)} the placeholder ${missing[0]}")
    if unknown := sorted(found - wanted):
        known = ", ".join(f"${name}" for name in sorted(wanted)) or "none"
        raise UsageError(
            f"prompt {origin}: {part} hold{_s(part)} an unknown placeholder ${unknown[0]}; known: {known}"
        )


def _s(part: str) -> str:
    return "" if part.endswith("s") else "s"
