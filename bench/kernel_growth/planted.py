"""The graphs that are measured: planted, any size, or of a file; written to disk as NumPy arrays.

Communities of 20 to 60, 25 of them in a topic; 3 n triples that end nine times of ten in their head's
community; four of 40 relation types are a community's favourites, taken four times of five.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hornbeam.errors import UsageError
from hornbeam.evaluate.planted import Planting, planted_graph

PLANTING = Planting(mixing=0.1, noise=1.0, relation_mixing=0.2, communities_per_topic=25)
HELD_OUT = 1000
"""Vectors drawn like the entities' and not among them, to ask for."""


def write_planted_graph(folder: Path, n: int, *, seed: int = 0, dimension: int = PLANTING.dimension) -> None:
    """Writes heads, relations, tails (int32 [3n]), vectors, queries, relation_vectors (float32), labels.

    Time and memory O(n d): about 10 s and 2 GB for 10⁶ × 384. The same n and seed give the same files.
    """
    made = planted_graph(n, replace(PLANTING, dimension=dimension), seed=seed, held_out=HELD_OUT)
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (
        ("heads", made.heads.astype(np.int32)),
        ("relations", made.relations.astype(np.int32)),
        ("tails", made.tails.astype(np.int32)),
        ("labels", made.labels),
        ("relation_vectors", made.relation_vectors),
        ("vectors", made.entity_vectors),
        ("queries", made.queries),
    ):
        np.save(folder / f"{name}.npy", array)


def write_graph_of_triples(folder: Path, file: Path) -> int:
    """Writes heads, relations, tails and labels (all 0) of a file of ``head TAB relation TAB tail``; returns
    n.

    Raises:
        UsageError: the file cannot be read, or a line is not three names.
    """
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    rows = []
    try:
        with file.open(encoding="utf-8") as lines:
            for count, line in enumerate(lines, start=1):
                parts = line.rstrip("\n").split("\t")
                if len(parts) != 3:
                    raise UsageError(f"{file}: line {count} is not head, relation, tail with tabs between")
                of_entity, of_type = numbers
                head, kind, tail = parts
                rows.append(
                    (
                        of_entity.setdefault(head, len(of_entity)),
                        of_type.setdefault(kind, len(of_type)),
                        of_entity.setdefault(tail, len(of_entity)),
                    )
                )
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    columns = np.asarray(rows, dtype=np.int32).reshape(-1, 3)
    folder.mkdir(parents=True, exist_ok=True)
    for column, name in enumerate(("heads", "relations", "tails")):
        np.save(folder / f"{name}.npy", columns[:, column])
    np.save(folder / "labels.npy", np.zeros(len(numbers[0]), dtype=np.int32))
    return len(numbers[0])
