"""Chunks in batches to workers that may die: every chunk's result comes once.

A batch belongs to one worker until its result is here or the worker is lost; then another one does it. What
was on its way to a lost worker is never looked at again, so nothing comes twice.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol

from hornbeam.distributed.messages import pack_chunks, unpack_outcomes
from hornbeam.errors import ModelError
from hornbeam.extract.result import ChunkExtraction, ChunkVerification, Reason
from hornbeam.extract.verification import Chunk, Outcome
from hornbeam.records import ChunkState

#: How often a batch may be lost together with others before it is tried alone.
_SUSPECTED_FROM = 2
#: How often one chunk alone may take its worker with it.
_ALONE = 2
#: Seconds between two looks at the request to stop, while nothing comes.
_LOOK_UP_S = 1.0

Worker = Hashable
Ticket = Hashable


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of an answer: the worker is gone."""

    reason: str


class Fleet(Protocol):
    """Processes that extract, somewhere."""

    def start(self) -> tuple[Worker, Ticket]:
        """A new worker, and the ticket of what it says when it is there."""
        ...

    def submit(self, worker: Worker, chunks: bytes) -> Ticket: ...

    def wait(self, tickets: Collection[Ticket], seconds: float) -> list[tuple[Ticket, bytes | Lost]]:
        """The answers that have come, waiting for the first at most so long.

        Raises:
            HornbeamError: a worker cannot do what it was started for, and another one could not either.
        """
        ...

    def stop(self, worker: Worker) -> None:
        """It is lost, or no longer needed."""
        ...


@dataclass(slots=True, eq=False)
class _Batch:
    chunks: list[Chunk]
    lost: int = 0

    @property
    def suspect(self) -> bool:
        return self.lost >= _SUSPECTED_FROM


@dataclass(slots=True)
class PoolLimits:
    """
    Args:
        batch: chunks in a batch.
        ahead: batches that a worker has at once.
        losses: workers lost without a batch done between them, at most.
        start_timeout_s: until the first worker must be there.
    """

    workers: int
    batch: int
    ahead: int
    losses: int
    start_timeout_s: float


