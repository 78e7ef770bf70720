"""Vectors that outlive a build that is stopped: of millions of texts they take hours.

    INDEX/encoded/<fingerprint of the embedder>/<hash of a block's texts>.f32

A file is a checksum and, after it, the rows: nothing that is damaged is taken for vectors.
A block is what is encoded at once. Equal tables give equal blocks, so a build that is started again finds
those that were done and encodes the others in the same company as an undisturbed one: the same vectors, to
the last bit. What a version holds needs no keeping, so they go when one is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hornbeam.index.embedder import TextEmbedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FOLDER = "encoded"
#: Bytes of the checksum.
_CHECKSUM = 32
#: Fewer texts than this are encoded again sooner than they are looked for.
_LEAST_TEXTS = 64


class KeptVectors:
    """A `TextEmbedder` that keeps the blocks it has encoded. One process writes: the holder of the index's
    `write_lock`.

    Args:
        index: directory of the index.
        say: told once where nothing can be kept; the vectors are made all the same.
    """

    def __init__(self, embedder: TextEmbedder, index: Path, say: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._folder = index / _FOLDER / embedder.fingerprint
        self._say = say
        self._keeps = True
        if self._folder.parent.is_dir():
            for other in self._folder.parent.iterdir():
                if other != self._folder:
                    _remove(other)  # of another embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def meaning(self) -> float:
        return self._embedder.meaning

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        """Unit rows, float32 [len(texts), dimension]: those that are kept, or made now and kept."""
        if len(texts) < _LEAST_TEXTS:
            return self._embedder.encode(texts, batch_size=batch_size)
        path = self._folder / f"{_block_id(texts, batch_size)}.f32"
        vectors = _read(path, (len(texts), self.dimension))
        if vectors is None:
            vectors = self._embedder.encode(texts, batch_size=batch_size)
            if self._keeps:
                self._keep(path, vectors)
        return vectors

    def encode_question(self, text: str) -> NDArray[np.float32]:
        return self._embedder.encode_question(text)

    def _keep(self, path: Path, vectors: NDArray[np.float32]) -> None:
        """Whole or not at all, and durable."""
        written = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = np.ascontiguousarray(vectors, "<f4").tobytes()
            with written.open("wb") as file:
                file.write(_checksum(rows) + rows)
                file.flush()
                os.fsync(file.fileno())
            written.replace(path)
        except OSError as error:
            self._keeps = False
            if written.exists():
                written.unlink()
            self._say(f"embed: vectors are made, but not kept for a run that is stopped: {error}")


def forget_vectors(index: Path) -> None:
    """Drop all that is kept: a version has it, or it is of texts that are to be forgotten."""
    _remove(index / _FOLDER)


def _remove(path: Path) -> None:
    """A folder, or what stands in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _block_id(texts: Sequence[str], batch_size: int) -> str:
    """Which texts are encoded side by side follows from the block and the size of its batches."""
    digest = blake2b(str(batch_size).encode(), digest_size=20)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def _read(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """The vectors of a file; None where it is missing or, by its length or checksum, damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None  # what cannot be read is made again
    rows = data[_CHECKSUM:]
    if len(rows) != 4 * shape[0] * shape[1] or _checksum(rows) != data[:_CHECKSUM]:
        return None
    return np.frombuffer(bytearray(rows), "<f4").reshape(shape)


def _checksum(rows: bytes) -> bytes:
    return blake2b(rows, digest_size=_CHECKSUM).digest()
