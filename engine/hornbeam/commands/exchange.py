"""`hornbeam import` and `export`: graphs of other systems, and for them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hornbeam.commands.options import (
    ConfigOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    SetOption,
    quiet_libraries,
    settings_of,
)
from hornbeam.printing import print_json, say

if TYPE_CHECKING:
    from hornbeam.importing import Reader

import_app = typer.Typer(help="Bring a graph of another system into an index.", no_args_is_help=True)


class ExportFormat(StrEnum):
    PARQUET = "parquet"
    GRAPHML = "graphml"
    NEO4J_CSV = "neo4j-csv"
    JSONL = "jsonl"
    GRAPHRAG = "graphrag"


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


@import_app.command("graphrag")
def import_graphrag(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR…", help="The output folder of Microsoft GraphRAG, with its Parquet tables."
        ),
    ],
    index_directory: IndexOption,
    embedder: EmbedderOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Import a finished Microsoft GraphRAG index: documents, entities, relationships; communities are new."""
    from hornbeam.exchange.graphrag import read_graphrag

    _import(folders, read_graphrag, index_directory, embedder, device, config, changes, as_json, quiet)


def export(
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A new file or folder.", show_default=False)],
    index_directory: IndexOption,
    form: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="graphml and jsonl are one file, the others a folder.",
            show_default=False,
        ),
    ],
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="ID", help="Default: the promoted version.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a version for another system: tables, GraphML, Neo4j, JSON lines, Microsoft GraphRAG."""
    from hornbeam.exchange.writing import export_version
    from hornbeam.store.damage import check_sizes, naming_damage
    from hornbeam.store.versions import open_pinned, read_version

    opened = open_pinned(index_directory) if version is None else read_version(index_directory, version)
    check_sizes(opened, ("tables",))
    with naming_damage(opened):
        written = export_version(opened.directory, form.value, target)
    if as_json:
        files = {str(path): path.stat().st_size for path in written}
        print_json({"version": opened.version_id, "format": form.value, "files": files})
    else:
        for path in written:
            say(path)


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
    from hornbeam.stopping import stop_on_signal

    with Progress(quiet=quiet) as progress, stop_on_signal() as stop:
        report = Import(index, settings, progress, stop).run(files, read)
    if as_json:
        print_json(report)
    else:
        counted = (f"{count} {name.replace('_', ' ')}" for name, count in report["import"].items() if count)
        chosen = report["embedder"]
        say(
            f"import       {', '.join(counted)}; vectors by {chosen['name']} ({chosen['reason']})", flush=True
        )
        render_report(report, index)
    raise typer.Exit(report["exit_code"])
