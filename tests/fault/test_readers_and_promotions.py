"""Readers search while versions are promoted and taken back: no error, each answer from one version."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.settings import RetrieveSettings
from hornbeam.store.promotions import promote
from hornbeam.store.versions import open_current
from support.building import build, update
from support.version_by_hand import HashedWords

QUESTION = "Who met whom in Paris?"
PROMOTIONS = 20


def answer(index: Path) -> tuple[str, str]:
    version = open_current(index)
    found = search(KnowledgeBase.open(version.directory, HashedWords()), QUESTION, RetrieveSettings())
    return version.version_id, str(found.to_json()["items"])


def test_every_answer_is_wholly_from_one_version(tmp_path: Path) -> None:
    corpus, index = tmp_path / "corpus", tmp_path / "index"
    corpus.mkdir()
    (corpus / "a.txt").write_text("Marie Curie met Pierre Curie in Paris.", "utf-8")
    first = build(index, [corpus]).version
    expected = dict([answer(index)])
    (corpus / "b.txt").write_text("Ada met Grace in Paris, and Lise met Otto in Vienna.", "utf-8")
    second = update(index).version
    expected |= dict([answer(index)])
    assert first
    assert second
    assert len(set(expected.values())) == 2
    seen: list[tuple[str, str]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(answer(index))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(PROMOTIONS):
            before = len(seen)
            promote(index, first if number % 2 else second)
            while len(seen) < before + 2 and not any(reader.done() for reader in readers):
                done.wait(0.01)
        done.set()
        for reader in readers:
            reader.result()  # raises what the reader met
    assert len(seen) >= 2 * PROMOTIONS
    assert all(expected[version] == items for version, items in seen)
    assert {version for version, _ in seen} == {first, second}