@dataclass(slots=True)
class Pool:
    """
    Args:
        say: takes a line for the user.
        stopping: whether no more is to be begun; what is under way is waited for.
    """

    fleet: Fleet
    limits: PoolLimits
    say: Callable[[str], None]
    stopping: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    _starting: dict[Ticket, Worker] = field(default_factory=dict)
    _work: dict[Worker, dict[Ticket, _Batch]] = field(default_factory=dict)  # of those that are there
    _again: deque[_Batch] = field(default_factory=deque)
    _lost_in_a_row: int = 0
    _exhausted: bool = False

    def run(
        self, chunks: Iterable[Chunk], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Outcome]]:
        """The chunks' outcomes, in any order. Takes no more chunks than the workers have room for, and starts
        no worker where there is none.

        Raises:
            ModelError: no worker came up in time, or one after the other was lost.
        """
        source = iter(chunks)
        first = next(source, None)
        if first is None:
            return
        source = chain([first], source)
        self._exhausted = False
        began = self.clock()
        for _ in range(self.limits.workers - len(self._work) - len(self._starting)):
            self._start()
        while True:
            if self.stopping():
                self._exhausted = True
                self._again.clear()
            else:
                self._fill(source)
            under_way = sum(
                len(batch.chunks) for batches in self._work.values() for batch in batches.values()
            )
            if self._exhausted and not under_way and not self._again:
                return
            on_progress(under_way)
            tickets = [*self._starting, *chain.from_iterable(self._work.values())]
            for ticket, answer in self.fleet.wait(tickets, _LOOK_UP_S):
                yield from self._take(ticket, answer)
            if not self._work and self.clock() - began > self.limits.start_timeout_s:
                raise ModelError(
                    f"ray: no worker was there after {self.limits.start_timeout_s:.0f} s: are other jobs on "
                    "the cluster? (ray.start_timeout_s)"
                )
            if self._work:
                began = self.clock()

    def close(self) -> None:
        for worker in (*self._work, *self._starting.values()):
            self.fleet.stop(worker)
        self._work.clear()
        self._starting.clear()

    def _start(self) -> None:
        worker, ticket = self.fleet.start()
        self._starting[ticket] = worker

    def _fill(self, source: Iterator[Chunk]) -> None:
        """Give batches out, the least loaded worker first, as long as there is room."""
        while self._work:
            worker, has = min(self._work.items(), key=lambda item: len(item[1]))
            alone = any(batch.suspect for batch in self._again)
            room = not has if alone else len(has) < self.limits.ahead
            if not room or any(batch.suspect for batch in has.values()):
                return
            batch = self._next(source, alone=alone)
            if batch is None:
                return
            has[self.fleet.submit(worker, pack_chunks(batch.chunks))] = batch

    def _next(self, source: Iterator[Chunk], *, alone: bool) -> _Batch | None:
        if self._again:
            batch = next(batch for batch in self._again if batch.suspect is alone)
            self._again.remove(batch)
            return batch
        if self._exhausted:
            return None
        chunks = list(islice(source, self.limits.batch))
        self._exhausted = len(chunks) < self.limits.batch
        return _Batch(chunks) if chunks else None

    def _take(self, ticket: Ticket, answer: bytes | Lost) -> Iterator[tuple[str, Outcome]]:
        if ticket in self._starting:
            worker = self._starting.pop(ticket)
            if isinstance(answer, Lost):
                self._replace(worker, answer)
            else:
                self._work[worker] = {}
            return
        worker = next((worker for worker, has in self._work.items() if ticket in has), None)
        if worker is None:
            return  # of a worker that was lost meanwhile: others do it
        if isinstance(answer, Lost):
            yield from self._lose(worker, answer)
            return
        batch = self._work[worker].pop(ticket)
        outcomes = unpack_outcomes(answer)
        self._check(batch, outcomes)
        self._lost_in_a_row = 0
        yield from outcomes

    def _check(self, batch: _Batch, outcomes: list[tuple[str, Outcome]]) -> None:
        asked = sorted(chunk.key for chunk in batch.chunks)
        if sorted({key for key, _ in outcomes}) != asked:
            raise ModelError(
                f"ray: a worker was asked about {len(asked)} chunks and answered about others; are all "
                "machines of the same version?"
            )

    def _lose(self, worker: Worker, lost: Lost) -> Iterator[tuple[str, Outcome]]:
        batches = list(self._work.pop(worker).values())
        was_suspect = len(batches) == 1 and batches[0].suspect
        for batch in batches:
            batch.lost += 1
        if was_suspect:
            yield from self._blame(batches[0], lost)
        else:
            self._again.extendleft(reversed(batches))
        self._replace(worker, lost)

    def _blame(self, batch: _Batch, lost: Lost) -> Iterator[tuple[str, Outcome]]:
        """A batch that took its worker with it while it was alone: its halves are tried, one chunk fails."""
        if len(batch.chunks) > 1:
            middle = len(batch.chunks) // 2
            halves = (batch.chunks[:middle], batch.chunks[middle:])
            self._again.extend(_Batch(half, _SUSPECTED_FROM) for half in halves)
        elif batch.lost < _SUSPECTED_FROM + _ALONE:
            self._again.append(batch)
        else:
            (chunk,) = batch.chunks
            yield chunk.key, failed(chunk, f"every worker that was given the chunk was lost: {lost.reason}")

    def _replace(self, worker: Worker, lost: Lost) -> None:
        self.fleet.stop(worker)
        self._lost_in_a_row += 1
        if self._lost_in_a_row > self.limits.losses:
            raise ModelError(
                f"ray: {self._lost_in_a_row} workers were lost without a batch done between them, the last "
                f"with: {lost.reason}; what was finished is kept, run again to go on (ray.losses)"
            )
        self.say(f"ray: a worker was lost ({lost.reason}); its chunks go to others, and a new one is started")
        self._start()


def failed(chunk: Chunk, detail: str) -> Outcome:
    """The outcome of a chunk that nobody could ask about: the next run tries it again."""
    if chunk.extraction is None:
        return ChunkExtraction(state=ChunkState.FAILED, reasons=(Reason.MODEL_ERROR,), detail=detail[:500])
    return ChunkVerification(
        relations=(None,) * len(chunk.extraction.relations),
        attributes=(None,) * len(chunk.extraction.attributes),
        detail=detail[:500],
    )
