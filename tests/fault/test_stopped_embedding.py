"""A build that stops while it embeds: the next run encodes what is missing, and ends with the same bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hornbeam.build import Build, BuildReport
from hornbeam.index import encoding, kept_vectors
from hornbeam.organise import communities
from hornbeam.progress import Progress
from hornbeam.schema import load_schema
from support.building import walker, walking_settings
from support.version_by_hand import ListeningWords

PEOPLE = ["Marie Curie", "Pierre Curie", "Lise Meitner", "Ada Lovelace", "Emmy Noether", "Лев Толстой"]
PLACES = ["Warsaw", "Paris", "Vienna", "London", "Göttingen", "Москва", "北京"]


class Stopped(Exception):
    pass


class StoppingWords(ListeningWords):
    """Encodes so many blocks."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.blocks = blocks

    def encode(self, texts: Any, *, batch_size: int = 64) -> NDArray[np.float32]:
        if not self.blocks:
            raise Stopped
        self.blocks -= 1
        return super().encode(texts, batch_size=batch_size)


def run(index: Path, corpus: Path, embedder: ListeningWords) -> BuildReport:
    return Build(
        index, walking_settings(), load_schema("general"), walker(), embedder, Progress(quiet=True)
    ).run([corpus])


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Small blocks, all of which are kept: there are few texts.
    monkeypatch.setattr(kept_vectors, "_LEAST_TEXTS", 1)
    monkeypatch.setattr(encoding, "_ENCODE_BLOCK", 4)
    monkeypatch.setattr(communities, "ENTITIES_A_BLOCK", 4)
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number, (who, where) in enumerate(zip(PEOPLE, PLACES, strict=False)):
        other = PEOPLE[number - 1]
        (folder / f"{number}.txt").write_text(f"{who} met {other} in {where}. They left it in 1911.", "utf-8")
    return folder


def vector_files(index: Path, report: BuildReport) -> dict[str, bytes]:
    assert report.version is not None
    folder = index / "versions" / report.version / "vectors"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_what_was_encoded_before_a_stop_is_not_encoded_again(corpus: Path, tmp_path: Path) -> None:
    undisturbed = ListeningWords()
    whole = run(tmp_path / "whole", corpus, undisturbed)
    index = tmp_path / "index"
    asked: list[str] = []
    stops = 0
    while True:
        embedder = StoppingWords(2)
        try:
            report = run(index, corpus, embedder)
        except Stopped:
            stops += 1
            assert list((index / "encoded").rglob("*.f32"))
        asked += embedder.asked
        if embedder.blocks:
            break

    assert stops > 2
    assert asked == undisturbed.asked
    assert report.version == whole.version
    assert vector_files(index, report) == vector_files(tmp_path / "whole", whole)
    assert not (index / "encoded").exists()
