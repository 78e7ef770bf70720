"""What all requests share, and one question or search carried through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

from hornbeam.answer.events import Event
from hornbeam.answer.loop import answer_question
from hornbeam.answer.session import answer_style
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.shared import CallerModel, SharedModel
from hornbeam.retrieve.model_reranker import reranked_by_model
from hornbeam.retrieve.search import search
from hornbeam.serve.admission import Admission
from hornbeam.serve.forms import Ask
from hornbeam.serve.indexes import Reader, ServedIndex
from hornbeam.serve.keys import KeyRing
from hornbeam.serve.metrics import Metrics
from hornbeam.serve.streams import stream_events
from hornbeam.settings import Settings


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
        self, index: ServedIndex, reader: Reader, ask: Ask, deadline_s: float
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
            )

        seen: list[Event] = []
        try:
            async with aclosing(stream_events(run, self.model, self._answering, deadline_s)) as events:
                async for event in events:
                    seen.append(event)
                    yield event
        finally:
            self.metrics.answered(index.name, seen)

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

    async def refresh(self, index: ServedIndex) -> None:
        """Take the version that is promoted now.

        Raises:
            StoreError: it cannot be opened; the one before it is served on.
        """
        if await asyncio.to_thread(index.refresh):
            self.metrics.serves(index.name, index.reader.version, switched=True)

    def close(self) -> None:
        """Stop what is under way and close the model."""
        self.model.close()
        for pool in (self._answering, self._searching):
            pool.shutdown(wait=False, cancel_futures=True)
