"""The Python interface: an open index, asked questions.

    with hornbeam.open("papers-index") as kb:
        for event in kb.ask("Who invented the tide gauge?"):
            ...

    async with hornbeam.open("papers-index") as kb:
        async for event in kb.ask("Who invented the tide gauge?"):
            ...

One model serves all questions under way, its batch shared. The version that was current when the index was
opened is pinned: a build that promotes another does not change what an open index answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hornbeam.answer.conversation import Turn
from hornbeam.answer.events import Asked, Event, Final
from hornbeam.answer.inquiry import Style
from hornbeam.answer.loop import answer_question
from hornbeam.answer.writing import without_marks
from hornbeam.errors import UsageError
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.shared import CallerModel, Cancelled, OutOfTime, SharedModel
from hornbeam.settings import Settings
from hornbeam.store.damage import naming_damage

if TYPE_CHECKING:
    from hornbeam.retrieve.knowledge_base import KnowledgeBase
    from hornbeam.retrieve.search import SearchResult
    from hornbeam.store.versions import Version


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question: iterate over its events, or wait for the last one.

    `for` and `async for` give the events; `answer.final()` and `await answer` the Final alone. Each of them
    asks anew. Leaving the loop, or cancelling the task, stops the model call.
    """

    session: Session
    question: str
    engine: str
    settings: Settings
    deadline: float | None  # seconds from the start of the iteration
    conversation: Conversation | None = None  # that the question is a turn of

    def __iter__(self) -> Iterator[Event]:
        return self._events(self._caller())

    async def __aiter__(self) -> AsyncGenerator[Event, None]:
        loop, caller = asyncio.get_running_loop(), self._caller()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def work() -> None:
            try:
                with suppress(Cancelled), closing(self._events(caller)) as events:
                    for event in events:
                        loop.call_soon_threadsafe(queue.put_nowait, event)
            finally:
                loop.call_soon_threadsafe(queue.put_nowait, None)

        running = loop.run_in_executor(self.session.pool, work)
        try:
            while (event := await queue.get()) is not None:
                yield event
            await running
        finally:
            caller.close()

    def __await__(self) -> Generator[Any, None, Final]:
        return self._final().__await__()

    def final(self) -> Final:
        return _last(list(self))

    async def _final(self) -> Final:
        async with aclosing(self.__aiter__()) as events:
            return _last([event async for event in events])

    def _caller(self) -> CallerModel:
        deadline = None if self.deadline is None else time.monotonic() + self.deadline
        return self.session.model.caller(deadline)

    def _events(self, caller: CallerModel) -> Generator[Event, None, None]:
        conversation = self.conversation
        standalone = self.question
        try:
            with naming_damage(self.session.version, but=(Cancelled, OutOfTime)):
                for event in answer_question(
                    self.session.kb,
                    caller,
                    self.question,
                    retrieve=self.settings.retrieve,
                    answer=self.settings.answer,
                    engine=self.engine,
                    style=answer_style(self.settings),
                    history=() if conversation is None else tuple(conversation.turns),
                ):
                    if isinstance(event, Asked):
                        standalone = event.standalone
                    elif isinstance(event, Final) and conversation is not None:
                        said = "" if event.rejected else without_marks(event.answer)
                        conversation.turns.append(Turn(standalone, said))
                    yield event
        finally:
            caller.close()


class Conversation:
    """Questions that may lean on those before them; `Session.conversation` begins one. One at a time.

    Attributes:
        turns: what was asked, standing alone, and answered so far.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.turns: list[Turn] = []

    def ask(self, question: str, **options: Any) -> Answer:
        """As `Session.ask`; the turn is kept when its Final has been read."""
        return replace(self._session.ask(question, **options), conversation=self)


class Session:
    """An open index; `hornbeam.open` makes one.

    Attributes:
        kb: the pinned version's resident view.
        version: it; pinned while the session is held.
    """

    def __init__(self, kb: KnowledgeBase, version: Version, model: LanguageModel, settings: Settings) -> None:
        self.kb = kb
        self.version = version
        self.settings = settings
        self.model = SharedModel(model)
        # A thread per question under way; it mostly waits for the model.
        self.pool = ThreadPoolExecutor(settings.model.max_num_seqs, thread_name_prefix="question")

    def ask(
        self,
        question: str,
        *,
        engine: str = "auto",
        mode: str | None = None,
        style: str | None = None,
        deadline: float | None = None,
    ) -> Answer:
        """
        Args:
            engine: one of `hornbeam.answer.engines.ENGINES`.
            mode: "open" or "reject"; None: as the settings say.
            style: "extract", "short" or "sentences"; None: as the settings say.
            deadline: in seconds; then the best answer so far is given.

        Raises:
            UsageError: a blank question, or a mode or style that there is not.
        """
        if not question.strip():
            raise UsageError("the question is empty")
        if deadline is not None and deadline <= 0:
            raise UsageError(f"a deadline of {deadline:g} s leaves no time")
        changes = {key: value for key, value in (("mode", mode), ("style", style)) if value is not None}
        return Answer(self, question, engine, _changed(self.settings, changes), deadline)

    def ask_many(self, questions: Iterable[str], **options: Any) -> list[Final]:
        """Ask all at once, batched through the model; the answers in the questions' order.

        Args:
            options: as of `ask`.
        """
        asked = [self.ask(question, **options) for question in questions]
        return list(self.pool.map(Answer.final, asked))

    def conversation(self) -> Conversation:
        return Conversation(self)

    def search(self, text: str, top_k: int | None = None) -> SearchResult:
        """Retrieval alone, by all routes; the model is asked only if it reranks (retrieve.rerank=model)."""
        from hornbeam.retrieve.model_reranker import reranked_by_model
        from hornbeam.retrieve.search import search

        settings = self.settings.retrieve
        with naming_damage(self.version, but=(Cancelled, OutOfTime)):
            return search(reranked_by_model(self.kb, self.model.caller(), settings), text, settings, top_k)

    def close(self) -> None:
        """Stop what is under way and close the model."""
        self.model.close()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)


def open_session(
    index: str | Path, settings: Settings | None = None, model: LanguageModel | None = None
) -> Session:
    """
    Args:
        index: the index directory.
        settings: None: those of `hornbeam.toml` and the environment.
        model: None: the one that the settings name. The session closes it.

    Raises:
        StoreError: no current version, or its vectors were made with another embedder.
        ModelError: the model cannot be found or reached.
    """
    from hornbeam.llm.opening import open_model
    from hornbeam.opening import open_knowledge_base
    from hornbeam.settings import load_settings

    settings = load_settings() if settings is None else settings
    kb, version = open_knowledge_base(Path(index), settings)
    return Session(kb, version, open_model(settings) if model is None else model, settings)


def answer_style(settings: Settings) -> Style:
    """What `auto` stands for: passages for the embedded model, sentences for any other."""
    if settings.answer.style != "auto":
        return settings.answer.style
    return "extract" if settings.model.path is None else "sentences"


def _changed(settings: Settings, changes: dict[str, str]) -> Settings:
    """Raises UsageError for a value that there is not."""
    from pydantic import ValidationError

    try:
        answer = type(settings.answer).model_validate(settings.answer.model_dump() | changes)
    except ValidationError as error:
        said = "; ".join(f"{one['loc'][0]}: {one['msg']} (got {one['input']!r})" for one in error.errors())
        raise UsageError(said) from error
    return settings.model_copy(update={"answer": answer})


def _last(events: list[Event]) -> Final:
    final = events[-1] if events else None
    assert isinstance(final, Final)
    return final
