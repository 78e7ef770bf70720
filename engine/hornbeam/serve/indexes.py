"""The indexes that are served, each with a reader of the version that is promoted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from hornbeam.opening import open_knowledge_base
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import Settings
from hornbeam.store.versions import Version, current_version_id


@dataclass(frozen=True, slots=True)
class Reader:
    """A version, open and pinned for as long as anyone holds this."""

    kb: KnowledgeBase
    version: Version


class ServedIndex:
    """
    Args:
        opened: how its reader is opened; the reader before it, or one of another index, lends its models.
    """

    def __init__(self, name: str, directory: Path, opened: Callable[[Path, Reader | None], Reader]) -> None:
        self.name = name
        self.directory = directory
        self._open = opened
        self._switching = Lock()
        self._reader: Reader | None = None

    def open(self, beside: Reader | None = None) -> Reader:
        """
        Raises:
            StoreError: the index has no version that can be read.
        """
        with self._switching:
            self._reader = self._open(self.directory, beside)
        return self._reader

    @property
    def reader(self) -> Reader:
        """The newest; hold it for one request, so that the whole of it sees one version."""
        assert self._reader is not None, "it was not opened"
        return self._reader

    def refresh(self) -> bool:
        """Take the promoted version, if it is another; whether it was. Requests under way keep theirs.

        Raises:
            StoreError: it cannot be opened; the one before it stays.
        """
        with self._switching:
            if current_version_id(self.directory) == self.reader.version.version_id:
                return False
            self._reader = self._open(self.directory, self._reader)
            return True


def open_indexes(directories: Mapping[str, Path], settings: Settings) -> dict[str, ServedIndex]:
    """
    Raises:
        StoreError: one of them cannot be opened.
    """

    def opened(directory: Path, beside: Reader | None) -> Reader:
        return Reader(*open_knowledge_base(directory, settings, None if beside is None else beside.kb))

    served: dict[str, ServedIndex] = {}
    beside: Reader | None = None
    for name, directory in directories.items():
        served[name] = ServedIndex(name, directory, opened)
        beside = served[name].open(beside)
    return served
