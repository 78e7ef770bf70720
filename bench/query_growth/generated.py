"""A generated index of any size: names, facts and texts at random, vectors at random, everything else real.

What a question costs follows from the sizes, not from the meaning: vectors of a model would only make the
index slower to build. They lie around centres, as those of texts do, one for every hundred; entirely random
ones are near nothing, and every list of an inverted file has to be looked through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hornbeam.index.build import build_indexes
from hornbeam.records import TABLES, arrow_schema
from hornbeam.settings import EmbedderSettings

TRIPLES_PER_ENTITY = 3
ENTITIES_PER_COMMUNITY = 20
_TYPES = ("person", "place", "work", "organization")
_RELATIONS = ("born_in", "part_of", "author_of", "member_of", "located_in", "spouse_of")
_SYLLABLES = (
    "ba",
    "cor",
    "del",
    "fin",
    "gra",
    "hol",
    "ist",
    "kan",
    "lor",
    "mer",
    "nov",
    "or",
    "pel",
    "ros",
    "tam",
)


class RandomVectors:
    """Unit rows that have nothing to do with the texts, but are the same for the same order of calls.

    A centre of length 1 and noise of about length 1: two rows around one centre have a cosine of about .5.
    """

    name = "random"
    fingerprint = "random"

    def __init__(self, dimension: int, seed: int, centres: int) -> None:
        self.dimension = dimension
        self._rng = np.random.default_rng(seed)
        self._centres = _unit(self._rng.standard_normal((centres, dimension), dtype=np.float32))

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        noise = self._rng.standard_normal((len(texts), self.dimension), dtype=np.float32)
        centres = self._centres[self._rng.integers(0, len(self._centres), len(texts))]
        return _unit(centres + noise / np.float32(np.sqrt(self.dimension)))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths


def write_index(directory: Path, entities: int, dimension: int, seed: int = 42) -> dict[str, int]:
    """A version directory with one document and chunk per entity; returns the rows of every table."""
    rng = np.random.default_rng(seed)
    names = list(_names(rng, entities))
    relations = TRIPLES_PER_ENTITY * entities
    heads = np.repeat(np.arange(entities), TRIPLES_PER_ENTITY)
    # Degrees fall off as in real graphs: a few entities are in very many facts.
    tails = (entities * rng.random(relations) ** 3).astype(np.int64)
    kinds = rng.integers(0, len(_RELATIONS), relations)
    texts = []
    for entity in range(entities):
        facts = range(TRIPLES_PER_ENTITY * entity, TRIPLES_PER_ENTITY * (entity + 1))
        said = (
            f"{names[entity]} is {_RELATIONS[kinds[f]].replace('_', ' ')} {names[tails[f]]}." for f in facts
        )
        texts.append(" ".join(said))
    communities = max(1, entities // ENTITIES_PER_COMMUNITY)
    ids = {kind: [f"{kind}{row}" for row in range(entities)] for kind in ("e", "d", "c")}
    relation_ids = [f"r{row}" for row in range(relations)]
    mentioned = np.concatenate((np.arange(entities), tails))
    mentioning = np.concatenate((np.arange(entities), heads))
    at = [texts[c].find(names[e]) for e, c in zip(mentioned.tolist(), mentioning.tolist(), strict=True)]
    columns = {
        "documents": {"document_id": ids["d"], "title": names, "text": texts, "source": ids["d"]},
        "chunks": {
            "chunk_id": ids["c"],
            "document_id": ids["d"],
            "end": [len(text) for text in texts],
            "text": texts,
            "state": ["done"] * entities,
        },
        "entities": {
            "entity_id": ids["e"],
            "name": names,
            "type": [_TYPES[row % len(_TYPES)] for row in range(entities)],
        },
        "mentions": {
            "entity_id": [ids["e"][row] for row in mentioned],
            "chunk_id": [ids["c"][row] for row in mentioning],
            "start": at,
            "end": [start + len(names[row]) for start, row in zip(at, mentioned.tolist(), strict=True)],
            "confidence": [1.0] * len(mentioned),
        },
        "relations": {
            "relation_id": relation_ids,
            "head_id": [ids["e"][row] for row in heads],
            "type": [_RELATIONS[row] for row in kinds],
            "tail_id": [ids["e"][row] for row in tails],
            "weight": [1.0] * relations,
            "confidence": [1.0] * relations,
        },
        "relation_evidence": {
            "relation_id": relation_ids,
            "chunk_id": [ids["c"][row] for row in heads],
            "confidence": [1.0] * relations,
        },
        "communities": {
            "community_id": [f"k{row}" for row in range(communities)],
            "name": [names[row * ENTITIES_PER_COMMUNITY % entities] for row in range(communities)],
            "size": [ENTITIES_PER_COMMUNITY] * communities,
            "centre_id": [ids["e"][row * ENTITIES_PER_COMMUNITY % entities] for row in range(communities)],
        },
        "community_members": {
            "community_id": [f"k{row * communities // entities}" for row in range(entities)],
            "entity_id": ids["e"],
        },
    }
    (directory / "tables").mkdir(parents=True)
    for name, record in TABLES.items():
        schema = arrow_schema(record)
        given = columns.get(name, {})
        rows = len(next(iter(given.values()), ()))
        arrays = [pa.array(given.get(field.name, _blank(field, rows)), field.type) for field in schema]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), directory / "tables" / f"{name}.parquet")
    report = build_indexes(
        directory, RandomVectors(dimension, seed, max(1, entities // 100)), EmbedderSettings()
    )
    return report.counts


def questions(directory: Path, count: int, seed: int = 7) -> list[str]:
    """Questions that name one or two entities of a generated index."""
    names = pq.read_table(directory / "tables" / "entities.parquet", columns=["name"]).column("name")
    rng = np.random.default_rng(seed)
    forms = ("Where was {} born?", "Which organization is the author of {} a member of?", "Is {} part of {}?")
    picks = rng.integers(0, len(names), (count, 2)).tolist()
    return [
        forms[row % len(forms)].format(*(names[place].as_py() for place in picks[row]))
        for row in range(count)
    ]


def _names(rng: np.random.Generator, count: int) -> Iterator[str]:
    syllables = np.array(_SYLLABLES)
    first, last = (syllables[rng.integers(0, len(syllables), (count, parts))] for parts in (2, 3))
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        yield f"{''.join(a).capitalize()} {''.join(b).capitalize()}"


def _blank(field: pa.Field, rows: int) -> list[object]:
    if field.nullable:
        return [None] * rows
    if pa.types.is_string(field.type):
        return [""] * rows
    return [[] if pa.types.is_list(field.type) else 0] * rows
