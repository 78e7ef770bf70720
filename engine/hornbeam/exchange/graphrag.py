"""A finished Microsoft GraphRAG index (its Parquet tables): documents, entities, relationships.

Text units become chunks of their document, with the entities and relationships that GraphRAG found in them;
titles, which it writes in capitals, are looked for in any case. What its model wrote about an entity or a
relationship becomes a line of a table, a text of its own, that the description is taken from and that can be
found and cited. Its communities are not taken: they are made anew, with all that is in the index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hornbeam.errors import UsageError
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

FORM = "graphrag:1"
#: GraphRAG's relationships have no type.
_RELATED = "related_to"
#: A title that is found in a text is a little less sure than what GraphRAG's tables say.
_FOUND = 0.9
_LINES_PER_DOCUMENT = 512
_LINES_PER_CHUNK = 8


@dataclass(frozen=True, slots=True)
class _Entity:
    title: str
    type: str
    description: str


#: head, type and tail of a relation, or an entity alone; and what is said of it
_Fact = tuple[_Entity, str | None, _Entity | None, str]


@dataclass(slots=True)
class _Graph:
    by_id: dict[str, _Entity] = field(default_factory=dict)
    by_title: dict[str, _Entity] = field(default_factory=dict)
    #: id → (head, type, tail, description)
    relations: dict[str, tuple[_Entity, str, _Entity, str]] = field(default_factory=dict)
    #: title → how often the texts write it in which form
    forms: dict[str, Counter[str]] = field(default_factory=dict)

    def name_of(self, entity: _Entity) -> str:
        """As the texts mostly write it; its title where they never do."""
        forms = self.forms.get(entity.title, Counter())
        return min(forms, key=lambda form: (-forms[form], form), default=entity.title)


def read_graphrag(folder: Path, reading: Reading) -> Iterator[ImportedDocument | RejectedInput]:
    """
    Raises:
        UsageError: a table is missing, cannot be read or has other columns than GraphRAG's.
    """
    graph = _Graph()
    yield from _read_entities(folder, graph, reading)
    yield from _read_relations(folder, graph, reading)
    units: dict[str, list[dict[str, Any]]] = {}
    for unit in _rows(folder, "text_units", ("id", "text", "entity_ids", "relationship_ids")):
        # Older indexes give a list of documents.
        owner = unit.get("document_id") or next(iter(unit.get("document_ids") or []), "")
        units.setdefault(owner, []).append(unit)
    for number, document in enumerate(_rows(folder, "documents", ("id", "text", "title")), 1):
        place = f"{folder / 'documents.parquet'}#{number}"
        yield _text_document(place, document, units.pop(document["id"], []), graph)
    for number, unit in enumerate((unit for some in units.values() for unit in some), 1):
        place = f"{folder / 'text_units.parquet'}#{number}"  # of no document
        yield _text_document(place, {"title": "", "text": unit["text"]}, [unit], graph)
    yield from _entity_lines(folder, graph)
    yield from _relation_lines(folder, graph)


def _read_entities(folder: Path, graph: _Graph, reading: Reading) -> Iterator[RejectedInput]:
    for number, row in enumerate(_rows(folder, "entities", ("id", "title", "type", "description")), 1):
        title = _plain(row["title"])
        if not title:
            reading.counts["rejected"] += 1
            yield RejectedInput(f"{folder / 'entities.parquet'}#0.{number}", "an entity without a title")
            continue
        kind = reading.entity_types.of(row["type"] or UNTYPED) or UNTYPED
        entity = _Entity(title, kind, _plain(row["description"]))
        graph.by_id[row["id"]] = entity
        reading.counts["ambiguous_titles"] += title in graph.by_title
        graph.by_title.setdefault(title, entity)


def _read_relations(folder: Path, graph: _Graph, reading: Reading) -> Iterator[RejectedInput]:
    for number, row in enumerate(
        _rows(folder, "relationships", ("id", "source", "target", "description")), 1
    ):
        head, tail = (graph.by_title.get(_plain(row[end])) for end in ("source", "target"))
        if head is None or tail is None:
            missing = row["source"] if head is None else row["target"]
            reading.counts["rejected"] += 1
            yield RejectedInput(
                f"{folder / 'relationships.parquet'}#0.{number}", f"'{missing}' is not among the entities"
            )
            continue
        reading.counts["facts"] += 1
        kind = reading.relation_types.of(row.get("type") or _RELATED) or _RELATED
        graph.relations[row["id"]] = (head, kind, tail, _plain(row["description"]))


def _text_document(
    place: str, document: dict[str, Any], units: list[dict[str, Any]], graph: _Graph
) -> ImportedDocument:
    text = document["text"]
    chunks = []
    behind = 0
    for unit in units:
        start = text.find(unit["text"], behind)
        start = text.find(unit["text"]) if start < 0 else start
        if start < 0:  # a text unit that is not a piece of its document: it stands behind it
            text = f"{text}\n\n{unit['text']}"
            start = len(text) - len(unit["text"])
        else:
            behind = start + 1
        chunks.append(ImportedChunk(start, start + len(unit["text"]), _unit_facts(unit, graph)))
    if not chunks and text.strip():
        chunks = [ImportedChunk(0, len(text), FactCollector().extraction())]
    chunks.sort(key=lambda chunk: (chunk.start, chunk.end))
    vocabulary = vocabulary_of(chunk.extraction for chunk in chunks)
    return ImportedDocument(place, _plain(document["title"]), text, FORM, tuple(chunks), vocabulary)


def _unit_facts(unit: dict[str, Any], graph: _Graph) -> Any:
    facts = FactCollector(_FOUND)
    numbers: dict[tuple[str, str], int] = {}

    def number_of(entity: _Entity) -> int:
        key = (entity.title, entity.type)
        if key not in numbers:
            written: dict[str, list[tuple[int, int]]] = {}
            for start, end in places_of(entity.title, unit["text"]):
                form = " ".join(unit["text"][start:end].split())
                written.setdefault(form, []).append((start, end))
            forms = graph.forms.setdefault(entity.title, Counter())
            forms.update({form: len(spans) for form, spans in written.items()})
            found = [
                facts.entity(form, entity.type, entity.title, spans)
                for form, spans in (written or {entity.title: []}).items()
            ]
            numbers[key] = found[0]
        return numbers[key]

    for entity_id in unit["entity_ids"] or []:
        if entity_id in graph.by_id:
            number_of(graph.by_id[entity_id])
    for relation_id in unit["relationship_ids"] or []:
        if relation_id in graph.relations:
            head, kind, tail, _ = graph.relations[relation_id]
            facts.relation(number_of(head), kind, number_of(tail))
    return facts.extraction()


def _entity_lines(folder: Path, graph: _Graph) -> Iterator[ImportedDocument]:
    """`name TAB type TAB description`."""
    facts: list[_Fact] = [(entity, None, None, entity.description) for entity in graph.by_id.values()]
    yield from _table(folder / "entities.parquet", facts, graph)


def _relation_lines(folder: Path, graph: _Graph) -> Iterator[ImportedDocument]:
    """`head TAB type TAB tail TAB description`."""
    yield from _table(folder / "relationships.parquet", list(graph.relations.values()), graph)


def _table(source: Path, facts: Sequence[_Fact], graph: _Graph) -> Iterator[ImportedDocument]:
    for number, first in enumerate(range(0, len(facts), _LINES_PER_DOCUMENT), 1):
        block = facts[first : first + _LINES_PER_DOCUMENT]
        lines: list[str] = []
        chunks = []
        start = 0
        for begin in range(0, len(block), _LINES_PER_CHUNK):
            collected = FactCollector()
            offset = 0
            for fact in block[begin : begin + _LINES_PER_CHUNK]:
                line = _take_line(collected, offset, fact, graph)
                lines.append(line)
                offset += len(line) + 1
            end = start + offset - 1
            chunks.append(ImportedChunk(start, end, collected.extraction()))
            start = end + 1
        vocabulary = vocabulary_of(chunk.extraction for chunk in chunks)
        text = "\n".join(lines)
        yield ImportedDocument(f"{source}#{number}", source.stem, text, FORM, tuple(chunks), vocabulary)


def _take_line(facts: FactCollector, offset: int, fact: _Fact, graph: _Graph) -> str:
    """Add an entity, or a relation, as its line states it; the line."""
    head, kind, tail, told = fact
    name = graph.name_of(head)
    number = facts.entity(name, head.type, head.title, [(offset, offset + len(name))])
    if kind is None or tail is None:
        return "\t".join((name, head.type, told))
    other, behind = graph.name_of(tail), offset + len(name) + len(kind) + 2
    facts.relation(number, kind, facts.entity(other, tail.type, tail.title, [(behind, behind + len(other))]))
    return "\t".join((name, kind, other, told))


def _rows(folder: Path, name: str, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    path = folder / f"{name}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            missing = sorted(set(columns) - set(file.schema_arrow.names))
            if missing:
                raise UsageError(f"{path}: is no table of GraphRAG: it has no column {', '.join(missing)}")
            for batch in file.iter_batches(1024):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())
