"""Batches that overlap in one extraction: each gets what is its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hornbeam.distributed.overlapping import OverlappingBatches
from hornbeam.errors import ModelError
from hornbeam.extract.result import ChunkExtraction, ChunkVerification, FoundEntity, FoundRelation
from hornbeam.extract.verification import Chunk, Outcome

FACT = ChunkExtraction(
    entities=(FoundEntity(name="a", type="thing", confidence=1.0, spans=((0, 1),)),),
    relations=(FoundRelation(head=0, type="near", tail=0, confidence=1.0),),
)


class Windowed:
    """An extraction with a window: it gives the oldest chunk out when no more is there or the window is full.

    Args:
        verifying: a chunk with a fact is given out twice.
    """

    def __init__(self, window: int, *, verifying: bool = False) -> None:
        self.window = window
        self.verifying = verifying
        self.threads: set[int] = set()
        self.fullest = 0
        self.hold = threading.Event()
        self.hold.set()

    def __call__(
        self, chunks: Iterable[Chunk], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Outcome]]:
        self.threads.add(threading.get_ident())
        source = iter(chunks)
        flying: list[Chunk] = []
        while True:
            while len(flying) < self.window and (chunk := next(source, None)) is not None:
                flying.append(chunk)
            if not flying:
                return
            self.hold.wait(30)
            self.fullest = max(self.fullest, len(flying))
            chunk = flying.pop(0)
            if chunk.text == "broken":
                raise ModelError("the model is gone")
            has_fact = chunk.text == "fact"
            if chunk.extraction is None:
                yield chunk.key, FACT if has_fact else ChunkExtraction()
            if self.verifying and (has_fact or chunk.extraction is not None):
                yield chunk.key, ChunkVerification(relations=(0.5,))


def batch(name: str, number: int, text: str = "") -> list[Chunk]:
    return [Chunk(f"{name}{place}", text) for place in range(number)]


def test_every_batch_gets_its_own_outcomes() -> None:
    extraction = Windowed(7)
    batches = OverlappingBatches(extraction, verifying=False)
    given = [batch(f"{name}-", size) for name, size in enumerate((5, 1, 0, 20, 3, 8))]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(batches.run, given))

    assert [sorted(key for key, _ in one) for one in found] == [
        sorted(chunk.key for chunk in one) for one in given
    ]
    assert len(extraction.threads) == 1
    assert threading.get_ident() not in extraction.threads


def test_a_batch_begins_before_the_one_before_it_ends() -> None:
    extraction = Windowed(8)
    extraction.hold.clear()
    batches = OverlappingBatches(extraction, verifying=False)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(batches.run, batch("a", 4))
        second = threads.submit(batches.run, batch("b", 4))
        while len(batches._batch_of) < 8:
            time.sleep(0.001)
        extraction.hold.set()
        assert len(first.result(30)) == len(second.result(30)) == 4

    # The four of one batch were out, and at least three of the other came before these were done.
    assert extraction.fullest > 4


def test_a_fact_is_waited_for_until_it_is_verified() -> None:
    batches = OverlappingBatches(Windowed(3, verifying=True), verifying=True)

    found = batches.run([Chunk("plain", ""), Chunk("fact", "fact"), Chunk("known", "", FACT)])

    assert [(key, type(outcome)) for key, outcome in found] == [
        ("plain", ChunkExtraction),
        ("fact", ChunkExtraction),
        ("fact", ChunkVerification),
        ("known", ChunkVerification),
    ]


def test_a_failure_reaches_every_batch_under_way_and_every_later_one() -> None:
    extraction = Windowed(2)
    batches = OverlappingBatches(extraction, verifying=False)
    with ThreadPoolExecutor(2) as threads:
        broken = threads.submit(batches.run, batch("a", 30, "broken"))
        with pytest.raises(ModelError, match="the model is gone"):
            broken.result(30)
    with pytest.raises(ModelError, match="the model is gone"):
        batches.run(batch("b", 3))
