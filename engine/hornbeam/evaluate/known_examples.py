"""Known sentences of a set as worked examples of two-stage extraction: ends as the text writes them, each of
the first type that domain or range allows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hornbeam.evaluate.fact_sets import FactSet
from hornbeam.extract.argument_spans import argument_spans
from hornbeam.extract.known_facts import grounded
from hornbeam.extract.predicates import predicates

#: Relations of one head, and values of one owner, that the grammars allow.
_RELATIONS, _VALUES = 3, 2
_WORDS = 10


def write_examples(one: FactSet, file: Path) -> Path:
    """JSON lines, as `extract.example_file` takes them."""
    with file.open("w", encoding="utf-8") as out:
        for row in example_rows(one):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return file


def example_rows(one: FactSet) -> Iterator[dict[str, Any]]:
    known = predicates(one.schema)
    for sentence in one.known:
        types: dict[str, str] = {}
        relations: list[tuple[str, str, str]] = []
        attributes: list[tuple[str, str, str]] = []
        for head, name, tail in grounded(sentence, argument_spans(sentence.text, _WORDS)):
            predicate = known.get(name)
            if predicate is None:
                continue
            types.setdefault(head, predicate.head_types[0])
            if types[head] not in predicate.head_types:
                continue
            if predicate.is_attribute:
                attributes.append((head, name, tail))
                continue
            types.setdefault(tail, predicate.tail_types[0])
            if types[tail] in predicate.tail_types:
                relations.append((head, name, tail))
        order = sorted(types, key=sentence.text.find)
        relations = [row for head in order for row in [r for r in relations if r[0] == head][:_RELATIONS]]
        attributes = [row for head in order for row in [a for a in attributes if a[0] == head][:_VALUES]]
        if relations or attributes:
            yield {
                "text": sentence.text,
                "entities": [(name, types[name]) for name in order],
                "relations": relations,
                "attributes": attributes,
            }
