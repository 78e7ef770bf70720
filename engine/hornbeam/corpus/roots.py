"""The paths that an index is built from, in a form that means the same in every working directory."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hornbeam.corpus.sources import check_paths


@dataclass(frozen=True, slots=True)
class Root:
    """A file, a folder, or a pattern below a folder."""

    place: str  # absolute, links on the way resolved; of a pattern, what stands before its first wildcard
    pattern: str  # what follows there; "" for a file or folder
    given: str  # `place` as the user wrote it

    def covers(self, source: str) -> bool:
        """Whether a source (an absolute path, or `path#record`) is at or below the place."""
        return is_below(source, self.place)

    def shown(self, source: str) -> str:
        """A source below the place as the user would write it."""
        rest = source[len(self.place.rstrip("/")) :]
        if rest.startswith("/"):
            return str(Path(self.given, rest[1:]))
        return str(Path(self.given)) + rest

    def expand(self) -> list[Path]:
        """The files and folders that it means now.

        Raises:
            UsageError: none is there.
        """
        return check_paths(
            [os.path.join(glob.escape(self.place), self.pattern) if self.pattern else self.place]
        )


def roots_of(paths: Sequence[Path | str]) -> list[Root]:
    """
    Raises:
        UsageError: a path does not exist, or a pattern matches nothing.
    """
    check_paths(paths)
    return [_root(str(path)) for path in paths]


def canonical(path: str) -> str:
    """The absolute path: links are resolved on the way, and at the end if it leads to a folder. A link to a
    file stays itself: two names in a folder are two sources."""
    if os.path.isdir(path):
        return os.path.realpath(path)
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def is_below(source: str, place: str) -> bool:
    """Whether `source` is `place`, a record of it, or below it."""
    rest = source.removeprefix(place.rstrip("/"))
    return rest != source and rest[:1] in ("", "/", "#")


class ShownSources:
    """Absolute sources as the user would write them, by the first root that covers each.

    A root whose written form means another place already is shown by its absolute path.
    """

    def __init__(self, roots: Iterable[Root]) -> None:
        self._roots: list[Root] = []
        places: dict[str, str] = {}
        for root in roots:
            if places.setdefault(root.given, root.place) == root.place:
                self._roots.append(root)
            else:
                self._roots.append(Root(root.place, root.pattern, root.place))

    def __call__(self, source: str) -> str:
        for root in self._roots:
            if root.covers(source):
                return root.shown(source)
        return source


def _root(given: str) -> Root:
    if os.path.lexists(given) or not glob.has_magic(given):
        return Root(_decoded(canonical(given)), "", _decoded(given))
    parts = Path(given).parts
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    folder = str(Path(*parts[:fixed]))
    return Root(_decoded(canonical(folder)), str(Path(*parts[fixed:])), _decoded(folder))


def _decoded(path: str) -> str:
    """As the corpus writes sources."""
    return os.fsencode(path).decode("utf-8", "replace")
