"""Places, queues and turns."""

from __future__ import annotations

import asyncio

import pytest

from hornbeam.serve.admission import Admission, Busy


def test_clients_take_turns_whatever_each_of_them_sends() -> None:
    async def served() -> list[str]:
        admission, order = Admission(1, 100), []
        leave = await admission.enter("first", 10)

        async def work(client: str) -> None:
            left = await admission.enter(client, 10)
            order.append(client)
            left()

        greedy = [asyncio.create_task(work("greedy")) for _ in range(4)]
        await asyncio.sleep(0)
        modest = [asyncio.create_task(work("modest")) for _ in range(2)]
        await asyncio.sleep(0)
        assert admission.waiting == 6
        leave()
        await asyncio.gather(*greedy, *modest)
        assert (admission.waiting, admission.at_work) == (0, 0)
        return order

    assert asyncio.run(served()) == ["greedy", "modest", "greedy", "modest", "greedy", "greedy"]


def test_a_full_queue_and_a_wait_that_is_too_long_are_told_apart_from_nothing() -> None:
    async def refused() -> None:
        admission = Admission(1, 1)
        leave = await admission.enter("a", 10)
        with pytest.raises(Busy):
            await admission.enter("b", 0.01)
        waiting = asyncio.create_task(admission.enter("b", 10))
        await asyncio.sleep(0)
        with pytest.raises(Busy) as busy:
            await admission.enter("c", 10)
        assert busy.value.retry_after >= 1
        leave()
        leave()  # once is enough, twice does no harm
        (await waiting)()
        assert (admission.waiting, admission.at_work) == (0, 0)

    asyncio.run(refused())


@pytest.mark.parametrize("given_first", [False, True])
def test_a_wait_that_is_cancelled_leaves_no_place_taken(given_first: bool) -> None:
    async def cancelled() -> None:
        admission = Admission(1, 5)
        leave = await admission.enter("a", 10)
        waiting = asyncio.create_task(admission.enter("b", 10))
        await asyncio.sleep(0)
        if given_first:
            leave()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not given_first:
            leave()
        assert (admission.waiting, admission.at_work) == (0, 0)

    asyncio.run(cancelled())
