"""Clusters of aliases against known ones: pairs of mentions, and of different names, of one document.

Known mentions go through the same consolidation as extracted ones, all documents as one corpus, so that a
merge across documents that is wrong within one counts as wrong.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.evaluate.alias_files import KnownDocument, KnownMention
from hornbeam.extract.result import ChunkExtraction, FoundEntity
from hornbeam.index.embedder import TextEmbedder
from hornbeam.records import ChunkState
from hornbeam.resolve.consolidate import write_graph_tables
from hornbeam.resolve.staging import ChunkInput, DocumentInput
from hornbeam.settings import ResolveSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_RESAMPLES = 1000
_MEMORY_MIB = 1024


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of one document: in both, in what was found, in what is known."""

    right: int
    found: int
    known: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one setting found."""

    clusters: list[list[str]]  # entity of each mention, by document
    by_mention: list[Pairs]  # by document
    by_name: list[Pairs]
    merges: dict[str, int]
    homonyms: int
    entities: int


def run_resolution(
    documents: Sequence[KnownDocument], settings: ResolveSettings, embedder: TextEmbedder
) -> Outcome:
    """Resolve known mentions and count pairs."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        tables, scratch = Path(folder) / "tables", Path(folder) / "scratch"
        tables.mkdir()
        scratch.mkdir()
        consolidated = write_graph_tables(
            (_as_found(number, document) for number, document in enumerate(documents)),
            tables,
            scratch,
            settings=settings,
            schema=None,
            embedder=embedder,
            min_confidence=0.0,
            memory_limit_mib=_MEMORY_MIB,
        )
        rows = pq.read_table(
            tables / "mentions.parquet", columns=["entity_id", "chunk_id", "start", "end"]
        ).to_pylist()
        types = pq.read_table(tables / "entities.parquet", columns=["entity_id", "type"]).to_pylist()
    type_of = {row["entity_id"]: row["type"] for row in types}
    places: dict[tuple[str, int, int], list[str]] = defaultdict(list)
    for row in rows:
        places[row["chunk_id"], row["start"], row["end"]].append(row["entity_id"])
    clusters = [
        [_entity_at(places[_name(number), m.start, m.end], type_of, m) for m in document.mentions]
        for number, document in enumerate(documents)
    ]
    known = [[str(mention.entity) for mention in document.mentions] for document in documents]
    return Outcome(
        clusters,
        [count_pairs(found, true) for found, true in zip(clusters, known, strict=True)],
        [
            count_pairs(*_by_name(document.mentions, found, true))
            for document, found, true in zip(documents, clusters, known, strict=True)
        ],
        consolidated.merges,
        consolidated.homonyms,
        consolidated.rows["entities"],
    )


def _name(number: int) -> str:
    return f"{number:08d}"


def _entity_at(entities: Sequence[str], type_of: dict[str, str], mention: KnownMention) -> str:
    """Of several entities of one place, the one of the mention's type."""
    return min(entities, key=lambda entity: (type_of[entity] != mention.type, entity))


def _as_found(number: int, document: KnownDocument) -> DocumentInput:
    spans: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for mention in document.mentions:
        spans[mention.name, mention.type].add((mention.start, mention.end))
    entities = tuple(
        FoundEntity(name=name, type=kind, confidence=1.0, spans=tuple(sorted(places)))
        for (name, kind), places in sorted(spans.items())
    )
    key, text = _name(number), document.text
    chunk = ChunkInput(
        key, key, 0, len(text), text, 0, ChunkState.DONE, "", ChunkExtraction(entities=entities)
    )
    return DocumentInput(key, (document.name,), document.name, text, "und", (chunk,))


def _by_name(
    mentions: Sequence[KnownMention], found: Sequence[str], known: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Entity and known entity of each different name and type: the ones that most of its mentions have."""
    ours: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    theirs: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for mention, entity, true in zip(mentions, found, known, strict=True):
        ours[mention.name, mention.type][entity] += 1
        theirs[mention.name, mention.type][true] += 1
    names = sorted(ours)
    return [most_common(ours[name]) for name in names], [most_common(theirs[name]) for name in names]


def most_common(counts: Counter[str]) -> str:
    return min(counts, key=lambda key: (-counts[key], key))


def count_pairs(found: Sequence[str], known: Sequence[str]) -> Pairs:
    """Pairs of items with one label, in linear time."""

    def pairs(labels: Iterable[object]) -> int:
        return sum(n * (n - 1) // 2 for n in Counter(labels).values())

    return Pairs(pairs(zip(found, known, strict=True)), pairs(found), pairs(known))


def scores(pairs: Sequence[Pairs], *, seed: int) -> dict[str, float | list[float]]:
    """Precision, recall and F1 over all pairs, with 95 % intervals from resampled documents, and the means
    over documents that have pairs."""
    import numpy as np

    table: NDArray[np.float64] = np.array(
        [(pair.right, pair.found, pair.known) for pair in pairs], dtype=np.float64
    ).reshape(-1, 3)
    draws = np.random.default_rng(seed).integers(len(table), size=(_RESAMPLES, len(table)))
    resampled = table[draws].sum(axis=1)  # [resamples, 3]
    right, found, known = table.T
    result: dict[str, float | list[float]] = {}
    for name, value, sample in zip(
        ("precision", "recall", "f1"), _measures(table.sum(axis=0)), _measures(resampled.T), strict=True
    ):
        low, high = np.quantile(sample, (0.025, 0.975))
        result[name] = round(float(value), 4)
        result[f"{name}_interval"] = [round(float(low), 4), round(float(high), 4)]
    result["document_precision"] = round(float((right[found > 0] / found[found > 0]).mean()), 4)
    result["document_recall"] = round(float((right[known > 0] / known[known > 0]).mean()), 4)
    return result


def _measures(
    sums: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Precision, recall, F1 of rows right, found, known; of nothing, 1."""
    import numpy as np

    right, found, known = sums
    precision = np.where(found > 0, right / np.maximum(found, 1), 1.0)
    recall = np.where(known > 0, right / np.maximum(known, 1), 1.0)
    return precision, recall, 2 * precision * recall / np.maximum(precision + recall, 1e-12)
