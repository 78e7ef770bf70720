"""Staged rows are kept from build to build: what they give is what staging everything gives."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hornbeam.extract.result import ChunkExtraction, FoundEntity, FoundRelation
from hornbeam.records import TABLES, ChunkState
from hornbeam.resolve import staged_parts
from hornbeam.resolve.consolidate import write_graph_tables
from hornbeam.resolve.staged_parts import StagedParts
from hornbeam.resolve.staging import ChunkInput, DocumentInput
from hornbeam.settings import ResolveSettings
from support.version_by_hand import HashedWords

GRAPH_TABLES = [name for name in TABLES if not name.startswith("communit")]

Tables = dict[str, bytes]


def told(number: int, *names: str) -> DocumentInput:
    """A document that says of each name that it knows the next; its fingerprint is all that it says."""
    text = ". ".join(f"{first} knows {second}" for first, second in pairwise(names))
    distinct = list(dict.fromkeys(names))
    found = ChunkExtraction(
        entities=tuple(
            FoundEntity(
                name=name,
                type="person",
                confidence=0.8,
                spans=tuple(match.span() for match in re.finditer(rf"\b{name}\b", text)),
            )
            for name in distinct
        ),
        relations=tuple(
            FoundRelation(
                head=distinct.index(first), type="knows", tail=distinct.index(second), confidence=0.7
            )
            for first, second in pairwise(names)
        ),
    )
    key = f"d{number}"
    chunk = ChunkInput(f"c{number}", key, 0, len(text), text, 9, ChunkState.DONE, "", found)
    return DocumentInput(key, (f"{key}.txt",), "title", text, "en", (chunk,), text)


class Builds:
    """One build after another beside one folder of parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts = self.fresh()
        self.said: list[str] = []
        self.staged: list[str] = []
        self.number = 0

    def fresh(self, made_with: str = "code") -> StagedParts:
        return StagedParts(self.folder / "staged", made_with, lambda line: self.said.append(line))

    def build(self, documents: list[DocumentInput], *, kept: bool = True, made_with: str = "code") -> Tables:
        self.number += 1
        tables, scratch = (self.folder / f"{name}{self.number}" for name in ("tables", "scratch"))
        tables.mkdir()
        scratch.mkdir()
        self.parts = self.fresh(made_with)
        self.parts.open()
        self.staged = []
        write_graph_tables(
            self._given(documents) if kept else iter(documents),
            tables,
            scratch,
            settings=ResolveSettings(),
            schema=None,
            embedder=HashedWords(),
            min_confidence=0.0,
            memory_limit_mib=512,
            kept=self.parts if kept else None,
        )
        return {name: (tables / f"{name}.parquet").read_bytes() for name in GRAPH_TABLES}

    def _given(self, documents: list[DocumentInput]) -> Iterator[DocumentInput]:
        for made in documents:
            known = self.parts.has(made.document_id, made.fingerprint)
            if not known:
                self.staged.append(made.document_id)
            yield DocumentInput(
                made.document_id, made.sources, made.title, made.text, made.language,
                () if known else made.chunks, made.fingerprint, known,
            )  # fmt: skip


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


FIRST = [told(1, "Ada", "Bob"), told(2, "Bob", "Cid", "Ada"), told(3, "Dora", "Eve")]


def test_only_documents_that_are_new_or_other_than_they_were_are_staged(builds: Builds) -> None:
    builds.build(FIRST)
    assert builds.staged == ["d1", "d2", "d3"]
    changed = [FIRST[0], told(2, "Bob", "Eve"), told(4, "Fay", "Ada")]
    tables = builds.build(changed)
    assert builds.staged == ["d2", "d4"]
    assert tables == builds.build(changed, kept=False)
    assert set(tables) == {name for name in TABLES if not name.startswith("communit")}


def test_a_document_that_comes_back_as_it_was_counts_once(builds: Builds) -> None:
    builds.build(FIRST)
    builds.build([told(1, "Ada", "Zoe"), *FIRST[1:]])
    assert builds.build(FIRST) == builds.build(FIRST, kept=False)


def test_an_index_without_documents_has_empty_tables(builds: Builds) -> None:
    builds.build(FIRST)
    assert builds.build([]) == builds.build([], kept=False)
    assert builds.build(FIRST[:1]) == builds.build(FIRST[:1], kept=False)


def test_parts_do_not_pile_up(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_parts, "_MOST_PARTS", 3)
    documents = list(FIRST)
    for number in range(4, 12):
        documents.append(told(number, f"Name{number}", "Ada"))
        builds.build(documents)
        assert builds.staged == ([f"d{number}"] if number > 4 else [d.document_id for d in documents])
        assert len(builds.parts.parts) <= 3
    assert builds.build(documents) == builds.build(documents, kept=False)


def test_rows_that_other_code_or_other_settings_made_are_not_taken_over(builds: Builds) -> None:
    builds.build(FIRST)
    builds.build(FIRST, made_with="other code")
    assert builds.staged == ["d1", "d2", "d3"]
    assert len(list((builds.folder / "staged").iterdir())) == 1


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_part_is_dropped_with_a_word_and_made_again(builds: Builds, damage: str) -> None:
    whole = builds.build(FIRST)
    (path,) = (builds.folder / "staged").glob("*/found_names.parquet")
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif damage == "truncate":
        path.write_bytes(content[:100])
    else:
        path.unlink()
    assert builds.build(FIRST) == whole
    assert builds.staged == ["d1", "d2", "d3"]
    (line,) = builds.said
    assert "is damaged" in line


def test_what_a_killed_process_left_is_removed(builds: Builds) -> None:
    builds.build(FIRST)
    left = builds.folder / "staged" / ".together-1"
    left.mkdir()
    builds.build(FIRST)
    assert not left.exists()
    assert builds.staged == []
