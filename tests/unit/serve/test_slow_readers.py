"""A reader that does not read holds up its own question, no memory and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest

from hornbeam.answer.events import AnswerText, Event
from hornbeam.llm.shared import CallerModel, SharedModel
from hornbeam.serve import streams
from support.scripted_model import ScriptedModel

WORDS = 10_000


@pytest.fixture
def shared() -> Iterator[SharedModel]:
    model = SharedModel(ScriptedModel(lambda request: ""))
    yield model
    model.close()


def test_what_lies_between_answer_and_reader_is_bounded(
    shared: SharedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_GRACE_S", 0.2)
    written: list[int] = []
    ended = []

    def words(caller: CallerModel) -> Generator[Event, None, None]:
        try:
            for number in range(WORDS):
                written.append(number)
                yield AnswerText("word ")
        finally:
            ended.append(True)

    async def read_one_and_wait() -> int:
        with ThreadPoolExecutor(2) as pool:
            async with aclosing(streams.stream_events(words, shared, pool, 0.5)) as events:
                await anext(events)
                while not ended:  # at the deadline, though nobody reads
                    await asyncio.sleep(0.01)
                held = len(written)
                # What waits for the reader is still his.
                assert len([event async for event in events]) < held
        return held

    held = asyncio.run(read_one_and_wait())
    assert held <= 64 + 2


def test_a_reader_that_keeps_up_gets_everything(shared: SharedModel) -> None:
    def words(caller: CallerModel) -> Generator[Event, None, None]:
        for number in range(WORDS):
            yield AnswerText(str(number))

    async def read() -> list[Event]:
        with ThreadPoolExecutor(2) as pool:
            return [event async for event in streams.stream_events(words, shared, pool, 60)]

    assert asyncio.run(read()) == [AnswerText(str(number)) for number in range(WORDS)]
