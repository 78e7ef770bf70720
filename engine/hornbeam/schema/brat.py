"""BRAT `annotation.conf`: entity types and relations with typed arguments.

    [entities]
    PERSON
    [relations]
    WORKS_AS    Arg1:PERSON|<GROUP>, Arg2:PROFESSION

Macros (`<NAME>=A|B`), indented subtypes and `!abstract` types are read. Events and attributes of
annotations have no counterpart in a schema and are left out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator

from hornbeam.errors import SchemaError
from hornbeam.schema.draft import SchemaDraft
from hornbeam.schema.model import GraphSchema

_SECTION = re.compile(r"\[(\w+)\]\s*")
_MACRO = re.compile(r"(<[^>=]+>)\s*=\s*(\S.*)")
_ANY_TYPE = frozenset({"<ENTITY>", "<ANY>"})
_ANY_EVENT = "<EVENT>"

_log = logging.getLogger(__name__)


def is_brat(text: str) -> bool:
    return re.search(r"^\[(entities|relations|events|attributes)\]\s*$", text, re.MULTILINE) is not None


def parse_brat(text: str, name: str) -> GraphSchema:
    """The schema of an `annotation.conf`.

    A relation over events only cannot be expressed and is left out with a logged warning.

    Raises:
        SchemaError: an argument of unknown type, a relation without two arguments.
    """
    sections, macros = _sections(text)
    entities = _TypeTree(sections.get("entities", []))
    vocabulary = _Vocabulary(entities, _TypeTree(sections.get("events", [])), macros)
    draft = SchemaDraft()
    for entity in entities.concrete:
        draft.add_entity(entity)
    for line in sections.get("relations", []):
        relation, *rest = line.split(maxsplit=1)
        if relation.startswith("<"):  # <OVERLAP> and the like configure the editor
            continue
        relation = relation.removeprefix("!")
        try:
            (head_argument, tail_argument), options = _arguments("".join(rest))
            head, tail = vocabulary.types(head_argument), vocabulary.types(tail_argument)
        except SchemaError as error:
            raise SchemaError(f"relation {relation}: {error}") from error
        if head is None or tail is None:
            _log.warning("%s: relation %s has an argument that is never an entity: left out", name, relation)
            continue
        symmetric = "symmetric" in options.get("<REL-TYPE>", "").split("-")
        draft.add_relation(relation, head, tail, symmetric=symmetric)
    return draft.build(name)


class _TypeTree:
    """Types of one section, with the types that are indented below each."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.concrete: list[str] = []  # in the order of the file, without the `!abstract` ones
        self._below: dict[str, list[str]] = {}  # type → itself unless abstract, and all below
        path: list[tuple[int, str]] = []  # (indentation, type), from the root to the line before
        for line in lines:
            indentation = len(line) - len(line.lstrip())
            word = line.split()[0]
            if word.startswith("<"):
                continue
            path = [step for step in path if step[0] < indentation]
            path.append((indentation, word.removeprefix("!")))
            self._below.setdefault(path[-1][1], [])
            if not word.startswith("!"):
                self.concrete.append(word)
                for _, ancestor in path:
                    self._below[ancestor].append(word)

    def below(self, name: str) -> list[str] | None:
        return self._below.get(name)


class _Vocabulary:
    """Everything that an argument of a relation may name."""

    def __init__(self, entities: _TypeTree, events: _TypeTree, macros: dict[str, str]) -> None:
        self._entities = entities
        self._events = events
        self._macros = macros

    def types(self, argument: str) -> list[str] | None:
        """The entity types of `A|B|<MACRO>`, empty for any; None when no entity fits."""
        found: list[str] = []
        for word in self._expanded(argument, ()):
            if word in _ANY_TYPE:
                return []
            entities = self._entities.below(word)
            if entities is not None:
                found.extend(entities)
            elif word != _ANY_EVENT and self._events.below(word) is None:
                raise SchemaError(f"'{word}' is no entity type, event type or macro")
        return found or None

    def _expanded(self, argument: str, within: tuple[str, ...]) -> Iterator[str]:
        for word in (part.strip() for part in argument.split("|")):
            if word in within:
                raise SchemaError(f"macro {word} contains itself")
            if word in self._macros:
                yield from self._expanded(self._macros[word], (*within, word))
            elif word:
                yield word


def _sections(text: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Lines by section without comments and separators, and the macros."""
    sections: dict[str, list[str]] = {}
    macros: dict[str, str] = {}
    current: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "--")):
            continue
        if section := _SECTION.fullmatch(stripped):
            current = sections.setdefault(section[1].lower(), [])
        elif macro := _MACRO.fullmatch(stripped):
            macros[macro[1]] = macro[2]
        else:
            current.append(line)
    return sections, macros


def _arguments(text: str) -> tuple[tuple[str, str], dict[str, str]]:
    """The types of the two arguments, and the `<OPTION>:value` pairs."""
    arguments: list[str] = []
    options: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, colon, value = part.partition(":")
        if not colon:
            raise SchemaError(f"'{part}' is not of the form Arg1:TYPE")
        if key.startswith("<"):
            options[key] = value.strip()
        else:
            arguments.append(value.strip())
    if len(arguments) != 2:
        raise SchemaError(f"two arguments are needed, there are {len(arguments)}")
    return (arguments[0], arguments[1]), options
