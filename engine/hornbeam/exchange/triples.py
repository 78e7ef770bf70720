"""Triples as lines of a table: head TAB relation TAB tail, with or without the types of head and tail behind.

The lines themselves become the documents' text, in blocks, and every name is grounded in its line: an
imported fact is cited as `file.tsv`, characters a to b, like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from hornbeam.errors import UsageError, reason
from hornbeam.exchange.imported import (
    UNTYPED,
    FactCollector,
    ImportedChunk,
    ImportedDocument,
    Reading,
    RejectedInput,
    vocabulary_of,
)

FORM = "triples:1"
#: Lines of a document: what is read and kept together.
_LINES_PER_DOCUMENT = 4096
#: Lines of a chunk: what one piece of evidence shows.
_LINES_PER_CHUNK = 16
_HEADERS = frozenset({"head", "subject", "source"})
_COLUMNS = (3, 5)

#: head, relation, tail, type of head, type of tail
_Row = tuple[str, str, str, str, str]


def read_types(path: Path) -> dict[str, str]:
    """Types of entities: lines `name TAB type`, or a JSON object name → type or types, whose first counts.

    Raises:
        UsageError: the file cannot be read or says something else.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"types file {path}: {reason(error)}") from error
    types: dict[str, str] = {}
    if text.lstrip().startswith("{"):
        try:
            entries = json.loads(text)
        except ValueError as error:
            raise UsageError(f"types file {path}: not valid JSON: {reason(error)}") from error
        for name, given in entries.items():
            first = given[0] if isinstance(given, list) and given else given
            if not isinstance(first, str):
                raise UsageError(f"types file {path}: the type of '{name}' is no text")
            types[_plain(name)] = first
        return types
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("\t")
        if line.strip() and len(fields) != 2:
            raise UsageError(f"types file {path}: line {number} is not 'name TAB type'")
        if line.strip():
            types[_plain(fields[0])] = fields[1].strip()
    return types


def read_triples(
    path: Path, types: Mapping[str, str], reading: Reading
) -> Iterator[ImportedDocument | RejectedInput]:
    """The file's triples as documents of some thousand lines each; memory holds one of them.

    Args:
        types: of entities, where the lines do not give them; an entity without one is an `entity`.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            rows = _rows(file, path, types, reading)
            number = 0
            waiting: list[RejectedInput] = []
            while block := list(islice(_accepted(rows, waiting), _LINES_PER_DOCUMENT)):
                number += 1
                yield _document(block, path, number)
                yield from waiting
                waiting.clear()
            yield from waiting
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _accepted(rows: Iterator[_Row | RejectedInput], rejected: list[RejectedInput]) -> Iterator[_Row]:
    for row in rows:
        if isinstance(row, RejectedInput):
            rejected.append(row)
        else:
            yield row


def _rows(
    lines: Iterable[bytes], path: Path, types: Mapping[str, str], reading: Reading
) -> Iterator[_Row | RejectedInput]:
    for number, raw in enumerate(lines, 1):
        row = _row(raw, number, types, reading)
        if isinstance(row, str):
            reading.counts["rejected"] += 1
            yield RejectedInput(f"{path}:{number}", row)
        elif row is not None:
            reading.counts["facts"] += 1
            reading.counts["self_loops"] += row[0] == row[2] and row[3] == row[4]
            yield row


def _row(raw: bytes, number: int, types: Mapping[str, str], reading: Reading) -> _Row | str | None:
    """The row of a line; None for an empty one or a header, a text for what is wrong with it."""
    try:
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 text (byte {error.start})"
    if not line.strip():
        return None
    fields = [_plain(field) for field in line.split("\t")]
    if number == 1 and fields[0].casefold() in _HEADERS:
        return None
    if len(fields) not in _COLUMNS:
        return f"{len(fields)} columns where head, relation, tail (and both types) are expected"
    if not all(fields):
        return "an empty column"
    relation = reading.relation_types.of(fields[1])
    if not relation:
        return f"no usable relation name: {fields[1][:40]!r}"
    head, tail = fields[0], fields[2]
    given = fields[3:] or [types.get(head, UNTYPED), types.get(tail, UNTYPED)]
    head_type, tail_type = (reading.entity_types.of(kind) or UNTYPED for kind in given)
    return head, relation, tail, head_type, tail_type


def _plain(field: str) -> str:
    return " ".join(field.split())


def _document(rows: list[_Row], path: Path, number: int) -> ImportedDocument:
    typed = any(row[3:] != (UNTYPED, UNTYPED) for row in rows)
    lines = ["\t".join(row if typed else row[:3]) for row in rows]
    chunks = []
    start = 0
    for first in range(0, len(rows), _LINES_PER_CHUNK):
        some = lines[first : first + _LINES_PER_CHUNK]
        end = start + sum(map(len, some)) + len(some) - 1
        chunks.append(_chunk(rows[first : first + _LINES_PER_CHUNK], some, start, end))
        start = end + 1
    return ImportedDocument(
        f"{path}#{number}",
        path.stem,
        "\n".join(lines),
        FORM,
        tuple(chunks),
        vocabulary_of(chunk.extraction for chunk in chunks),
    )


def _chunk(rows: list[_Row], lines: list[str], start: int, end: int) -> ImportedChunk:
    facts = FactCollector()
    offset = 0
    for (head, relation, tail, head_type, tail_type), line in zip(rows, lines, strict=True):
        behind = offset + len(head) + len(relation) + 2
        head_place = facts.entity(head, head_type, head, [(offset, offset + len(head))])
        tail_place = facts.entity(tail, tail_type, tail, [(behind, behind + len(tail))])
        facts.relation(head_place, relation, tail_place)
        offset += len(line) + 1
    return ImportedChunk(start, end, facts.extraction())
