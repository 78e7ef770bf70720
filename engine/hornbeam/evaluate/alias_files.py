"""Documents with known aliases from files: DocRED, or a text beside a list of its names."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from hornbeam.errors import UsageError, reason

#: DocRED's types by names that tell of what kind they are.
_DOCRED_TYPES = {
    "PER": "person", "ORG": "organization", "LOC": "place", "TIME": "date", "NUM": "number",
    "MISC": "concept",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KnownMention:
    start: int  # characters of the document's text
    end: int
    name: str  # as the file writes it
    type: str
    entity: int  # within the document


@dataclass(frozen=True, slots=True)
class KnownDocument:
    name: str
    text: str
    mentions: list[KnownMention]


def known_documents(path: Path) -> list[KnownDocument]:
    """Documents of a file whose mentions are known to be of which entity.

    `NAME.json` is DocRED: a list of {"title", "sents", "vertexSet"}. `NAME.entities.json` lists
    {"type", "aliases"} of the text `NAME.raw.txt` beside it: wherever an alias stands is a mention.

    Raises:
        UsageError: no such file, or one that is not in its form.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
        if isinstance(content, list):
            return [_docred(entry, place) for place, entry in enumerate(content)]
        beside = path.with_name(path.name.replace(".entities.json", ".raw.txt"))
        return [_listed(content, beside.read_text("utf-8"))]
    except OSError as error:
        raise UsageError(f"{error.filename or path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise UsageError(f"{path}: neither DocRED nor a list of aliases: {reason(error)}") from error


def _docred(entry: dict[str, Any], place: int) -> KnownDocument:
    starts: list[list[int]] = []
    text = ""
    for sentence in entry["sents"]:
        starts.append([])
        for token in sentence:
            text += " " if text else ""
            starts[-1].append(len(text))
            text += token
        starts[-1].append(len(text))
    mentions = []
    for number, entity in enumerate(entry["vertexSet"]):
        for mention in entity:
            row, (first, last) = starts[mention["sent_id"]], mention["pos"]
            end = row[last - 1] + len(entry["sents"][mention["sent_id"]][last - 1])
            kind = _DOCRED_TYPES.get(mention["type"], mention["type"])
            mentions.append(KnownMention(row[first], end, mention["name"], kind, number))
    return KnownDocument(f"{place}: {entry['title']}", text, mentions)


def _listed(content: dict[str, Any], text: str) -> KnownDocument:
    """Longer aliases first: of names within names only the longest is a mention. An alias of two entities
    tells nothing and is left out."""
    owners: dict[str, set[int]] = defaultdict(set)
    for number, entity in enumerate(content["entities"]):
        for alias in entity["aliases"]:
            owners[alias].add(number)
    known = {alias: numbers.pop() for alias, numbers in owners.items() if len(numbers) == 1}
    kinds = [entity["type"].lower() for entity in content["entities"]]
    mentions = [
        KnownMention(start, end, alias, kinds[known[alias]], known[alias])
        for start, end, alias in _occurrences(text, sorted(known, key=lambda alias: (-len(alias), alias)))
    ]
    return KnownDocument(str(content["name"]), text, mentions)


def _occurrences(text: str, names: list[str]) -> Iterator[tuple[int, int, str]]:
    if names:
        word = (
            r"(?<![\p{L}\p{N}--\p{Han}])(?:"
            + "|".join(map(regex.escape, names))
            + r")(?![\p{L}\p{N}--\p{Han}])"
        )
        for match in regex.finditer(word, text, regex.V1):
            yield match.start(), match.end(), match.group()
