"""Chunks to workers that die: every outcome once, whatever happens."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornbeam.distributed.messages import pack_outcomes, unpack_chunks
from hornbeam.distributed.pool import Lost, Pool, PoolLimits, Ticket, Worker
from hornbeam.errors import ModelError
from hornbeam.extract.result import ChunkExtraction, FoundEntity, Reason
from hornbeam.extract.verification import Chunk
from hornbeam.records import ChunkState


def chunks(number: int) -> list[Chunk]:
    return [Chunk(f"x{place}", f"text {place}") for place in range(number)]


def result(chunk: Chunk) -> ChunkExtraction:
    return ChunkExtraction(
        entities=(FoundEntity(name=chunk.text, type="thing", confidence=1.0, spans=((0, 4),)),)
    )


@dataclass
class PretendFleet:
    """Workers that answer in turn, and die when they are told to.

    Args:
        deaths: at these answers (counted over all workers) the worker dies in place of answering.
        poison: keys of chunks that take their worker with them.
        stillborn: the first so many workers die before they are there.
    """

    deaths: Collection[int] = ()
    poison: Collection[str] = ()
    stillborn: int = 0
    answers: int = 0
    started: int = 0
    peak: int = 0
    dead: set[Hashable] = field(default_factory=set)
    open: dict[int, tuple[int, bytes | None]] = field(default_factory=dict)
    tickets: int = 0

    def start(self) -> tuple[Worker, Ticket]:
        self.started += 1
        return self.started, self._ticket(self.started, None)

    def submit(self, worker: Worker, chunks: bytes) -> Ticket:
        assert worker not in self.dead
        assert isinstance(worker, int)
        ticket = self._ticket(worker, chunks)
        self.peak = max(self.peak, sum(payload is not None for _, payload in self.open.values()))
        return ticket

    def _ticket(self, worker: int, payload: bytes | None) -> int:
        self.tickets += 1
        self.open[self.tickets] = (worker, payload)
        return self.tickets

    def wait(self, tickets: Collection[Ticket], seconds: float) -> list[tuple[Ticket, bytes | Lost]]:
        assert set(tickets) <= self.open.keys()
        if not tickets:
            return []
        ticket = min(number for number in self.open if number in tickets)
        worker, payload = self.open.pop(ticket)
        if payload is None:
            return [(ticket, Lost("it never came up") if worker <= self.stillborn else b"")]
        asked = unpack_chunks(payload)
        self.answers += 1
        if self.answers in self.deaths or any(chunk.key in self.poison for chunk in asked):
            # All that the worker had comes back as lost, as from Ray.
            others = [number for number, (owner, _) in self.open.items() if owner == worker]
            for number in others:
                del self.open[number]
            return [(number, Lost("killed")) for number in (ticket, *others)]
        return [(ticket, pack_outcomes((chunk.key, result(chunk)) for chunk in asked))]

    def stop(self, worker: Worker) -> None:
        self.dead.add(worker)


def pool(fleet: PretendFleet, stopping: Iterable[bool] = (), **limits: int) -> Pool:
    chosen = {"workers": 2, "batch": 3, "ahead": 2, "losses": 8} | limits
    answers = iter(stopping)
    return Pool(
        fleet,
        PoolLimits(**chosen, start_timeout_s=60.0),
        say=lambda line: None,
        stopping=lambda: next(answers, False),
    )


def silent(in_flight: int) -> None:
    pass


class TestWithoutAccidents:
    @given(number=st.integers(0, 60), workers=st.integers(1, 5), batch=st.integers(1, 9))
    def test_every_chunk_has_its_outcome_once(self, number: int, workers: int, batch: int) -> None:
        found = list(pool(PretendFleet(), workers=workers, batch=batch).run(chunks(number), silent))

        assert sorted(key for key, _ in found) == sorted(chunk.key for chunk in chunks(number))
        assert dict(found) == {chunk.key: result(chunk) for chunk in chunks(number)}

    def test_no_worker_is_started_for_nothing(self) -> None:
        fleet = PretendFleet()

        assert list(pool(fleet).run([], silent)) == []
        assert fleet.started == 0

    def test_no_more_is_taken_than_the_workers_have_room_for(self) -> None:
        taken = 0

        def source() -> Iterable[Chunk]:
            nonlocal taken
            for chunk in chunks(100):
                taken += 1
                yield chunk

        fleet = PretendFleet()
        running = pool(fleet, workers=2, batch=3, ahead=2).run(source(), silent)
        next(running)

        assert fleet.peak == 4
        assert taken <= 12

    def test_workers_stay_for_a_second_run(self) -> None:
        fleet = PretendFleet()
        one = pool(fleet)
        list(one.run(chunks(4), silent))
        list(one.run(chunks(4), silent))

        assert fleet.started == 2

    def test_all_workers_are_stopped_at_the_end(self) -> None:
        fleet = PretendFleet()
        one = pool(fleet, workers=3)
        list(one.run(chunks(20), silent))
        one.close()

        assert fleet.dead == {1, 2, 3}


class TestLostWorkers:
    @given(number=st.integers(1, 60), deaths=st.sets(st.integers(1, 30), max_size=7), batch=st.integers(1, 9))
    def test_nothing_is_lost_or_doubled(self, number: int, deaths: set[int], batch: int) -> None:
        fleet = PretendFleet(deaths=deaths)
        found = list(pool(fleet, batch=batch).run(chunks(number), silent))

        assert sorted(key for key, _ in found) == sorted(chunk.key for chunk in chunks(number))
        # Chance may strike one chunk that was already under suspicion and alone: it is tried again next time.
        assert all(
            outcome == result(chunk) or outcome.reasons == (Reason.MODEL_ERROR,)
            for chunk, outcome in ((chunk, dict(found)[chunk.key]) for chunk in chunks(number))
        )

    def test_another_worker_is_started(self) -> None:
        fleet = PretendFleet(deaths={2})
        found = list(pool(fleet).run(chunks(30), silent))

        assert dict(found) == {chunk.key: result(chunk) for chunk in chunks(30)}
        assert fleet.started == 3
        assert len(fleet.dead) == 1

    def test_a_chunk_that_kills_its_workers_fails_alone(self) -> None:
        fleet = PretendFleet(poison={"x7"})
        found = dict(pool(fleet, batch=8).run(chunks(40), silent))

        assert len(found) == 40
        lost = found.pop("x7")
        assert isinstance(lost, ChunkExtraction)
        assert lost.state is ChunkState.FAILED
        assert lost.reasons == (Reason.MODEL_ERROR,)
        assert lost.detail == "every worker that was given the chunk was lost: killed"
        assert found == {chunk.key: result(chunk) for chunk in chunks(40) if chunk.key != "x7"}

    def test_a_run_ends_when_every_worker_dies(self) -> None:
        with pytest.raises(ModelError, match="4 workers were lost without a batch done between them"):
            list(pool(PretendFleet(deaths=range(1, 1000)), losses=3).run(chunks(9), silent))

    def test_a_run_ends_when_no_worker_comes_up(self) -> None:
        with pytest.raises(ModelError, match="it never came up"):
            list(pool(PretendFleet(stillborn=100), losses=5).run(chunks(9), silent))

    def test_a_few_that_do_not_come_up_do_no_harm(self) -> None:
        assert len(list(pool(PretendFleet(stillborn=3)).run(chunks(9), silent))) == 9


class TestWaiting:
    def test_a_cluster_that_is_full_is_not_waited_for_for_ever(self) -> None:
        class Full(PretendFleet):
            def wait(self, tickets: Collection[Ticket], seconds: float) -> list[tuple[Ticket, bytes | Lost]]:
                return []

        times = iter(range(0, 1000, 10))
        waiting = Pool(
            Full(),
            PoolLimits(workers=1, batch=1, ahead=1, losses=1, start_timeout_s=60.0),
            say=lambda line: None,
            stopping=lambda: False,
            clock=lambda: float(next(times)),
        )

        with pytest.raises(ModelError, match="no worker was there after 60 s"):
            list(waiting.run(chunks(1), silent))

    def test_a_request_to_stop_waits_for_what_is_under_way_and_begins_nothing(self) -> None:
        fleet = PretendFleet()
        # Two looks while workers come up, one at which all rooms are filled; then the request.
        found = list(pool(fleet, [False, False, False, *[True] * 100]).run(chunks(100), silent))

        assert 0 < len(found) <= 12
        assert not [payload for _, payload in fleet.open.values() if payload is not None]

    def test_a_request_to_stop_does_not_wait_for_workers_to_come_up(self) -> None:
        class Slow(PretendFleet):
            def wait(self, tickets: Collection[Ticket], seconds: float) -> list[tuple[Ticket, bytes | Lost]]:
                return []

        assert list(pool(Slow(), [False, *[True] * 9]).run(chunks(9), silent)) == []
