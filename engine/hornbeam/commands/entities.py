"""`hornbeam entities`: which names were found to be one thing, and what to do where they are not."""

from __future__ import annotations

from typing import Annotated

import typer

from hornbeam.commands.options import IndexOption, JsonOption
from hornbeam.printing import print_json, say

app = typer.Typer(help="Look at merges of names, and undo them.", no_args_is_help=True)


@app.command("merges")
def entities_merges(
    index_directory: IndexOption,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", metavar="KIND", help="Only merges on this kind of evidence.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List which names were merged into one entity, and on what evidence."""
    from dataclasses import asdict

    from hornbeam.resolve.evidence import EvidenceKind
    from hornbeam.resolve.merge_log import read_merge_log

    if kind is not None and kind not in list(EvidenceKind):
        raise typer.BadParameter(f"'{kind}' is not one of {', '.join(EvidenceKind)}", param_hint="--kind")
    log = read_merge_log(index_directory)
    merges = [merge for merge in log.merges if kind in (None, merge.kind)]
    if as_json:
        print_json({
            "version": log.version_id,
            "merges": [asdict(merge) for merge in merges],
            "undone": [{"merge_id": one.merge_id} | asdict(one) for one in log.undone],
        })  # fmt: skip
        return
    for merge in merges:
        where = f"in {merge.document_id}" if merge.document_id else "everywhere"
        other_type = f" ({merge.merged_type})" if merge.merged_type != merge.type else ""
        say(f"{merge.merge_id}  {merge.name} ({merge.type}) = {merge.merged_name}{other_type}, {where}")
        say(f"  {merge.kind} {merge.score:.2f}, chunk {merge.chunk_id}:{merge.start}-{merge.end}")
    for one in log.undone:
        say(f"{one.merge_id}  undone: {one.name} ({one.type}) is not {one.other_name} ({one.other_type})")
    if not merges and not log.undone:
        say("no merges")


@app.command("undo")
def entities_undo(
    merge_ids: Annotated[
        list[str],
        typer.Argument(metavar="MERGE_ID…", help="As `entities merges` lists them.", show_default=False),
    ],
    index_directory: IndexOption,
    allow: Annotated[
        bool, typer.Option("--allow", help="The other way round: let the merges be made again.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell apart names that were merged: every later build respects it.

    The decision is kept in the index, not in a version. Run `hornbeam index` again to build a version with
    it; stored extractions are used, so the model is not asked about any text again.
    """
    from hornbeam.resolve.merge_log import allow_merges, undo_merges

    change = allow_merges if allow else undo_merges
    changed = change(index_directory, list(dict.fromkeys(merge_ids)))
    if as_json:
        print_json({
            "allowed" if allow else "undone": [separation.merge_id for separation in changed],
        })  # fmt: skip
        return
    for separation in changed:
        verb = "may be" if allow else "is not"
        say(f"{separation.name} ({separation.type}) {verb} {separation.other_name} ({separation.other_type})")
    say(
        f"kept; run 'hornbeam index' with the same paths and --index {index_directory} to build a version "
        "with it: no text is extracted again"
    )
