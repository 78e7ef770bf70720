"""From the paths that a user gives to the files they mean."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hornbeam.corpus.normalise import one_line
from hornbeam.errors import UsageError
from hornbeam.records import Rejection


@dataclass(frozen=True, slots=True)
class SourceFile:
    path: Path
    source: str  # as shown to the user: the path as given, joined with what is below it


def check_paths(paths: Sequence[Path | str]) -> list[Path]:
    """The existing files and folders that `paths` name, patterns expanded, in the order given.

    Raises UsageError for a path that does not exist or a pattern that matches nothing.
    """
    if not paths:
        raise UsageError("no input paths were given")
    found: list[Path] = []
    for given in paths:
        if os.path.lexists(given):
            found.append(Path(given))
            continue
        if not glob.has_magic(str(given)):
            raise UsageError(f"input path '{given}' does not exist")
        matches = [Path(match) for match in sorted(glob.glob(str(given), recursive=True))]
        if "**" in str(given):  # it matches the folders on the way, too, whose files it matches anyway
            matches = [match for match in matches if not match.is_dir()]
        if not matches:
            raise UsageError(f"input pattern '{given}' matches no file")
        found += matches
    return found


def check_holds_files(paths: Sequence[Path], given: Sequence[Path | str]) -> None:
    """
    Args:
        given: what the user wrote for `paths`.

    Raises:
        UsageError: there is nothing to read at or below any of the paths.
    """
    if next(walk(paths), None) is None:
        named = ", ".join(f"'{path}'" for path in given)
        raise UsageError(
            f"there is no file in {named} (hidden ones are left out, and folders that are an index)"
        )


def walk(
    paths: Sequence[Path], follow_links: Literal["all", "inside", "none"] = "all"
) -> Iterator[SourceFile | Rejection]:
    """The regular files at and below `paths`: sorted within each folder, hidden ones left out.

    Args:
        follow_links: of those below `paths`; a path that is itself a link is always followed.

    Holds the names in the folders on the way down, no more. A folder that cannot be listed, a broken link
    and what is no regular file (a pipe would block for ever) are rejections.
    """
    # By a stack, not by recursion: folders can be nested deeper than Python's stack.
    places = [os.path.realpath(path) for path in paths]
    open_folders: list[tuple[tuple[int, int], Iterator[Path]]] = [((0, 0), iter(paths))]
    while open_folders:
        path = next(open_folders[-1][1], None)
        if path is None:
            open_folders.pop()
            continue
        source = os.fsencode(path).decode("utf-8", "replace")
        if len(open_folders) > 1 and follow_links != "all" and path.is_symlink():
            target = os.path.realpath(path)
            if follow_links == "none":
                yield Rejection(source, "a link (corpus.follow_links=none)")
                continue
            if not any(os.path.commonpath([target, place]) == place for place in places):
                yield Rejection(
                    source,
                    f"a link to {one_line(target)}, outside of what is read (corpus.follow_links=inside)",
                )
                continue
        try:
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                yield SourceFile(path, source)
            elif stat.S_ISDIR(status.st_mode):
                if (path / "ledger.sqlite").is_file():  # an index, this one or another: no documents
                    continue
                identity = (status.st_dev, status.st_ino)
                # A link to a folder that this one is in: all of it is being read already.
                if all(identity != above for above, _ in open_folders):
                    names = sorted(name for name in os.listdir(path) if not name.startswith("."))
                    open_folders.append((identity, map(path.joinpath, names)))
            else:
                yield Rejection(source, "not a regular file")
        except OSError as error:
            broken = isinstance(error, FileNotFoundError) and path.is_symlink()
            yield Rejection(source, "broken link" if broken else f"cannot be read: {error.strerror or error}")
