"""Questions and searches."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hornbeam.answer.events import Event, Final, event_json
from hornbeam.answer.terminal import answer_json
from hornbeam.errors import HornbeamError
from hornbeam.serve.access import Client, ReadableIndex, TheClient, TheServer, asker_of
from hornbeam.serve.forms import EVENT_SCHEMA, Ask, Failure, Search
from hornbeam.serve.indexes import Reader, ServedIndex
from hornbeam.serve.server import Server
from hornbeam.serve.streams import ClientGone, EventStream, while_connected

router = APIRouter(prefix="/v1/{index}", tags=["questions"])
_EVENTS = {
    "description": "Server-sent events: question, evidence, plan, token, citation, usage, final, and others "
    "that may come; a failure on the way is the event error. With `Accept: application/json`, one document.",
    "content": {
        "text/event-stream": {
            "schema": EVENT_SCHEMA,
            "example": 'event: token\ndata: {"event":"token","text":"Thomas"}\n\n',
        },
        "application/json": {"schema": {"type": "object"}},
    },
}


@router.post(
    "/ask",
    response_class=Response,
    responses={200: _EVENTS, 429: {"model": Failure}, 503: {"model": Failure}},
)
async def ask(
    body: Ask, index: ReadableIndex, server: TheServer, client: TheClient, request: Request
) -> Response:
    """Answer a question, with citations of document and character span."""
    if _wants_document(request.headers.get("accept", "")):
        events, reader = await collected(server, index, body, client, request)
        mode = body.mode or server.settings.answer.mode
        return JSONResponse(answer_json(events, mode, reader.version.version_id))
    deadline_s = deadline_of(server, body)
    leave, left_s = await entered(server, client, request, deadline_s)
    events_on = server.answer(index, index.reader, body, left_s, asker_of(request))
    return EventStream(_server_sent(events_on, request), left_s, leave)


@router.post("/search", response_model=dict[str, Any], responses={429: {"model": Failure}})
async def search(
    body: Search, index: ReadableIndex, server: TheServer, client: TheClient, request: Request
) -> Response:
    """Retrieval alone: entities, facts, paths, communities and chunks, best first, with their places."""

    async def work() -> dict[str, Any]:
        leave = await server.searches.enter(client.name, server.settings.serve.deadline_s)
        try:
            return await server.search(index, body.text, body.top_k)
        finally:
            leave()

    found = await while_connected(request, work())
    # Written out here: FastAPI's own way to JSON takes two milliseconds of the event loop for a result.
    return Response(orjson.dumps(found), media_type="application/json")


def deadline_of(server: Server, ask: Ask) -> float:
    limit = server.settings.serve.deadline_s
    return limit if ask.deadline_s is None else min(limit, ask.deadline_s)


async def entered(server: Server, client: Client, request: Request, deadline_s: float) -> tuple[Any, float]:
    """A place among the questions: what gives it back, and the seconds that are left.

    Raises:
        Busy: the queue is full, or the wait took all the time.
        ClientGone: the client did not wait so long.
    """
    started = time.monotonic()
    leave = await while_connected(request, server.questions.enter(client.name, deadline_s))
    return leave, max(0.001, deadline_s - (time.monotonic() - started))


async def collected(
    server: Server, index: ServedIndex, ask: Ask, client: Client, request: Request
) -> tuple[list[Event], Reader]:
    """All events of a question, and the version that answered."""
    leave, left_s = await entered(server, client, request, deadline_of(server, ask))
    try:
        reader, asker = index.reader, asker_of(request)

        async def work() -> list[Event]:
            return [event async for event in server.answer(index, reader, ask, left_s, asker)]

        events = await while_connected(request, work())
        if not events or not isinstance(events[-1], Final):
            raise ClientGone
        return events, reader
    finally:
        leave()


async def _server_sent(events: AsyncGenerator[Event, None], request: Request) -> AsyncGenerator[str, None]:
    last: Event | None = None
    try:
        async for last in events:
            yield sent(event_json(last))
    except HornbeamError as error:
        request.scope["state"]["problem"] = str(error)
        yield sent({"event": "error", "message": str(error)})
        return
    except Exception as error:  # noqa: BLE001 - the response has begun: the client hears of it as an event
        request.scope["state"]["problem"] = f"{type(error).__name__}: {error}"
        yield sent({"event": "error", "message": "an internal error"})
        return
    finally:
        await events.aclose()
    if not isinstance(last, Final):
        yield sent({"event": "error", "message": "the reader was too slow: the answer was given up"})


def sent(form: dict[str, Any]) -> str:
    return f"event: {form['event']}\ndata: {json.dumps(form, ensure_ascii=False)}\n\n"


def _wants_document(accept: str) -> bool:
    return "application/json" in accept and "text/event-stream" not in accept
