"""Calls from many threads at once, worked off together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

Asked = TypeVar("Asked")
Given = TypeVar("Given")


@dataclass(slots=True, eq=False)
class _Call(Generic[Asked, Given]):
    asked: Asked
    done: bool = False
    given: Given | None = None
    error: BaseException | None = None


class Together(Generic[Asked, Given]):
    """`work` on what one thread asks, and on what others ask while it is busy, in one go.

    Nobody waits for company: whoever finds it idle starts at once, alone. What comes meanwhile is worked off
    together by the first of those that came. First come, first served.

    Args:
        work: of 1 to `most` asked things, as many given ones in their order; never called by two threads at
            once.
    """

    def __init__(self, work: Callable[[Sequence[Asked]], Sequence[Given]], most: int) -> None:
        self._work = work
        self._most = most
        self._waiting: deque[_Call[Asked, Given]] = deque()
        self._working = threading.Lock()

    def __call__(self, asked: Asked) -> Given:
        """
        Raises:
            BaseException: what `work` raises for this one alone. A panic of native code is no Exception.
        """
        call: _Call[Asked, Given] = _Call(asked)
        self._waiting.append(call)
        with self._working:
            while not call.done:
                # Only what is done leaves the queue: where this thread is interrupted, another goes on.
                while self._waiting[0].done:
                    self._waiting.popleft()
                self._work_off([self._waiting[place] for place in range(min(self._most, len(self._waiting)))])
            while self._waiting and self._waiting[0].done:
                self._waiting.popleft()
        if call.error is not None:
            raise call.error
        return cast(Given, call.given)

    def _work_off(self, calls: Sequence[_Call[Asked, Given]]) -> None:
        try:
            for call, given in zip(calls, self._work([call.asked for call in calls]), strict=True):
                call.given = given
        except (KeyboardInterrupt, SystemExit):
            raise  # they are of the thread, not of what was asked
        except BaseException as error:  # noqa: BLE001 - it is raised to the caller whose it is
            if len(calls) == 1:
                calls[0].error = error
            else:
                for call in calls:
                    self._work_off([call])
        for call in calls:
            call.done = True
