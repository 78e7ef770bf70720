"""Sets that name their relation types and leave domains and ranges to what they show.

    CoNLL04      train.txt, dev.txt    a word a line, entities in BIO, relations at their heads' last word
    Re-DocRED    dev_revised.json, rel_info.json    documents in sentences; a fact belongs to every sentence
                 in which both ends are mentioned
    by line      relation2id.txt, valid.txt    head, tail, relation, sentence between tabs

Where there is one file, every second document (sentence) is known and the others are asked. A relation's
domain and range are the entity types that its known facts have; by line there are no types, and one stands
for all.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hornbeam.errors import UsageError
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence, Split, fact_set
from hornbeam.schema.model import EntityType, GraphSchema, RelationType

_ANYTHING = "entity"
_NO_RELATION = "unknown"


@dataclass(frozen=True, slots=True)
class _Typed:
    """A sentence and the entity types of its triples' ends."""

    gold: GoldSentence
    types: tuple[tuple[str, str], ...]


def is_of_form(folder: Path) -> bool:
    return _reader(folder) is not None


def read(folder: Path, numbers: set[int] | None, split: Split) -> Iterator[FactSet]:
    """One set; it has the number 1 and no "held-out"."""
    reader = _reader(folder)
    if reader is None or split != "test" or (numbers is not None and 1 not in numbers):
        return
    try:
        known, asked = reader(folder)
    except (OSError, ValueError, KeyError, IndexError, TypeError, SyntaxError) as error:
        raise UsageError(f"{folder}: {error!r}") from error
    schema = _schema(folder.name, [*known, *asked], known)
    yield fact_set(folder.name, schema, (one.gold for one in known), (one.gold for one in asked))


_Reader = Callable[[Path], tuple[Sequence[_Typed], Sequence[_Typed]]]


def _reader(folder: Path) -> _Reader | None:
    if (folder / "dev_revised.json").is_file():
        return _docred
    if (folder / "relation2id.txt").is_file():
        return _by_line
    if (folder / "dev.txt").is_file() and (folder / "train.txt").is_file():
        return _conll
    return None


def _schema(name: str, every: Sequence[_Typed], known: Sequence[_Typed]) -> GraphSchema:
    """All types and relations of the set, domains and ranges from the known half alone."""
    types = sorted({entity_type for one in every for pair in one.types for entity_type in pair})
    domains: defaultdict[str, set[str]] = defaultdict(set)
    ranges: defaultdict[str, set[str]] = defaultdict(set)
    for one in known:
        for (_, relation, _), (head, tail) in zip(one.gold.triples, one.types, strict=True):
            domains[relation].add(head)
            ranges[relation].add(tail)
    relations = sorted({relation for one in every for _, relation, _ in one.gold.triples})
    return GraphSchema(
        name=name,
        entity_types=tuple(EntityType(name=entity_type) for entity_type in types),
        relation_types=tuple(
            RelationType(
                name=relation, domain=tuple(sorted(domains[relation])), range=tuple(sorted(ranges[relation]))
            )
            for relation in relations
        ),
    )


def _halves(sentences: Sequence[_Typed]) -> tuple[Sequence[_Typed], Sequence[_Typed]]:
    return sentences[0::2], sentences[1::2]


def _conll(folder: Path) -> tuple[Sequence[_Typed], Sequence[_Typed]]:
    return _conll_file(folder / "train.txt"), _conll_file(folder / "dev.txt")


def _conll_file(file: Path) -> list[_Typed]:
    sentences = []
    for block in file.read_text("utf-8").split("#doc ")[1:]:
        name, *lines = block.strip().splitlines()
        rows = [line.split("\t") for line in lines]
        words = [row[1] for row in rows]
        entities: dict[int, tuple[str, str]] = {}  # index of the last word -> name, type
        start = 0
        for index, row in enumerate(rows):
            if row[2].startswith("B-"):
                start = index
            if row[2] != "O":
                entities = {last: named for last, named in entities.items() if last < start}
                entities[index] = (" ".join(words[start : index + 1]), row[2][2:])
        triples, types = [], []
        for index, row in enumerate(rows):
            for relation, target in zip(ast.literal_eval(row[3]), ast.literal_eval(row[4]), strict=True):
                if relation != "N":
                    triples.append((entities[index][0], relation, entities[target][0]))
                    types.append((entities[index][1], entities[target][1]))
        named = tuple(entities[index] for index in sorted(entities))
        gold = GoldSentence(name.strip(), " ".join(words), tuple(triples), named)
        sentences.append(_Typed(gold, tuple(types)))
    return sentences


def _docred(folder: Path) -> tuple[Sequence[_Typed], Sequence[_Typed]]:
    documents = json.loads((folder / "dev_revised.json").read_text("utf-8"))
    relation_of: Mapping[str, str] = json.loads((folder / "rel_info.json").read_text("utf-8"))
    read = [_docred_sentences(document, relation_of) for document in documents]
    known, asked = read[0::2], read[1::2]
    return [one for some in known for one in some], [one for some in asked for one in some]


def _docred_sentences(document: dict[str, Any], relation_of: Mapping[str, str]) -> list[_Typed]:
    vertices: list[list[dict[str, Any]]] = document["vertexSet"]
    labels: list[dict[str, Any]] = document["labels"]
    texts: list[list[str]] = document["sents"]
    sentences = []
    for number, words in enumerate(texts):
        # Entity -> how this sentence names it first.
        named = {
            index: next((str(m["name"]) for m in mentions if m["sent_id"] == number), None)
            for index, mentions in enumerate(vertices)
        }
        triples, types = [], []
        for label in labels:
            head, tail = int(str(label["h"])), int(str(label["t"]))
            head_name, tail_name = named[head], named[tail]
            if head_name and tail_name:
                triples.append((head_name, relation_of[str(label["r"])], tail_name))
                types.append((str(vertices[head][0]["type"]), str(vertices[tail][0]["type"])))
        written = " ".join(words)
        mentioned = [
            (written.find(str(mention["name"])), str(mention["name"]), str(mention["type"]))
            for mentions in vertices
            for mention in mentions
            if mention["sent_id"] == number
        ]
        gold = GoldSentence(
            f"{document['title']}/{number}",
            written,
            tuple(triples),
            tuple(dict.fromkeys((name, entity_type) for _, name, entity_type in sorted(mentioned))),
        )
        sentences.append(_Typed(gold, tuple(types)))
    return sentences


def _by_line(folder: Path) -> tuple[Sequence[_Typed], Sequence[_Typed]]:
    facts: defaultdict[str, dict[tuple[str, str, str], None]] = defaultdict(dict)
    for line in (folder / "valid.txt").read_text("utf-8").splitlines():
        if line.strip():
            head, tail, relation, text = line.split("\t")
            some = facts[text]  # also of a sentence that states nothing
            if relation != _NO_RELATION:
                some[head, relation, tail] = None
    pair = (_ANYTHING, _ANYTHING)
    return _halves(
        [
            _Typed(GoldSentence(f"{folder.name}/{number}", text, tuple(some)), (pair,) * len(some))
            for number, (text, some) in enumerate(facts.items())
        ]
    )
