"""The staged rows of documents, kept between builds: an update stages only what has changed.

    INDEX/staged/<name>/            a part: the rows of some documents, in the files that `staging` names
        documents.parquet           (document_id, fingerprint)
        part.json                   format, what the rows were made with, checksum of each file

A fingerprint covers all that a document's rows follow from. Parts are never changed: a document whose
fingerprint is another one is staged anew, into a new part, and its old rows count no more. They go when parts
are put together. Everything here can be made again from the ledger, so what is damaged is dropped.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from hornbeam.records import content_id
from hornbeam.resolve.staging import DOCUMENTS, STAGED, staged_schema
from hornbeam.store.disk import file_checksum, sync_directory, sync_file
from hornbeam.store.table_files import TableWriter

_FORMAT = 1
_DESCRIPTION = "part.json"
#: More parts than this are put together, but for the largest, unless too many of its documents are gone.
_MOST_PARTS = 8
_MOST_GONE = 0.25

#: (name of the part, document id): where the rows of a document that count lie.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    directory: Path
    fingerprints: dict[str, str]  # by document id

    @property
    def name(self) -> str:
        return self.directory.name


@dataclass(slots=True)
class StagedParts:
    """The parts of one index. One process writes: the holder of the index's `write_lock`.

    Args:
        folder: `INDEX/staged`; made when there is something to keep.
        made_with: what all rows depend on beside their document; parts of another one are of no use.
    """

    folder: Path
    made_with: str
    say: Callable[[str], None] = lambda line: None
    parts: list[Part] = field(default_factory=list)

    def open(self) -> None:
        """Find the parts; those of no use are removed, damaged ones with a word."""
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else []:
            part = self._read(path)
            if part is None:
                shutil.rmtree(path)
            else:
                self.parts.append(part)

    def _read(self, path: Path) -> Part | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if path.name.startswith("."):
            return None  # left by a process that was killed
        try:
            said = json.loads((path / _DESCRIPTION).read_text("utf-8"))
            if (said["format"], said["made_with"]) != (_FORMAT, self.made_with):
                return None
            if any(file_checksum(path / name) != checksum for name, checksum in said["files"].items()):
                raise ValueError("its bytes are not those that were written")
            table = pq.read_table(path / f"{DOCUMENTS}.parquet")
            pairs = zip(table["document_id"].to_pylist(), table["fingerprint"].to_pylist(), strict=True)
            return Part(path, dict(pairs))
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            self.say(f"consolidate: {path} is damaged ({error}); its documents are staged again")
            return None

    def has(self, document_id: str, fingerprint: str) -> bool:
        return any(part.fingerprints.get(document_id) == fingerprint for part in self.parts)

    def places(self, fingerprints: Mapping[str, str]) -> set[Place]:
        """Where the rows of documents, by id, lie; each once."""
        found: set[Place] = set()
        left = dict(fingerprints)
        for part in self.parts:
            here = [d for d, fingerprint in part.fingerprints.items() if left.get(d) == fingerprint]
            found.update((part.name, document) for document in here)
            for document in here:
                del left[document]
        return found

    def add(self, written: Path) -> Part:
        """Keep a folder of staged files, and give it its name; durable on return.

        Args:
            written: on the same file system; it is moved.
        """
        files = {path.name: file_checksum(path) for path in sorted(written.iterdir())}
        said = {"format": _FORMAT, "made_with": self.made_with, "files": files}
        (written / _DESCRIPTION).write_text(json.dumps(said, indent=2) + "\n", "utf-8")
        for path in written.iterdir():
            sync_file(path)
        sync_file(written)
        self.folder.mkdir(exist_ok=True)
        target = self.folder / content_id("", self.made_with, *files.values())
        if target.exists():  # the same rows
            shutil.rmtree(written)
        else:
            written.rename(target)
        sync_directory(self.folder)
        part = self._read(target)
        assert part is not None, f"{target} was just written"
        self.parts = [*(other for other in self.parts if other.name != part.name), part]
        return part

    def tidy(self, counting: Collection[Place]) -> None:
        """Put parts together when there are many, or much in the largest counts no more."""
        if not self.parts:
            return
        largest = max(self.parts, key=lambda part: (len(part.fingerprints), part.name))
        counts = sum((largest.name, document) in counting for document in largest.fingerprints)
        worn = counts < (1 - _MOST_GONE) * len(largest.fingerprints)
        if worn or len(self.parts) > _MOST_PARTS:
            self._put_together([p for p in self.parts if worn or p is not largest], counting)

    def _put_together(self, parts: list[Part], counting: Collection[Place]) -> None:
        building = self.folder / f".together-{os.getpid()}"
        building.mkdir()
        kept = {part.name: [d for d in part.fingerprints if (part.name, d) in counting] for part in parts}
        for name in (*STAGED, DOCUMENTS):
            with TableWriter(building / f"{name}.parquet", staged_schema(name)) as writer:
                for part in parts:
                    for batch in _rows_of(part.directory / f"{name}.parquet", kept[part.name]):
                        writer.write_batch(batch)
        self.parts = [part for part in self.parts if part not in parts]
        if any(kept.values()):
            self.add(building)
        else:
            shutil.rmtree(building)
        names = {part.name for part in self.parts}
        for part in parts:
            if part.name not in names:
                shutil.rmtree(part.directory)
        sync_directory(self.folder)


def _rows_of(path: Path, documents: list[str]) -> Iterator[Any]:
    """Record batches of the rows of some documents."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = pa.array(documents, pa.string())
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield batch.filter(pc.is_in(batch["document_id"], value_set=wanted))


@cache
def staging_code() -> str:
    """Hash of the source text of this package: rows that other code has staged are not taken over."""
    digest = sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
