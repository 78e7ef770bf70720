"""One model for many callers at once.

One thread owns the model and steps it; each caller has a `LanguageModel` of its own over it, used from the
caller's thread. What all of them ask for is in the model's batch together. A caller that closes takes its
requests out of the batch, from any thread.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from hornbeam.errors import ModelError
from hornbeam.llm.protocol import (
    Completion,
    LanguageModel,
    ModelIdentity,
    Part,
    Request,
    Tokenizer,
    Usage,
)
from hornbeam.llm.stepping import stepper_of

_CLOSED = "the model was closed"


class Cancelled(Exception):
    """The caller was closed while it waited for the model."""


class OutOfTime(Exception):
    """The caller's deadline has come; its requests are stopped."""


class SharedModel:
    """
    Args:
        model: used by this object's thread alone from now on, and closed with it.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self._stepper = stepper_of(model)
        self._commands: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._keys = itertools.count()
        self._waiting: dict[str, tuple[CallerModel, str]] = {}  # key → its caller, the caller's own id
        self._thread: Thread | None = None
        self._lock = Lock()  # of the thread's start and end
        self._closed = False

    def caller(self, deadline: float | None = None) -> CallerModel:
        """
        Args:
            deadline: by `time.monotonic`; from then on waiting for the model raises OutOfTime.
        """
        return CallerModel(self, deadline)

    def close(self) -> None:
        """Stop what is under way and close the model. Callers that wait get failed completions."""
        with self._lock:
            already, self._closed = self._closed, True
            self._commands.put(None)
        if self._thread is not None:
            self._thread.join()
        elif not already:
            self._stepper.close()

    def begin(self, caller: CallerModel, request: Request, *, streaming: bool) -> None:
        """Any thread: put a caller's request on its way.

        Raises:
            ModelError: the model was closed.
        """
        with self._lock:
            if self._closed:
                raise ModelError(_CLOSED)
            if self._thread is None:
                self._thread = Thread(target=self._drive, name="model", daemon=True)
                self._thread.start()
            self._commands.put(lambda: self._start(caller, request, streaming))

    def stop(self, caller: CallerModel, request_id: str | None = None) -> None:
        """Any thread: take what a caller has under way out of the batch, all of it or one request."""
        with self._lock:
            if self._thread is not None and not self._closed:
                self._commands.put(lambda: self._cancel(caller, request_id))

    # From here on in the model's thread.

    def _drive(self) -> None:
        while True:
            while not self._waiting or not self._commands.empty():
                command = self._commands.get()
                if command is None:
                    self._fail_all(_CLOSED)
                    self._stepper.close()
                    return
                command()
            try:
                parts = self._stepper.step()
            except Exception as error:  # noqa: BLE001 - those who wait must hear of it, whatever it is
                self._fail_all(f"{type(error).__name__}: {error}")
                continue
            for key, part in parts:
                self._deliver(key, part)

    def _start(self, caller: CallerModel, request: Request, streaming: bool) -> None:
        key = f"{next(self._keys)} {request.request_id}"  # two callers may use one id
        self._waiting[key] = (caller, request.request_id)
        try:
            self._stepper.start(replace(request, request_id=key), streaming=streaming)
        except Exception as error:  # noqa: BLE001 - an engine that does not start, for instance
            self._deliver(key, _failed(key, f"{type(error).__name__}: {error}"))

    def _cancel(self, caller: CallerModel, request_id: str | None) -> None:
        for key, (owner, name) in list(self._waiting.items()):
            if owner is not caller or request_id not in (None, name):
                continue
            del self._waiting[key]
            self._stepper.cancel(key)

    def _deliver(self, key: str, part: str | Completion) -> None:
        if (owner := self._waiting.get(key)) is None:  # cancelled
            return
        caller, request_id = owner
        if isinstance(part, Completion):
            del self._waiting[key]
            part = replace(part, request_id=request_id)
        caller.parts.put((request_id, part))

    def _fail_all(self, error: str) -> None:
        for key in list(self._waiting):
            self._deliver(key, _failed(key, error))
            with contextlib.suppress(Exception):  # a broken engine may not even be able to stop
                self._stepper.cancel(key)


class CallerModel:
    """A `LanguageModel` over a shared one, for one question at a time. `close` may come from any thread.

    Raises, wherever it waits:
        Cancelled: it was closed.
        OutOfTime: its deadline has come.
    """

    def __init__(self, shared: SharedModel, deadline: float | None) -> None:
        self._shared = shared
        self._deadline = deadline
        self._flying: set[str] = set()
        self._finished: list[Completion] = []  # while a stream was read
        self._cancelled = False
        self.parts: SimpleQueue[Part | None] = SimpleQueue()  # None wakes a caller that was closed

    @property
    def identity(self) -> ModelIdentity:
        return self._shared.model.identity

    @property
    def tokenizer(self) -> Tokenizer:
        return self._shared.model.tokenizer

    @property
    def max_model_len(self) -> int:
        return self._shared.model.max_model_len

    @property
    def in_flight(self) -> int:
        return len(self._flying) + len(self._finished)

    def chat_prompt(self, system: str, user: str) -> str:
        return self._shared.model.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._shared.model.neutralise(text)

    def submit(self, request: Request) -> None:
        self._begin(request, streaming=False)

    def poll(self) -> list[Completion]:
        while self._flying and not self._finished:
            _, part = self._next()
            if isinstance(part, Completion):
                self._finished.append(part)
        finished, self._finished = self._finished, []
        return finished

    def stream(self, request: Request) -> Iterator[str | Completion]:
        self._begin(request, streaming=True)
        done = False
        try:
            while not done:
                request_id, part = self._next()
                if request_id == request.request_id:
                    done = isinstance(part, Completion)
                    yield part
                elif isinstance(part, Completion):
                    self._finished.append(part)
        finally:
            if not done:
                self._flying.discard(request.request_id)
                self._shared.stop(self, request.request_id)

    def close(self) -> None:
        """Stop what is under way; the shared model stays open."""
        self._cancelled = True
        self.parts.put(None)
        self._shared.stop(self)

    def _begin(self, request: Request, *, streaming: bool) -> None:
        self._check()
        self._flying.add(request.request_id)
        self._shared.begin(self, request, streaming=streaming)

    def _next(self) -> Part:
        while True:
            self._check()
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            try:
                part = self.parts.get(timeout=left)
            except Empty:
                continue
            if part is not None and not self._cancelled:
                if isinstance(part[1], Completion):
                    self._flying.discard(part[0])
                return part

    def _check(self) -> None:
        if self._cancelled:
            raise Cancelled
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._shared.stop(self)
            raise OutOfTime


def _failed(request_id: str, error: str) -> Completion:
    return Completion(request_id, "", "error", Usage(), error=error)
