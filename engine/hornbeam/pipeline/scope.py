"""Where an update looks: below the paths that the index was built from, or those that the user names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hornbeam.corpus import Root, canonical, is_below, roots_of
from hornbeam.errors import UsageError
from hornbeam.store.ledger import Ledger


@dataclass(slots=True)
class Scope:
    paths: list[Path] = field(default_factory=list)  # to read
    places: list[str] = field(default_factory=list)  # below which what is gone is gone
    new_roots: list[Root] = field(default_factory=list)
    guarded: list[str] = field(default_factory=list)  # places that must not be found empty


def remembered_roots(ledger: Ledger) -> list[Root]:
    return [Root(place, pattern, given) for place, pattern, given in ledger.places.roots()]


def update_scope(ledger: Ledger, paths: Sequence[Path | str]) -> Scope:
    """
    Args:
        paths: as the user gives them; none: all that the index remembers.

    Raises:
        UsageError: a path is not there, and was not.
    """
    known = remembered_roots(ledger)
    return _named_scope(ledger, known, paths) if paths else _whole_scope(ledger, known)


def _whole_scope(ledger: Ledger, known: list[Root]) -> Scope:
    if not known:
        raise UsageError(
            "the index does not remember the paths that it was built from; name them behind "
            f"'hornbeam update --index {ledger.index}'"
        )
    folders = _folders(ledger, known)
    scope = Scope()
    for root in known:
        if root.place in folders and not os.path.isdir(root.place):
            raise UsageError(
                f"'{root.given}', which the index was built from, is not there ({root.place}); bring it "
                f"back, or let go of its documents with 'hornbeam delete --index {ledger.index} {root.place}'"
            )
        scope.places.append(root.place)
        if root.place in folders:
            scope.guarded.append(root.place)
        if not any(_walks(other, root) for other in known):
            scope.paths += _expanded(root)
    return scope


def _named_scope(ledger: Ledger, known: list[Root], paths: Sequence[Path | str]) -> Scope:
    scope = Scope()
    for path in paths:
        place = canonical(str(path))
        if not os.path.lexists(place) and any(is_below(source, place) for source, *_ in ledger.sources()):
            scope.places.append(place)  # it was there: all of it is gone
            continue
        (root,) = roots_of([path])
        scope.places.append(root.place)
        scope.paths += root.expand()
        same = (root.place, root.pattern)
        if not any((k.place, k.pattern) == same or (not k.pattern and k.covers(root.place)) for k in known):
            scope.new_roots.append(root)
    return scope


def _expanded(root: Root) -> list[Path]:
    """Nothing where a file is gone or a pattern matches no more."""
    try:
        return root.expand()
    except UsageError:
        return []


def _folders(ledger: Ledger, roots: list[Root]) -> set[str]:
    """Places of those roots that have held documents below them."""
    places = {root.place for root in roots}
    found: set[str] = set()
    for source, *_ in ledger.sources():
        found |= {place for place in places - found if source.startswith(place.rstrip("/") + "/")}
    return found


def _walks(other: Root, root: Root) -> bool:
    """Whether reading `other` reads all of `root`."""
    if other == root or other.pattern or not other.covers(root.place) or other.place == root.place:
        return False
    below = os.path.relpath(root.place, other.place)
    return not any(part.startswith(".") for part in Path(below, root.pattern).parts)
