"""Several servers of one model as one: the least loaded is asked first, another one where that fails."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Lock
from typing import Any

from hornbeam.errors import ModelError
from hornbeam.llm.http_server import HttpModel, ServerFault
from hornbeam.llm.protocol import Completion, ModelIdentity, Part, Request, Usage
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.settings import ModelSettings

#: How long one step waits for something to come.
_STEP_S = 0.02
_CREDENTIALS = re.compile(r"://[^/@]*@")
#: After a fault a server rests, twice as long after each further one.
_FIRST_REST_S, _LONGEST_REST_S = 1.0, 60.0


@dataclass(slots=True)
class _Server:
    url: str
    model: HttpModel | None = None  # None: it has not answered yet
    load: int = 0  # requests on their way to it
    answered: int = 0
    faults: int = 0
    faults_in_a_row: int = 0
    rests_until: float = 0.0
    last_fault: str = ""
    opening: bool = False
    refused: bool = False  # it serves something else


class HttpFleet:
    """
    Every request is answered once: by the least loaded server, or by another one where that is gone,
    overloaded or answers nonsense. It fails only when every server has failed it. A server that does not
    answer when the fleet is opened, or later, is tried again after a rest.

    Raises:
        ModelError: no server answers, or they serve different models: results would then depend on chance.
    """

    def __init__(self, urls: Sequence[str], settings: ModelSettings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._servers = [_Server(url) for url in urls]
        for server in self._servers:
            try:
                server.model = HttpModel(server.url, settings)
            except ModelError as error:
                self._count_fault(server, str(error))
        open_models = [server.model for server in self._servers if server.model is not None]
        if not open_models:
            raise ModelError("; ".join(server.last_fault for server in self._servers))
        self._first = open_models[0]
        for model in open_models[1:]:
            if difference := _difference(self._first, model):
                for opened in open_models:
                    opened.close()
                raise ModelError(f"the servers differ, name those of one model: {difference}")
        # A request that fits the smallest goes anywhere.
        self._max_model_len = min(model.max_model_len for model in open_models)
        self._pool = ThreadPoolExecutor(max_workers=settings.max_num_seqs * 2 * len(urls))
        self._running: set[Future[Completion]] = set()
        self._stops: dict[str, Event] = {}
        self._parts: SimpleQueue[Part] = SimpleQueue()

    @property
    def identity(self) -> ModelIdentity:
        one = self._first.identity
        reason = f"{len(self._servers)} URLs; they serve '{one.name}'"
        return ModelIdentity(one.name, one.fingerprint, one.backend, reason)

    @property
    def tokenizer(self) -> DirectoryTokenizer:
        return self._first.tokenizer

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def chat_prompt(self, system: str, user: str) -> str:
        return self._first.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._first.neutralise(text)

    def submit(self, request: Request) -> None:
        self._running.add(self._pool.submit(self._answer, request))

    def poll(self) -> list[Completion]:
        if not self._running:
            return []
        done, self._running = wait(self._running, return_when=FIRST_COMPLETED)
        return [future.result() for future in done]

    def stream(self, request: Request) -> Iterator[str | Completion]:
        """From another server only as long as none of the text has been given out."""
        tried: list[_Server] = []
        completion = None
        while (server := self._take(tried)) is not None:
            given = False
            try:
                model = self._opened(server)
                for part in model.stream(request):
                    if isinstance(part, str):
                        given = True
                        yield part
                    else:
                        completion = part
            except ServerFault as fault:
                completion = _failed(request, str(fault))
            finally:
                self._give_back(server)
            assert completion is not None
            if completion.finish_reason != "error" or given:
                break
            self._count_fault(server, completion.error)
        yield completion or _failed(request, "no server")

    def start(self, request: Request, *, streaming: bool) -> None:
        self._stops[request.request_id] = stop = Event()
        self._pool.submit(self._pump, request, stop, streaming)

    def step(self) -> list[Part]:
        try:
            parts = [self._parts.get(timeout=_STEP_S)]
        except Empty:
            return []
        while not self._parts.empty():
            parts.append(self._parts.get())
        return parts

    def cancel(self, request_id: str) -> None:
        """The connection is closed when the server sends its next piece."""
        if (stop := self._stops.get(request_id)) is not None:
            stop.set()

    def _pump(self, request: Request, stop: Event, streaming: bool) -> None:
        try:
            for part in self.stream(request):
                if stop.is_set():
                    return
                if isinstance(part, Completion) or streaming:
                    self._parts.put((request.request_id, part))
        finally:
            self._stops.pop(request.request_id, None)

    def serving(self) -> dict[str, Any]:
        with self._lock:
            servers = [
                {
                    "url": _CREDENTIALS.sub("://", server.url),
                    "answered": server.answered,
                    "faults": server.faults,
                    "last_fault": _CREDENTIALS.sub("://", server.last_fault),
                }
                for server in self._servers
            ]
        return {"enforces": self._first.enforcement.kind, "servers": servers}

    def close(self) -> None:
        for stop in list(self._stops.values()):
            stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for server in self._servers:
            if server.model is not None:
                server.model.close()

    def _answer(self, request: Request) -> Completion:
        tried: list[_Server] = []
        faults = []
        while (server := self._take(tried)) is not None:
            try:
                completion = self._opened(server).answer(request)
            except ServerFault as fault:
                self._count_fault(server, str(fault))
                faults.append(str(fault))
                continue
            finally:
                self._give_back(server)
            with self._lock:
                server.answered += 1
                server.faults_in_a_row = 0
            return completion
        return _failed(request, "every server failed: " + "; ".join(faults))

    def _take(self, tried: list[_Server]) -> _Server | None:
        """The server to ask next, which is noted in `tried`: of those that do not rest the least loaded, else
        the one that has rested longest."""
        with self._lock:
            now = time.monotonic()
            able = [s for s in self._servers if s not in tried and not s.refused and not s.opening]
            if not able:
                return None
            server = min(able, key=lambda s: (max(0.0, s.rests_until - now), s.load))
            server.load += 1
            server.opening = server.model is None
            tried.append(server)
            return server

    def _give_back(self, server: _Server) -> None:
        with self._lock:
            server.load -= 1

    def _opened(self, server: _Server) -> HttpModel:
        """
        Raises:
            ServerFault: it still does not answer, or serves another model than the others.
        """
        if server.model is not None:
            return server.model
        try:
            model = HttpModel(server.url, self._settings)
        except ModelError as error:
            raise ServerFault(str(error)) from error
        finally:
            server.opening = False
        difference = _difference(self._first, model)
        if model.max_model_len < self._max_model_len:
            difference = f"its context has {model.max_model_len} tokens, the others' {self._max_model_len}"
        if difference:
            server.refused = True
            model.close()
            raise ServerFault(f"not asked any more: {difference}")
        server.model = model
        return model

    def _count_fault(self, server: _Server, fault: str) -> None:
        with self._lock:
            rest = min(_LONGEST_REST_S, _FIRST_REST_S * 2 ** min(server.faults_in_a_row, 10))
            server.faults += 1
            server.faults_in_a_row += 1
            server.last_fault = fault[:300]
            server.rests_until = time.monotonic() + rest


def _difference(one: HttpModel, other: HttpModel) -> str:
    """Between what two servers serve and enforce; "" if there is none."""
    if one.identity.fingerprint == other.identity.fingerprint:
        return ""
    return f"{one.identity.reason} | {other.identity.reason}"


def _failed(request: Request, error: str) -> Completion:
    return Completion(request.request_id, "", "error", Usage(), error=error)
