"""`hornbeam evaluate`: measure against known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hornbeam.commands.options import JsonOption, PredictionsOption, print_json, quiet_libraries

app = typer.Typer(help="Measure against known answers.", no_args_is_help=True)


@app.command("communities")
def evaluate_communities(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="A graph with known communities or a folder of them (*.gml, *.edges.tsv beside "
            "*.labels.tsv); none: planted graphs only.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Entities of a planted graph; 0: none planted.")
    ] = 2000,
    mixing: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of edges to anywhere; 1: edges say nothing.", show_default=False
        ),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Length of the vectors' noise beside a centre of length 1; inf: they say nothing.",
            show_default=False,
        ),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Planted graphs of each setting.")] = 3,
    max_size: Annotated[int, typer.Option(min=2, help="Entities of a community, at most.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of every method and the first draw.")] = 42,
    predictions: PredictionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Dual perception, Leiden and K-means side by side: ARI, NMI, modularity, coherence."""
    quiet_libraries()
    from hornbeam.evaluate.community_report import run

    report = run(path, nodes, mixing, noise, draws, max_size, seed, predictions)
    if as_json:
        print_json(report)
    else:
        from rich.console import Console

        from hornbeam.evaluate.community_report import render

        render(report, Console())
