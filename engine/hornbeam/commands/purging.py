"""`hornbeam purge`: erase what deleted documents have left on the disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hornbeam.commands.options import IndexOption, JsonOption
from hornbeam.printing import print_json, say


def purge(
    index_directory: IndexOption,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
) -> None:
    """Erase what deleted documents have left: older versions, stored texts and results, free pages.

    Not to be undone: a rollback to before the delete is not possible any more. Exit 1 if something is in use
    and stays; run it again then.
    """
    from hornbeam.pipeline.purging import purge as erase
    from hornbeam.progress import Progress
    from hornbeam.store.disk import explained
    from hornbeam.store.ledger import Ledger, check_is_index
    from hornbeam.store.lock import write_lock

    check_is_index(index_directory)
    with (
        explained(index_directory),
        write_lock(index_directory),
        Ledger(index_directory, create=False) as ledger,
    ):
        done = erase(index_directory, ledger, Progress(quiet=quiet))
    if as_json:
        print_json(asdict(done))
    else:
        say(
            f"{done.documents} deleted documents, {done.results} results, {done.questions} logged questions "
            f"and {len(done.versions)} versions erased, {done.segments} segments replaced, "
            f"{done.bytes / 2**20:.1f} MiB freed"
        )
        for line in done.left:
            say(f"not erased: {line}")
    if done.left:
        raise typer.Exit(1)
