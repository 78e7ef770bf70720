"""The tasks that read and cut, in this process: what they bring is what the local executor reads and cuts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hornbeam.corpus import Chunker, CutDocument, SeenFile, read_changed
from hornbeam.distributed import cluster, reading
from hornbeam.errors import UsageError
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.pipeline.reading import Item
from hornbeam.records import Document, Rejection
from hornbeam.settings import ChunkSettings, CorpusSettings, RaySettings

CHUNK = ChunkSettings(max_tokens=32, overlap_tokens=8)


class InProcess:
    """`ray.data` as far as it is used, one task after the other."""

    class DataContext:
        def __init__(self) -> None:
            self.execution_options = type("Options", (), {})()

        @classmethod
        def get_current(cls) -> InProcess.DataContext:
            return cls()

    def __init__(self) -> None:
        self.pipelines: list[list[pa.Table]] = []

    def TaskPoolStrategy(self, size: int) -> int:
        return size

    def from_arrow(self, tables: list[pa.Table]) -> InProcess:
        self.pipelines.append(tables)
        return self

    def map_batches(self, task: Callable[..., Iterator[pa.Table]], **options: Any) -> InProcess:
        self._task, self._options = task, options["fn_kwargs"]
        return self

    def iter_batches(self, **options: Any) -> Iterator[pa.Table]:
        for table in self.pipelines[-1]:
            yield from self._task(table, **self._options)


def read(
    paths: list[Path],
    known: Callable[[str], str | None] = lambda source: None,
    ray_data: InProcess | None = None,
) -> list[Item]:
    return list(
        reading.read_by_ray(
            ray_data or InProcess(), paths, known, None, CorpusSettings(), CHUNK, RaySettings()
        )
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(5):
        text = " ".join(f"Person {number} met person {other} in Oslo." for other in range(20))
        (folder / f"{number}.txt").write_text(text, "utf-8")
    (folder / "records.jsonl").write_text('{"text": "One."}\n{"text": "Two."}\nno json\n', "utf-8")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "gone.txt").symlink_to(folder / "nowhere")
    with open(os.fsencode(folder) + b"/no-unicode-\xff.txt", "wb") as file:
        file.write(b"A name of bytes.")
    return folder


def test_all_is_read_in_order_and_cut_as_it_would_be_here(corpus: Path) -> None:
    chunker = Chunker(DirectoryTokenizer(embedded_model_directory()), CHUNK.max_tokens, CHUNK.overlap_tokens)

    found = read([corpus])

    expected = list(read_changed([corpus], CorpusSettings(), lambda source: None))
    assert [type(item) for item in expected].count(Rejection) == 3
    plain = [
        Document(item.document_id, item.source, item.title, item.text, item.language, item.sources)
        if isinstance(item, CutDocument)
        else item
        for item in found
    ]
    assert plain == expected
    documents = [item for item in found if isinstance(item, CutDocument)]
    assert len(documents) == 8
    assert all(list(item.chunks) == chunker.chunk(item) for item in documents)
    assert max(len(item.chunks) for item in documents) > 3


def test_a_file_that_is_as_it_was_is_not_parsed(corpus: Path) -> None:
    digests = {item.source: item.digest for item in read([corpus]) if isinstance(item, SeenFile)}

    found = read([corpus], digests.get)

    assert not [item for item in found if isinstance(item, Document)]
    assert sum(isinstance(item, SeenFile) and item.unchanged for item in found) == len(digests)


def test_files_are_read_in_groups_and_one_that_comes_again_later(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_FILES", 4)
    monkeypatch.setattr(reading, "_FILES_OF_TASK", 2)
    data = InProcess()

    found = read([corpus, corpus / "records.jsonl"], ray_data=data)

    assert [[len(table) for table in group] for group in data.pipelines] == [[2, 2], [2, 2], [1], [1]]
    assert sum(isinstance(item, SeenFile) and item.source.endswith("records.jsonl") for item in found) == 2


def test_much_text_comes_in_pieces(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 500)
    files = reading._table(list(reading.walk([corpus])), lambda source: None)

    tables = list(reading.read_and_cut(files, tokenizer=None, corpus=CorpusSettings(), chunk=CHUNK))

    assert len(tables) > 5


def test_ray_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ray_version", lambda: None)

    with pytest.raises(UsageError, match=r"run \"pip install 'hornbeam\[ray\]'\""):
        cluster.check_installed()
