"""`hornbeam evaluate communities`: the run, its JSON document, its table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.errors import UsageError
from hornbeam.evaluate.communities import (
    MEASURES,
    PLANTINGS,
    Found,
    KnownGraph,
    evaluate_communities,
    graphs_from,
    planted_graphs,
    settings_of,
)
from hornbeam.evaluate.planted import Planting
from hornbeam.printing import on_one_line
from hornbeam.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console


#: Columns of characters that the table takes.
_LEAST_WIDTH = 130


def run(
    path: Path | None,
    nodes: int,
    mixing: float | None,
    noise: float | None,
    draws: int,
    max_size: int,
    seed: int,
    predictions: Path | None,
) -> dict[str, Any]:
    """The report: the rows of `evaluate_communities` and the settings they were made with.

    Raises:
        UsageError: nothing to evaluate, or `predictions` cannot be written.
    """
    plantings = PLANTINGS
    if mixing is not None or noise is not None:
        default = Planting()
        plantings = {
            "as asked": Planting(
                mixing=default.mixing if mixing is None else mixing,
                noise=default.noise if noise is None else noise,
            )
        }
    if not nodes:
        plantings = {}
    if path is None and not plantings:
        raise UsageError("nothing to evaluate: give a PATH with graphs, or --nodes above 0")
    graphs: Iterator[KnownGraph] = planted_graphs(nodes, plantings, range(seed, seed + draws))
    if path is not None:
        graphs = chain(graphs_from(path, seed), graphs)
    with ExitStack() as open_things:
        progress = open_things.enter_context(Progress())
        stage = open_things.enter_context(progress.stage("evaluate", None, "partitions"))
        out = None
        if predictions is not None:
            try:
                out = open_things.enter_context(predictions.open("w", encoding="utf-8"))
            except OSError as error:
                raise UsageError(
                    f"--predictions: {predictions} cannot be written: {error.strerror}"
                ) from error

        def on_found(found: Found) -> None:
            stage.advance()
            if out is not None:
                line = {
                    "id": f"{found.graph}: {found.method}",
                    "labels": found.labels.tolist(),
                    "seconds": found.seconds,
                    **found.scores,
                }
                out.write(json.dumps(line, ensure_ascii=False) + "\n")

        rows = evaluate_communities(graphs, max_size=max_size, seed=seed, on_found=on_found)
    return {
        "rows": rows,
        "max_size": max_size,
        "nodes": nodes,
        "seed": seed,
        "planted": settings_of(plantings),
    }


def render(report: dict[str, Any], console: Console) -> None:
    """A table, a graph after another."""
    from rich.table import Table

    # Numbers are never cut: a narrow terminal wraps whole rows instead.
    console.width = max(console.width, _LEAST_WIDTH)
    table = Table(box=None, pad_edge=False)
    table.add_column("graph", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for measure in (*MEASURES, "communities", "seconds"):
        table.add_column(measure, justify="right")
    before = None
    for row in report["rows"]:
        if before not in (None, row["graph"]):
            table.add_section()
        table.add_row(
            "" if row["graph"] == before else on_one_line(row["graph"]),
            row["method"],
            *(f"{row[measure]:.3f}" for measure in MEASURES),
            f"{row['communities']:.0f}",
            f"{row['seconds']:.2f}",
        )
        before = row["graph"]
    console.print(table)
