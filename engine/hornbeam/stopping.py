"""Ctrl-C and SIGTERM: the first asks the run to stop in order, the second stops it at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from hornbeam.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ASKED = b"stopping: calls in flight are finished and kept; Ctrl-C again stops at once\n"


class StopRequest:
    """Whether the run must end: the user wants it to, or its budget is used up. Work looks at it where it can
    stop without a loss.

    Args:
        requested: by the user.

    Attributes:
        limit: why the run must end of itself; "" as long as it need not.
    """

    def __init__(self, requested: bool = False) -> None:
        self._asked = requested
        self._limit_met = ""
        self.limit: Callable[[], str] = str

    @property
    def requested(self) -> bool:
        if not self._asked and not self._limit_met:
            self._limit_met = self.limit()
        return self._asked or bool(self._limit_met)

    @requested.setter
    def requested(self, asked: bool) -> None:
        self._asked = asked

    def check(self, done: str = "") -> None:
        """
        Args:
            done: how far the work has come, for the message.

        Raises:
            Interrupted: the stop was requested.
        """
        if self.requested:
            kept = f"{done}; " if done else ""
            raise Interrupted(
                f"{self._limit_met or 'interrupted'}: {kept}what was finished is kept, run the same command "
                "again to go on"
            )


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """A request that the first signal sets; a second one raises KeyboardInterrupt. Main thread only: Python
    gives signals to no other, and there the request is never set."""
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True
        os.write(sys.stderr.fileno(), _ASKED)  # print is not safe here: it may be what was interrupted

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
