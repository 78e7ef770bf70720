"""Files to documents with their chunks, by a Ray Data pipeline.

Ray Data fits here: a file's documents follow from the file, so what a dead process had read is read again by
another one, and a task without a state needs no model. Groups of files are pipelines of their own, so that
their number is not held in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from hornbeam.corpus import Chunker, CutDocument
from hornbeam.corpus.readers import read_file
from hornbeam.corpus.sources import SourceFile, walk
from hornbeam.distributed.failures import explained
from hornbeam.distributed.messages import pack_item, unpack_item
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.pipeline.reading import Item
from hornbeam.records import Document, Rejection
from hornbeam.settings import ChunkSettings, CorpusSettings, RaySettings

#: Files of one pipeline, and of one task of it.
_FILES, _FILES_OF_TASK = 8192, 64
#: What a task hands on at once, in bytes of its items.
_BYTES_AT_ONCE = 1 << 20
#: Ray Data's blocks; it reckons with its shared memory in these.
_BLOCK_BYTES = 16 << 20

_FILE = pa.schema(
    [("path", pa.binary()), ("source", pa.string()), ("known", pa.string()), ("rejection", pa.string())]
)
_ITEM = pa.schema([("item", pa.large_binary())])


def read_by_ray(
    ray_data: Any,
    paths: Sequence[Path],
    known_digest: Callable[[str], str | None],
    tokenizer: Path | None,
    corpus: CorpusSettings,
    chunk: ChunkSettings,
    settings: RaySettings,
) -> Iterator[Item]:
    """As `read_changed`, in the same order, and documents come with their chunks.

    Args:
        ray_data: the module `ray.data`, of a connected Ray.
        tokenizer: directory of the model's, here and on every machine; None: the embedded model's.

    Raises:
        HornbeamError: a task cannot read at all.
    """
    context = ray_data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_options.preserve_order = True
    context.target_max_block_size = _BLOCK_BYTES
    for files in _groups(walk(paths, corpus.follow_links)):
        tables = [
            _table(files[place : place + _FILES_OF_TASK], known_digest)
            for place in range(0, len(files), _FILES_OF_TASK)
        ]
        dataset = ray_data.from_arrow(tables).map_batches(
            read_and_cut,
            batch_size=None,
            batch_format="pyarrow",
            fn_kwargs={"tokenizer": tokenizer, "corpus": corpus, "chunk": chunk},
            num_cpus=1,
            compute=ray_data.TaskPoolStrategy(size=settings.readers),
        )
        yield from _items(dataset)


def read_and_cut(
    files: pa.Table, *, tokenizer: Path | None, corpus: CorpusSettings, chunk: ChunkSettings
) -> Iterator[pa.Table]:
    """A task of the pipeline: a table of files in, tables of packed items out, in order.

    Raises:
        ModelError: the tokenizer is not on this machine.
    """
    chunker = Chunker(_tokenizer(tokenizer), chunk.max_tokens, chunk.overlap_tokens)
    waiting: list[bytes] = []
    size = 0
    for row in files.to_pylist():
        for item in _read(row, corpus):
            waiting.append(pack_item(_cut(item, chunker)))
            size += len(waiting[-1])
            if size >= _BYTES_AT_ONCE:
                yield pa.table({"item": waiting}, schema=_ITEM)
                waiting, size = [], 0
    yield pa.table({"item": waiting}, schema=_ITEM)


def _groups(files: Iterable[SourceFile | Rejection]) -> Iterator[list[SourceFile | Rejection]]:
    """A file that is met again comes in a later group: by then it is known what was in it."""
    group: list[SourceFile | Rejection] = []
    sources: set[str] = set()
    for file in files:
        source = file.source if isinstance(file, SourceFile) else ""
        if group and (len(group) >= _FILES or source in sources):
            yield group
            group, sources = [], set()
        group.append(file)
        if source:
            sources.add(source)
    if group:
        yield group


def _table(files: Sequence[SourceFile | Rejection], known_digest: Callable[[str], str | None]) -> pa.Table:
    rows = [
        {"path": b"", "source": file.path, "known": None, "rejection": file.reason}
        if isinstance(file, Rejection)
        else {
            # A name need not be Unicode.
            "path": os.fsencode(file.path),
            "source": file.source,
            "known": known_digest(file.source),
            "rejection": None,
        }
        for file in files
    ]
    return pa.Table.from_pylist(rows, schema=_FILE)


def _read(row: dict[str, Any], corpus: CorpusSettings) -> Iterator[Item]:
    if row["rejection"] is not None:
        yield Rejection(row["source"], row["rejection"])
    else:
        file = SourceFile(Path(os.fsdecode(row["path"])), row["source"])
        yield from read_file(file, corpus, row["known"])


def _cut(item: Item, chunker: Chunker) -> Item:
    if not isinstance(item, Document):
        return item
    chunks = tuple(chunker.chunk(item))
    return CutDocument(
        item.document_id, item.source, item.title, item.text, item.language, item.sources, chunks
    )


@cache
def _tokenizer(directory: Path | None) -> DirectoryTokenizer:
    """Read once in every process."""
    return DirectoryTokenizer(embedded_model_directory() if directory is None else directory)


def _items(dataset: Any) -> Iterator[Item]:
    from ray.exceptions import RayError

    try:
        for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1):
            for payload in table.column("item").to_pylist():
                yield unpack_item(payload)
    except RayError as error:
        raise explained(error, "reading failed") from error
