"""What all requests share, and one question or search carried through it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from hornbeam.answer.conversation import Turn
from hornbeam.answer.events import Event, Final
from hornbeam.answer.loop import answer_question
from hornbeam.answer.session import answer_style
from hornbeam.errors import StoreError
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.shared import CallerModel, SharedModel
from hornbeam.retrieve.model_reranker import reranked_by_model
from hornbeam.retrieve.search import search
from hornbeam.serve.admission import Admission
from hornbeam.serve.builds import Builds, last_lines, list_runs
from hornbeam.serve.forms import Ask
from hornbeam.serve.indexes import Reader, ServedIndex
from hornbeam.serve.keys import KeyRing
from hornbeam.serve.metrics import Metrics
from hornbeam.serve.question_memory import QuestionMemory
from hornbeam.serve.streams import stream_events
from hornbeam.serve.tracing import Tracing, now, stages_of
from hornbeam.settings import Settings

log = logging.getLogger("hornbeam.serve")


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose question it is, and by which id it can be rated."""

    client: str
    request_id: str
    span: Any = None  # of the request, where it is traced


class Server:
    """
    Args:
        indexes: by name, opened.
        model: closed with the server.
        keys: of callers. While there is none, everybody who can connect may read.
        loopback: whether it listens to this machine alone.
    """

    def __init__(
        self,
        indexes: Mapping[str, ServedIndex],
        model: LanguageModel,
        settings: Settings,
        keys: KeyRing,
        *,
        loopback: bool = True,
    ) -> None:
        self.indexes = indexes
        self.model = SharedModel(model)
        self.settings = settings
        self.keys = keys
        self.loopback = loopback
        limits = settings.serve
        self.builds = Builds(settings)
        self.tracing = Tracing(limits.traces)
        self.remembered = QuestionMemory(limits)
        self.questions = Admission(limits.questions, limits.queue)
        self.searches = Admission(limits.searches, limits.queue)
        self.metrics = Metrics()
        self.metrics.watch("questions", self.questions)
        self.metrics.watch("searches", self.searches)
        for index in indexes.values():
            self.metrics.serves(index.name, index.reader.version, switched=False)
        self._answering = ThreadPoolExecutor(limits.questions, thread_name_prefix="question")
        self._searching = ThreadPoolExecutor(limits.searches, thread_name_prefix="search")

    async def answer(
        self, index: ServedIndex, reader: Reader, ask: Ask, deadline_s: float, asker: Asker
    ) -> AsyncGenerator[Event, None]:
        """The events of a question; the caller has a place among `questions`."""
        chosen = {name: value for name in ("mode", "style") if (value := getattr(ask, name)) is not None}
        answer = self.settings.answer.model_copy(update=chosen)
        style = answer_style(self.settings.model_copy(update={"answer": answer}))

        def run(caller: CallerModel) -> Generator[Event, None, None]:
            yield from answer_question(
                reader.kb,
                caller,
                ask.question,
                retrieve=self.settings.retrieve,
                answer=answer,
                engine=ask.engine,
                style=style,
                history=[Turn(turn.question, turn.answer) for turn in ask.history],
            )

        seen: list[Event] = []
        came: list[int] = []
        started = now()
        try:
            async with aclosing(stream_events(run, self.model, self._answering, deadline_s)) as events:
                async for event in events:
                    seen.append(event)
                    came.append(now())
                    yield event
        finally:
            self.metrics.answered(index.name, seen)
            self.tracing.stages(asker.span, stages_of(started, list(zip(came, seen, strict=True))))
            if seen and isinstance(seen[-1], Final):
                await self._remember(index, reader, asker, seen)

    async def _remember(self, index: ServedIndex, reader: Reader, asker: Asker, events: list[Event]) -> None:
        try:
            await asyncio.to_thread(
                self.remembered.answered, index, reader, asker.request_id, asker.client, events
            )
        except (
            StoreError
        ) as error:  # the answer is given; that it could not be kept is the operator's to know
            log.error("the question log of %s: %s", index.name, error)

    async def search(self, index: ServedIndex, text: str, top_k: int | None) -> dict[str, Any]:
        """The result with its version; the caller has a place among `searches`."""
        reader, retrieve = index.reader, self.settings.retrieve

        def run() -> dict[str, Any]:
            caller = self.model.caller()
            try:
                return search(reranked_by_model(reader.kb, caller, retrieve), text, retrieve, top_k).to_json()
            finally:
                caller.close()

        found = await asyncio.get_running_loop().run_in_executor(self._searching, run)
        self.metrics.stages(index.name, {f"search: {k}": v for k, v in found["milliseconds"].items()})
        return found | {"version": reader.version.version_id}

    def stages_under_way(self) -> dict[str, dict[str, Any]]:
        """By index, the newest line of its build's progress, of those with one under way."""
        found: dict[str, dict[str, Any]] = {}
        for name, index in self.indexes.items():
            newest = next(iter(list_runs(index.directory)), None)
            if newest is not None and newest.runs():
                line = last_lines(newest.progress_file).get("stage")
                if line is not None:
                    found[name] = line
        return found

    async def refresh(self, index: ServedIndex) -> None:
        """Take the version that is promoted now.

        Raises:
            StoreError: it cannot be opened; the one before it is served on.
        """
        if await asyncio.to_thread(index.refresh):
            self.metrics.serves(index.name, index.reader.version, switched=True)

    def close(self) -> None:
        """Stop what is under way, builds that it started too, and close the model."""
        self.builds.stop()
        self.model.close()
        self.tracing.close()
        for pool in (self._answering, self._searching):
            pool.shutdown(wait=False, cancel_futures=True)
