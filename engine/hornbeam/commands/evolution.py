"""`hornbeam schema proposals|accept|undo|bootstrap`: how a schema grows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hornbeam.commands.options import (
    ConfigOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    ModelOption,
    SetOption,
    quiet_libraries,
    settings_of,
)
from hornbeam.printing import print_json, say

if TYPE_CHECKING:
    from hornbeam.evolve.accepting import JudgedProposal, Proposed

app = typer.Typer()
#: Examples of a proposal that are shown.
_EXAMPLES_SHOWN = 3

_OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="FILE", help="Write a copy of the new version here.", show_default=False
    ),
]


@app.command("proposals")
def schema_proposals(
    index_directory: IndexOption,
    show_all: Annotated[bool, typer.Option("--all", help="Also what did not pass the gates.")] = False,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the types that a build with --evolve found the schema to lack, and which pass the gates."""
    from hornbeam.evolve.accepting import read_proposals

    found = read_proposals(index_directory, settings_of(config, changes, {}).evolve)
    if as_json:
        print_json(found.to_json())
        return
    _print_proposals(found, show_all=show_all)


@app.command("accept")
def schema_accept(
    index_directory: IndexOption,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME…]",
            help="Proposed types, as shown; entity:NAME where a name is of two kinds.",
            show_default=False,
        ),
    ] = None,
    accept_all: Annotated[bool, typer.Option("--all", help="All that pass the gates.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also a named one that a gate refuses.")] = False,
    output: _OutputOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a new version of the index's schema with proposed types; the next build uses it.

    The file is yours to read and edit: INDEX/schemas/NAME-vN.json.
    """
    if bool(names) == accept_all:
        raise typer.BadParameter("name the types to accept, or give --all", param_hint="NAME")
    from hornbeam.evolve.accepting import accept_proposals

    accepted = accept_proposals(
        index_directory, names or [], settings_of(config, changes, {}).evolve, force=force, output=output
    )
    if as_json:
        print_json(accepted.to_json())
        return
    for line in accepted.schema.changes:
        say(line)
    say(f"{accepted.schema.name}, version {accepted.schema.version}: {accepted.path}")
    say("the next 'hornbeam index' without --schema uses it; 'hornbeam schema undo' goes back")


@app.command("undo")
def schema_undo(index_directory: IndexOption, as_json: JsonOption = False) -> None:
    """Go back to the version before the accepted one; no file is removed.

    The next build uses it, and no fact of a type that is gone stays in the graph.
    """
    from hornbeam.store.schemas import undo_schema

    undone, current = undo_schema(index_directory)
    if as_json:
        print_json({"undone": undone.version, "schema": current.name, "version": current.version})
        return
    say(f"{current.name}, version {current.version} instead of {undone.version}")


@app.command("bootstrap")
def schema_bootstrap(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH…", help="Folders, files or globs.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option("--output", metavar="FILE", help="Where the schema is written.", show_default=False),
    ],
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Chunks that the model is asked about.")
    ] = 64,
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
) -> None:
    """Propose a first schema from documents alone; what passes the gates is written to FILE."""
    settings = settings_of(config, changes, {"model.path": model, "device": device})
    quiet_libraries()
    from hornbeam.evolve.bootstrap import bootstrap_schema
    from hornbeam.llm.opening import open_model
    from hornbeam.opening import open_embedder
    from hornbeam.progress import Progress
    from hornbeam.schema.load import check_new_file, write_schema

    check_new_file(output)
    language_model = open_model(settings)
    try:
        with Progress(quiet=quiet) as progress:
            result = bootstrap_schema(
                paths, output.stem, sample, settings, language_model, open_embedder(settings), progress
            )
    finally:
        language_model.close()
    write_schema(result.schema, output)
    if as_json:
        print_json(result.to_json() | {"file": str(output)})
        return
    say("\n".join(result.lines()))
    say(f"{output}: look it over before you use it")


def _print_proposals(proposed: Proposed, *, show_all: bool) -> None:
    passing = [each for each in proposed.proposals if each.passes]
    refused = [each for each in proposed.proposals if not each.passes]
    say(
        f"proposed to {proposed.schema.name}, version {proposed.schema.version}: "
        f"{len(passing)} pass the gates"
    )
    for each in passing:
        _print_proposal(each)
    if show_all:
        for each in refused:
            _print_proposal(each)
            say(f"    refused: {'; '.join(each.objections)}")
    elif refused:
        say(f"{len(refused)} more did not pass; --all shows them and why")


def _print_proposal(judged: JudgedProposal) -> None:
    proposal = judged.proposal
    ends = ""
    if proposal.kind == "relation":
        ends = f"({'|'.join(proposal.domain)}, {'|'.join(proposal.range)})"
    elif proposal.kind == "attribute":
        ends = f"({'|'.join(proposal.domain)}) {proposal.value_kind}"
    near = f", nearest {proposal.nearest} {proposal.similarity:.2f}" if proposal.nearest else ""
    also = f", also {', '.join(proposal.also)}" if proposal.also else ""
    say(
        f"{proposal.kind} {proposal.name}{ends}: support {proposal.support}, "
        f"confidence {proposal.confidence:.2f}{near}{also}"
    )
    for example in proposal.examples[:_EXAMPLES_SHOWN]:
        surfaces = " → ".join(" ".join(place.surface.split()) for place in example.places)
        places = ", ".join(f"{place.start}-{place.end}" for place in example.places)
        say(f"    {surfaces}  ({example.chunk_id}:{places}, {example.confidence:.2f})")
