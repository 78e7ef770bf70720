"""Any model taken step by step, as one that many share must be."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any

from hornbeam.llm.protocol import Completion, LanguageModel, Part, Request, Served, Stepper, Usage

#: How long one step waits for something to come from a server.
_STEP_S = 0.02
#: Requests to servers at once; the model's own limit of connections comes first.
_STREAMS = 256


def stepper_of(model: LanguageModel) -> Stepper:
    """The model itself where it steps; else its streams in threads where servers answer, else one by one."""
    if isinstance(model, Stepper):
        return model
    return Pumped(model) if isinstance(model, Served) else Polled(model)


class Pumped:
    """Each request is a stream in a thread of its own: only then does a server notice that nobody waits for
    it any more."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._pool = ThreadPoolExecutor(_STREAMS, thread_name_prefix="stream")
        self._stops: dict[str, Event] = {}
        self._parts: SimpleQueue[Part] = SimpleQueue()

    def start(self, request: Request, *, streaming: bool) -> None:
        self._stops[request.request_id] = stop = Event()
        self._pool.submit(self._pump, request, stop, streaming)

    def step(self) -> list[Part]:
        parts = []
        with contextlib.suppress(Empty):
            parts.append(self._parts.get(timeout=_STEP_S))
            while True:
                parts.append(self._parts.get_nowait())
        return parts

    def cancel(self, request_id: str) -> None:
        """The connection is closed when the server sends its next piece."""
        if (stop := self._stops.get(request_id)) is not None:
            stop.set()

    def close(self) -> None:
        for stop in list(self._stops.values()):
            stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._model.close()

    def _pump(self, request: Request, stop: Event, streaming: bool) -> None:
        ended = False
        stream: Any = self._model.stream(request)
        try:
            for part in stream:
                if stop.is_set():
                    return
                ended = isinstance(part, Completion)
                if ended or streaming:
                    self._parts.put((request.request_id, part))
        finally:
            stream.close()
            self._stops.pop(request.request_id, None)
            if not ended and not stop.is_set():  # whatever went wrong, nobody waits for ever
                failed = Completion(request.request_id, "", "error", Usage(), error="the request broke off")
                self._parts.put((request.request_id, failed))


class Polled:
    """Steps for a model that only knows how to be polled: an answer comes whole, a stream piece by piece."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._streams: dict[str, Iterator[str | Completion]] = {}
        self._cancelled: set[str] = set()

    def start(self, request: Request, *, streaming: bool) -> None:
        if streaming:
            self._streams[request.request_id] = self._model.stream(request)
        else:
            self._model.submit(request)

    def step(self) -> list[Part]:
        parts: list[Part] = []
        for request_id, stream in list(self._streams.items()):
            part = next(stream)
            if isinstance(part, Completion):
                del self._streams[request_id]
            parts.append((request_id, part))
        if self._model.in_flight:
            for completion in self._model.poll():
                if completion.request_id in self._cancelled:
                    self._cancelled.discard(completion.request_id)
                else:
                    parts.append((completion.request_id, completion))
        return parts

    def cancel(self, request_id: str) -> None:
        stream: Any = self._streams.pop(request_id, None)
        if stream is None:
            self._cancelled.add(request_id)  # its answer still comes, and goes nowhere
        else:
            stream.close()

    def close(self) -> None:
        self._streams.clear()
        self._model.close()
