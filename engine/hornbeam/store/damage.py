"""Files of an index that are missing or damaged: one line that names the file and what mends it."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.errors import HornbeamError, StoreError
from hornbeam.store.disk import file_checksum

if TYPE_CHECKING:
    from hornbeam.store.versions import Version

#: Not the file's own fault: it is there and whole, and nothing would be mended.
_NOT_DAMAGE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
#: Files that one line names, at most.
_NAMED = 3
#: Versions that an error of this process has led to look through, in vain: once is enough, they may be large.
_FOUND_SOUND: set[Path] = set()


def repair_hint(index: Path) -> str:
    return f"run 'hornbeam audit --index {index} --repair'"


def index_of(path: Path) -> Path:
    """The index directory that a file of a version, or a version's folder, lies in."""
    for folder in path.parents:
        if folder.name == "versions":
            return folder.parent
    return path.parent


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever is raised inside comes of reading `path`, a file or folder of a version.

    Raises:
        StoreError: it is missing, damaged, or may not be read.
    """
    try:
        yield
    except HornbeamError:
        raise
    # numpy, pyarrow, faiss, zipfile and json raise anything, down to SystemError, on bytes that they do not
    # expect; a damaged length makes them ask for more memory than there is.
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> StoreError:
    if isinstance(error, FileNotFoundError) or not path.exists():
        return StoreError(f"{path} is missing; {repair_hint(index_of(path))}")
    if isinstance(error, OSError) and error.errno in _NOT_DAMAGE:
        return StoreError(f"{path} cannot be read: {os.strerror(error.errno or 0)}")
    if not os.access(path, os.R_OK, effective_ids=True):  # libraries' own errors do not tell
        return StoreError(f"{path} cannot be read: {os.strerror(errno.EACCES)}")
    said = (str(error).strip().splitlines() or [""])[0] or type(error).__name__
    return StoreError(f"{path} is damaged ({said}); {repair_hint(index_of(path))}")


def damaged_files(version: Version, *, sums: bool = True) -> Iterator[tuple[str, str]]:
    """(file, what is wrong with it) of each file that is not what the manifest says.

    Args:
        sums: compare contents, not only that they are there and of the right size.
    """
    for name, said in sorted(version.manifest["files"].items()):
        path = version.directory / name
        try:
            size = path.stat().st_size
            if size != said["bytes"]:
                yield name, f"{size} bytes where the manifest says {said['bytes']}"
            elif sums and file_checksum(path) != said["sha256"]:
                yield name, "its bytes are not those that were written (SHA-256 differs)"
        except FileNotFoundError:
            yield name, "missing"
        except OSError as error:
            yield name, f"cannot be read: {error.strerror or error}"


def check_sizes(version: Version, folders: Collection[str]) -> None:
    """The files in these folders of a version are there, as long as they were: what is mapped into memory and
    has lost its end kills the process that reads it.

    Raises:
        StoreError: names those that are not.
    """
    _refuse(
        version, [each for each in damaged_files(version, sums=False) if each[0].partition("/")[0] in folders]
    )


@contextmanager
def naming_damage(version: Version, *, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """An error inside that nobody foresaw may come of a damaged file: then it is named.

    Args:
        but: exceptions that were foreseen.

    Raises:
        StoreError: a file is not what the manifest says; else the error itself.
    """
    try:
        yield
    except HornbeamError:
        raise
    except Exception as error:
        if isinstance(error, but):
            raise
        if version.directory not in _FOUND_SOUND:
            try:
                _refuse(version, list(damaged_files(version)))
            except StoreError as damage:
                raise damage from error
            _FOUND_SOUND.add(version.directory)
        raise


def _refuse(version: Version, damaged: list[tuple[str, str]]) -> None:
    if not damaged:
        return
    named = "; ".join(f"{version.directory / name}: {problem}" for name, problem in damaged[:_NAMED])
    more = f"; and {len(damaged) - _NAMED} more files" if len(damaged) > _NAMED else ""
    raise StoreError(f"{named}{more}; {repair_hint(index_of(version.directory))}")
