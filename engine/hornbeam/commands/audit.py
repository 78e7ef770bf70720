"""`hornbeam audit`: is the index what it says it is?"""

from __future__ import annotations

from typing import Annotated

import typer

from hornbeam.commands.options import (
    ConfigOption,
    IndexOption,
    JsonOption,
    SetOption,
    quiet_libraries,
    settings_of,
)
from hornbeam.printing import print_json, say

_SHOWN = 20


def audit(
    index_directory: IndexOption,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="ID", help="Default: the promoted version.", show_default=False),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Make damaged files again from what is intact.")
    ] = False,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
) -> None:
    """Recompute every invariant and every agreement between stores from the files; name what is wrong.

    Exit code 0: sound, or mended; 1: something is wrong, and listed.
    """
    settings = settings_of(config, changes, {})
    quiet_libraries()
    from hornbeam.audit.run import audit_index
    from hornbeam.progress import Progress

    with Progress(quiet=quiet) as progress:
        found = audit_index(index_directory, version, progress)
        if repair and not found.sound:
            from hornbeam.audit.repair import mend_ledger, repair_index
            from hornbeam.opening import embedder_of
            from hornbeam.store.disk import explained
            from hornbeam.store.ledger import Ledger
            from hornbeam.store.lock import write_lock

            with explained(index_directory), write_lock(index_directory):
                done = mend_ledger(index_directory, found)
                with Ledger(index_directory, create=False) as ledger:
                    done += repair_index(
                        index_directory, ledger, found, lambda it: embedder_of(it, settings), progress
                    )
            found = audit_index(index_directory, version, progress)
            found.repaired = done
    if as_json:
        print_json(found.to_json())
    else:
        for line in found.repaired:
            say(f"repaired     {line}")
        for finding in found.findings[:_SHOWN]:
            say(f"wrong        {finding.line()}")
        if len(found.findings) > _SHOWN:
            say(f"…            and {len(found.findings) - _SHOWN} more; --json lists all")
        passed = sum(state == "passed" for state in found.checks.values())
        skipped = [name for name, state in found.checks.items() if state.startswith("skipped")]
        tail = f", skipped: {', '.join(skipped)}" if skipped else ""
        say(f"audit        {passed} of {len(found.checks)} checks passed, version {found.version}{tail}")
    raise typer.Exit(0 if found.sound else 1)
