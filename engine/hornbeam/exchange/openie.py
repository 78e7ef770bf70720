"""Recorded open information extraction: texts, each with the triples that some model found in it.

A record is `{"title", "text", "triples": [[head, relation, tail], …], "entities": […]}`, one a line, in a
list, or in a list under `docs` (HippoRAG's files, with `extracted_triples` and `extracted_entities`).
A record's text is one document and one chunk. Names are looked for in it, in any case and spacing; one that
stands nowhere (the recorder's model wrote it in its own words) is an entity without a mention.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hornbeam.corpus import normalise
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
from hornbeam.exchange.name_search import places_of
from hornbeam.resolve.names import canonical_name

FORM = "openie:1"
_TEXTS = ("text", "passage", "content")
_TRIPLES = ("triples", "extracted_triples")
_ENTITIES = ("entities", "extracted_entities")


def read_openie(path: Path, reading: Reading) -> Iterator[ImportedDocument | RejectedInput]:
    """A document for every record.

    Raises:
        UsageError: the file cannot be read, or holds no records of this form.
    """
    for number, record in enumerate(_records(path), 1):
        place = f"{path}#{number}"
        text = _first(record, _TEXTS) if isinstance(record, dict) else None
        if not isinstance(text, str) or not text.strip():
            reading.counts["rejected"] += 1
            yield RejectedInput(place, f"no text field (looked for {', '.join(_TEXTS)})")
            continue
        title = normalise(str(record.get("title") or "")).strip()
        text = normalise(text).strip()
        if title and not text.startswith(title):
            text = f"{title}\n\n{text}"
        names = _Names(text, reading)
        triples, entities = _first(record, _TRIPLES) or [], _first(record, _ENTITIES) or []
        for at, triple in enumerate(triples if isinstance(triples, list) else [triples], 1):
            if problem := _take_triple(triple, names, reading):
                reading.counts["rejected"] += 1
                yield RejectedInput(f"{place}.{at}", problem)
        for name in entities if isinstance(entities, list) else []:
            if isinstance(name, str) and (plain := _plain(name)):
                names.mention(plain)
        extraction = names.facts.extraction()
        chunk = ImportedChunk(0, len(text), extraction)
        yield ImportedDocument(place, title, text, FORM, (chunk,), vocabulary_of([extraction]))


def _records(path: Path) -> Iterator[Any]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {reason(error)}") from error
    try:
        whole = json.loads(text)
    except ValueError:
        yield from _lines(path, text)
        return
    records = whole.get("docs", [whole]) if isinstance(whole, dict) else whole
    if not isinstance(records, list):
        raise UsageError(f"{path}: holds no list of records")
    yield from records


def _lines(path: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UsageError(f"{path}: line {number} is not valid JSON: {reason(error)}") from error


def _first(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if name in record), None)


def _take_triple(triple: Any, names: _Names, reading: Reading) -> str | None:
    """Add the fact; what is wrong with it, if something is."""
    if not isinstance(triple, list) or len(triple) != 3 or not all(isinstance(part, str) for part in triple):
        return f"no triple of three texts: {json.dumps(triple, ensure_ascii=False)[:80]}"
    head, relation, tail = (_plain(part) for part in triple)
    kind = reading.relation_types.of(relation.casefold())
    if not head or not tail or not kind:
        return f"an empty name in {json.dumps(triple, ensure_ascii=False)[:80]}"
    reading.counts["facts"] += 1
    if canonical_name(head) == canonical_name(tail):
        reading.counts["self_loops"] += 1
        names.mention(head)
    else:
        names.facts.relation(names.entity(head), kind, names.entity(tail))
    return None


def _plain(name: str) -> str:
    return " ".join(normalise(name).split())


class _Names:
    """The names of one record, looked for in its text once each."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._text = text
        self._reading = reading
        self._numbers: dict[str, int] = {}
        self.facts = FactCollector()

    def entity(self, name: str) -> int:
        """The entity's number, whether the text has it or not."""
        number = self.mention(name)
        if number is None:
            number = self._numbers[name] = self.facts.entity(name, UNTYPED, None, [])
            self._reading.counts["ungrounded"] += 1
        return number

    def mention(self, name: str) -> int | None:
        """The entity's number if its name stands in the text, or is known already."""
        if name not in self._numbers:
            written: dict[str, list[tuple[int, int]]] = {}
            for start, end in places_of(name, self._text):
                written.setdefault(" ".join(self._text[start:end].split()), []).append((start, end))
            numbers = []
            for form, spans in written.items():
                identity = canonical_name(name)
                own = None if canonical_name(form) == identity else identity
                numbers.append(self.facts.entity(form, UNTYPED, own, spans))
            if numbers:
                self._numbers[name] = numbers[0]
        return self._numbers.get(name)
