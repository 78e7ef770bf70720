"""`hornbeam versions`, `promote`, `rollback`, `diff`: which graph readers see."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from hornbeam.commands.options import (
    ConfigOption,
    IndexOption,
    JsonOption,
    SetOption,
    settings_of,
)
from hornbeam.printing import print_json, say

VersionArgument = Annotated[
    str, typer.Argument(metavar="VERSION", help="A version's id.", show_default=False)
]


def versions(
    index_directory: IndexOption,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove old versions and segments that nobody needs.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="With --prune: newest versions to keep.", show_default=False),
    ] = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the versions of an index, with their gates; --prune removes old ones.

    A build removes versions beyond `versions.keep` by itself. The promoted one stays, and those in use.
    """
    settings = settings_of(config, changes, {"versions.keep": keep})
    from hornbeam.store.catalogue import catalogue
    from hornbeam.store.ledger import Ledger
    from hornbeam.store.lock import write_lock
    from hornbeam.store.retention import prune as remove_old

    pruned: dict[str, Any] = {}
    with Ledger(index_directory, create=False, read_only=not prune) as ledger:
        if prune:
            with write_lock(index_directory):
                done = remove_old(index_directory, ledger, settings.versions.keep)
            pruned = {
                "pruned": {
                    "versions": done.versions,
                    "in_use": done.in_use,
                    "segments": done.segments,
                    "bytes": done.bytes,
                }
            }
    found = catalogue(index_directory) | pruned
    if as_json:
        print_json(found)
        return
    for entry in found["versions"]:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["created"]))
        mark = "*" if entry["current"] else " "
        counts = entry["counts"]
        refused = f"  refused: {', '.join(entry['refused'])}" if entry["refused"] else ""
        sizes = ", ".join(f"{counts[what]} {what}" for what in ("documents", "entities", "relations"))
        say(f"{mark} {entry['version']}  {made}  {sizes}, {entry['bytes'] / 2**20:.1f} MiB{refused}")
    for entry in found["unreadable"]:
        say(f"! {entry['version']}  {entry['reason']}")
    if told := pruned.get("pruned"):
        gone = f"{len(told['versions'])} versions and {len(told['segments'])} segments removed"
        say(f"{gone}, {told['bytes'] / 2**20:.1f} MiB; {len(told['in_use'])} old versions are in use")


def promote(
    version: VersionArgument,
    index_directory: IndexOption,
    force: Annotated[bool, typer.Option("--force", help="Also one that a gate refused.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a version the one that readers open."""
    from hornbeam.store.lock import write_lock
    from hornbeam.store.promotions import promote_passed
    from hornbeam.store.versions import current_version_id

    before = current_version_id(index_directory)
    with write_lock(index_directory):
        promoted = promote_passed(index_directory, version, force=force)
    _tell(before, promoted.version_id, as_json)


def rollback(
    index_directory: IndexOption,
    as_json: JsonOption = False,
) -> None:
    """Go back to the version that was promoted before; again, to the one before that."""
    from hornbeam.store.lock import write_lock
    from hornbeam.store.promotions import rollback as go_back
    from hornbeam.store.versions import current_version_id

    before = current_version_id(index_directory)
    with write_lock(index_directory):
        promoted = go_back(index_directory)
    _tell(before, promoted.version_id, as_json)


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="The earlier version.", show_default=False)],
    after: Annotated[str, typer.Argument(metavar="B", help="The later one.", show_default=False)],
    index_directory: IndexOption,
    examples: Annotated[int, typer.Option(min=0, help="Things of each kind that are named.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """What two versions say differently: entities, relations, merges of names, types, communities."""
    from hornbeam.store.differences import diff_versions
    from hornbeam.store.versions import read_version

    a, b = read_version(index_directory, before), read_version(index_directory, after)
    found = diff_versions(a, b, examples=examples)
    if as_json:
        print_json(found)
        return
    for kind in ("documents", "entities", "relations", "attributes", "merges", "communities"):
        counts = found[kind]
        told = ", ".join(f"{counts[what]} {what}" for what in ("added", "removed", "changed", "unchanged"))
        say(f"{kind:<16} {told}")
        for sign, what in (("+", "added"), ("-", "removed"), ("~", "changed")):
            for one in counts["examples"][what]:
                say(f"  {sign} {one}")
    for kind, types in found["types"].items():
        for sign, what in (("+", "added"), ("-", "removed"), ("~", "changed")):
            for one in types[what]:
                say(f"{kind.replace('_', ' '):<16} {sign} {one}")
    if found["communities"]["ari"] is not None:
        say(f"{'agreement':<16} {found['communities']['ari']:.3f} (adjusted Rand index of the leaves)")


def _tell(before: str | None, now: str, as_json: bool) -> None:
    if as_json:
        print_json({"before": before, "current": now})
    else:
        say(f"current version {now}" + (f", before {before}" if before and before != now else ""))
