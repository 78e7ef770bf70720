"""`hornbeam import`: graphs of other systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hornbeam.commands.options import (
    ConfigOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    SetOption,
    print_json,
    quiet_libraries,
    settings_of,
)

if TYPE_CHECKING:
    from hornbeam.importing import Reader

import_app = typer.Typer(help="Bring a graph of another system into an index.", no_args_is_help=True)

EmbedderOption = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="auto|model|hashed",
        help="Vectors by the embedding model, or by hashed character n-grams (spelling, not meaning; fast); "
        "auto: hashed for more than embedder.max_facts_for_model facts.",
        show_default=False,
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]


@import_app.command("triples")
def import_triples(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="head TAB relation TAB tail.")],
    index_directory: IndexOption,
    types: Annotated[
        Path | None,
        typer.Option(
            "--types",
            metavar="FILE",
            help="Types of entities: lines 'name TAB type', or a JSON object.",
            show_default=False,
        ),
    ] = None,
    embedder: EmbedderOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Import triples: organised, indexed and ready to be searched, without a language model.

    Lines may end with the types of head and tail in two more columns.
    """
    from hornbeam.exchange.triples import read_triples, read_types

    known = read_types(types) if types else {}
    _import(
        files,
        lambda path, reading: read_triples(path, known, reading),
        index_directory, embedder, device, config, changes, as_json, quiet,
    )  # fmt: skip


@import_app.command("openie")
def import_openie(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Records {title, text, triples: [[head, relation, tail], …]}."),
    ],
    index_directory: IndexOption,
    embedder: EmbedderOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Import texts with the triples that another system found in them: JSON, JSON lines, HippoRAG's files."""
    from hornbeam.exchange.openie import read_openie

    _import(files, read_openie, index_directory, embedder, device, config, changes, as_json, quiet)


def _import(
    files: list[Path],
    read: Reader,
    index: Path,
    embedder: str | None,
    device: str | None,
    config: Path | None,
    changes: list[str] | None,
    as_json: bool,
    quiet: bool,
) -> None:
    settings = settings_of(config, changes, {"embedder.kind": embedder, "device": device})
    quiet_libraries()
    from hornbeam.importing import Import
    from hornbeam.progress import Progress
    from hornbeam.report import render_report

    with Progress(quiet=quiet) as progress:
        report = Import(index, settings, progress).run(files, read)
    if as_json:
        print_json(report)
    else:
        counted = (f"{count} {name.replace('_', ' ')}" for name, count in report["import"].items() if count)
        chosen = report["embedder"]
        print(
            f"import       {', '.join(counted)}; vectors by {chosen['name']} ({chosen['reason']})", flush=True
        )
        render_report(report, index)
    raise typer.Exit(report["exit_code"])
