"""What was asked lately, so that it can be rated; what of it is written down, the setting says.

off     nothing is remembered, nothing can be rated
rated   what somebody rates is written down with the index; the rest is forgotten with the server
all     every question is, at once
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from hornbeam.answer.events import Asked as AskedEvent
from hornbeam.answer.events import Event, EvidenceFound, Final
from hornbeam.serve.indexes import Reader, ServedIndex
from hornbeam.settings import ServeSettings
from hornbeam.store.question_log import Asked, QuestionLog, Rating

_REMEMBERED = 1000


class QuestionMemory:
    def __init__(self, settings: ServeSettings) -> None:
        self._mode = settings.question_log
        self._recent: OrderedDict[tuple[str, str], Asked] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def can_rate(self) -> bool:
        return self._mode != "off"

    def answered(
        self, index: ServedIndex, reader: Reader, question_id: str, client: str, events: Sequence[Event]
    ) -> None:
        """One that ended; one that was given up is not kept."""
        if self._mode == "off" or not events or not isinstance(events[-1], Final):
            return
        entry = entry_of(question_id, client, reader, events)
        if self._mode == "all":
            QuestionLog(index.directory).add(entry)
            return
        with self._lock:
            self._recent[index.name, question_id] = entry
            while len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)

    def rate(self, index: ServedIndex, question_id: str, client: str, rating: Rating, note: str) -> bool:
        """Whether the client had asked it, lately or as the log knows."""
        log = QuestionLog(index.directory)
        with self._lock:
            entry = self._recent.get((index.name, question_id))
            if entry is not None and entry.client == client:
                del self._recent[index.name, question_id]
        if entry is not None and entry.client == client:
            log.add(replace(entry, rating=rating, note=note))
            return True
        return log.rate(question_id, client, rating, note)


def entry_of(question_id: str, client: str, reader: Reader, events: Sequence[Event]) -> Asked:
    final = events[-1]
    assert isinstance(final, Final)
    asked = next(event for event in events if isinstance(event, AskedEvent))
    evidence = [piece for event in events if isinstance(event, EvidenceFound) for piece in event.evidence]
    documents = {piece.document_id for piece in (*evidence, *final.citations)}
    outcome = "out of time" if final.out_of_time else "rejected" if final.rejected else "answered"
    return Asked(
        question_id=question_id,
        asked=round(time.time(), 3),
        client=client,
        version=reader.version.version_id,
        question=asked.question,
        standalone=asked.standalone,
        engine=final.engine,
        answer=final.answer,
        outcome=outcome,
        milliseconds=round(final.milliseconds.get("total", 0.0), 1),
        cited=tuple(
            dict.fromkeys(
                piece.source or piece.document_id
                for piece in final.citations
                if piece.document_id is not None
            )
        ),
        documents=frozenset(one for one in documents if one is not None),
    )
