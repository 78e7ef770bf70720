"""A question's events from the thread that answers it to the event loop, with a bound on what lies between.

A reader that is slow holds the answering thread up, not memory; its deadline ends it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import aclosing, closing, suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hornbeam.answer.events import Event
from hornbeam.llm.shared import CallerModel, Cancelled, SharedModel

T = TypeVar("T")
#: Events that wait for the reader.
_BUFFER = 64
#: Beyond a question's deadline: to write its best answer.
_GRACE_S = 5.0


class ClientGone(Exception):
    """Nobody waits for the response any more."""


async def stream_events(
    events: Callable[[CallerModel], Generator[Event, None, None]],
    model: SharedModel,
    pool: Executor,
    deadline_s: float,
) -> AsyncGenerator[Event, None]:
    """Closing it stops the model call. It ends without a Final if the reader did not keep up."""
    loop, until = asyncio.get_running_loop(), time.monotonic() + deadline_s
    caller = model.caller(until)
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    room, left = threading.Semaphore(_BUFFER), threading.Event()

    def work() -> None:
        try:
            with suppress(Cancelled), closing(events(caller)) as run:
                for event in run:
                    patience = max(0.0, until + _GRACE_S - time.monotonic())
                    if not room.acquire(timeout=patience) or left.is_set():
                        return
                    loop.call_soon_threadsafe(queue.put_nowait, event)
        finally:
            caller.close()
            with suppress(RuntimeError):  # the loop was closed: nobody reads any more
                loop.call_soon_threadsafe(queue.put_nowait, None)

    running = loop.run_in_executor(pool, work)
    try:
        while (event := await queue.get()) is not None:
            room.release()
            yield event
        await running
    finally:
        left.set()
        caller.close()
        room.release()


class EventStream(StreamingResponse):
    """Server-sent events, for a limited time.

    Args:
        leave: called when it is over, however it ends.
    """

    media_type = "text/event-stream"

    def __init__(self, content: AsyncGenerator[str, None], limit_s: float, leave: Callable[[], None]) -> None:
        super().__init__(content, headers={"X-Accel-Buffering": "no"})
        self._content = content
        self._limit_s = limit_s + 2 * _GRACE_S
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._content), asyncio.timeout(self._limit_s):
                await super().__call__(scope, receive, send)
        except TimeoutError as error:
            raise ClientGone from error  # it is there, but does not read
        finally:
            self._leave()


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result; or, once the client has gone, the work is cancelled.

    Raises:
        ClientGone: it was.
    """
    task, gone = asyncio.create_task(work), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return await task
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
