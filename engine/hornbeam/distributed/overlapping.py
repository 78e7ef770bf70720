"""Batches of chunks that share one model's window: the next one begins before the last one's end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.verification import Chunk, Outcome
from hornbeam.pipeline.executing import Extracting


@dataclass(slots=True, eq=False)
class _Batch:
    left: set[str]  # keys of which something is still to come
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)


class OverlappingBatches:
    """Gives batches that come in many threads to one extraction, which has a thread of its own.

    Args:
        verifying: facts are verified: of a chunk with some, a second outcome comes.
    """

    def __init__(self, extract: Extracting, *, verifying: bool) -> None:
        self._extract = extract
        self._verifying = verifying
        self._chunks: deque[Chunk] = deque()
        self._batch_of: dict[str, _Batch] = {}
        self._came = threading.Condition()
        self._failure: Exception | None = None
        threading.Thread(target=self._work, name="extraction", daemon=True).start()

    def run(self, chunks: Sequence[Chunk]) -> list[tuple[str, Outcome]]:
        """What becomes of the chunks, in the order in which it came. From any thread; the keys of all batches
        that are under way differ.

        Raises:
            Exception: what the extraction raised, in this and every later batch.
        """
        batch = _Batch({chunk.key for chunk in chunks})
        with self._came:
            if self._failure is None:
                self._batch_of |= dict.fromkeys(batch.left, batch)
                self._chunks.extend(chunks)
                self._came.notify()
            if self._failure is not None or not batch.left:
                batch.ended.set()
        batch.ended.wait()
        if batch.left:
            assert self._failure is not None
            raise self._failure
        return batch.outcomes

    def _work(self) -> None:
        try:
            while True:
                with self._came:
                    self._came.wait_for(lambda: self._chunks)
                for key, outcome in self._extract(_Waiting(self._chunks), lambda in_flight: None):
                    self._deliver(key, outcome)
        except Exception as error:  # noqa: BLE001
            # Raised again in the threads that wait.
            with self._came:
                self._failure = error
                for batch in self._batch_of.values():
                    batch.ended.set()

    def _deliver(self, key: str, outcome: Outcome) -> None:
        with self._came:
            batch = self._batch_of[key]
            batch.outcomes.append((key, outcome))
            if self._verifying and isinstance(outcome, ChunkExtraction) and outcome.facts:
                return
            del self._batch_of[key]
            batch.left.discard(key)
            if not batch.left:
                batch.ended.set()


class _Waiting(Iterator[Chunk]):
    """The chunks that are there now. It ends when there is none, and goes on when one has come: whoever has
    others under way asks again."""

    def __init__(self, chunks: deque[Chunk]) -> None:
        self._chunks = chunks

    def __next__(self) -> Chunk:
        try:
            return self._chunks.popleft()
        except IndexError:
            raise StopIteration from None
