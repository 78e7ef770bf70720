"""Who may work now, who waits, who is sent away: bounded, and fair between clients. Event loop only."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_LONGEST_RETRY_S = 60
#: Weight of the newest stay in the mean that Retry-After is told from.
_NEWEST = 0.2


class Busy(Exception):
    """All places are taken and the queue is full, or no place came free in time.

    Attributes:
        retry_after: whole seconds.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many requests are under way; try again in {retry_after} s")
        self.retry_after = retry_after


class Admission:
    """
    Args:
        places: requests at work at once.
        queue: requests that wait at most; clients take turns, whatever each of them sends.
    """

    def __init__(self, places: int, queue: int) -> None:
        self._places = places
        self._free = places
        self._limit = queue
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._stay_s = 1.0

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    @property
    def at_work(self) -> int:
        return self._places - self._free

    async def enter(self, client: str, within_s: float) -> Callable[[], None]:
        """Wait for a place; returns what gives it back, once however often it is called.

        Raises:
            Busy: the queue is full, or no place came free within `within_s`.
        """
        if self._free:
            self._free -= 1
        elif self.waiting >= self._limit:
            raise Busy(self._retry_after())
        else:
            await self._wait(client, within_s)
        entered, inside = time.monotonic(), True

        def leave() -> None:
            nonlocal inside
            if inside:
                inside = False
                self._stay_s += _NEWEST * (time.monotonic() - entered - self._stay_s)
                self._pass_on()

        return leave

    async def _wait(self, client: str, within_s: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(client, deque()).append(turn)
        try:
            async with asyncio.timeout(within_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # it came in the moment of giving up
            else:
                self._queues[client].remove(turn)
                if not self._queues[client]:
                    del self._queues[client]
            if isinstance(error, TimeoutError):
                raise Busy(self._retry_after()) from error
            raise

    def _pass_on(self) -> None:
        if not self._queues:
            self._free += 1
            return
        client, turns = next(iter(self._queues.items()))
        turns.popleft().set_result(None)
        if turns:
            self._queues.move_to_end(client)
        else:
            del self._queues[client]

    def _retry_after(self) -> int:
        ahead = (self.waiting + 1) * self._stay_s / self._places
        return min(_LONGEST_RETRY_S, max(1, math.ceil(ahead)))
