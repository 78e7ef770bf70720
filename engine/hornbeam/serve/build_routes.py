"""Builds: start, watch, cancel; for keys with the scope operate. No request names a path."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hornbeam.errors import StoreError
from hornbeam.serve.access import OperableIndex, TheClient, TheServer
from hornbeam.serve.builds import BuildRun, Wanted, list_runs, read_line
from hornbeam.serve.forms import EVENT_SCHEMA, BuildForm, CancelForm, Failure
from hornbeam.serve.indexes import ServedIndex
from hornbeam.serve.streams import EventStream

router = APIRouter(
    prefix="/v1/{index}/builds",
    tags=["operating"],
    responses={403: {"model": Failure}, 404: {"model": Failure}, 409: {"model": Failure}},
)
BuildId = Annotated[str, Path(pattern=r"^b[0-9a-f]{16}$", examples=["b019abcdef0120304"])]
Refresh = Callable[[ServedIndex], Coroutine[Any, Any, None]]
_LOOK_S = 0.25
#: Of one stream; a watcher that wants more comes again.
_LONGEST_S = 3600.0
_QUIET_S = 15.0
_EVENTS = {
    "description": "Server-sent events: progress (of a stage), said, and end, the last.",
    "content": {
        "text/event-stream": {
            "schema": EVENT_SCHEMA,
            "example": 'event: progress\ndata: {"stage":"extract","unit":"chunks","done":120,"total":400,'
            '"rate":3.2,"left_s":87.5}\n\n',
        }
    },
}


@router.get("")
async def builds(index: OperableIndex, server: TheServer) -> dict[str, Any]:
    """The newest first, how far each has come or how it ended; and the sources that a build may name."""

    def work() -> list[dict[str, Any]]:
        return [run.to_json() for run in list_runs(index.directory)]

    return {"builds": await asyncio.to_thread(work), "sources": server.builds.sources}


@router.post("", status_code=202)
async def start(
    body: BuildForm, index: OperableIndex, server: TheServer, client: TheClient
) -> dict[str, Any]:
    """Bring the index up to date with its documents, in a process of its own; readers go on meanwhile.

    One build of an index at a time: 409 while it is being written.
    """
    wanted = Wanted(body.source, body.full, body.evolve)
    run = await asyncio.to_thread(server.builds.start, index.directory, wanted, client.name)
    return await asyncio.to_thread(run.to_json)


@router.get("/{build}")
async def build_of(build: BuildId, index: OperableIndex) -> dict[str, Any]:
    return await asyncio.to_thread(_found(index, build).to_json)


@router.post("/{build}/cancel")
async def cancel(body: CancelForm, build: BuildId, index: OperableIndex) -> dict[str, Any]:
    """Stop in order: what is in flight is finished and kept, and the next build goes on from there."""
    run = _found(index, build)
    try:
        await asyncio.to_thread(run.cancel, now=body.now)
    except StoreError as error:
        raise HTTPException(409, str(error)) from error
    return await asyncio.to_thread(run.to_json)


@router.get("/{build}/events", response_class=Response, responses={200: _EVENTS})
async def events(build: BuildId, index: OperableIndex, server: TheServer) -> Response:
    """Everything that was told since the build began, then what is told on, until it ends."""
    return EventStream(_told(_found(index, build), server.refresh, index), _LONGEST_S, lambda: None)


def _found(index: ServedIndex, build: str) -> BuildRun:
    try:
        return BuildRun(index.directory / "builds" / build)
    except FileNotFoundError as error:
        raise HTTPException(404, "no such build of this index") from error


async def _told(run: BuildRun, refresh: Refresh, index: ServedIndex) -> AsyncGenerator[str, None]:
    place, still_there, quiet_s = 0, True, 0.0
    while True:
        lines, place = await asyncio.to_thread(_read_on, run.progress_file, place)
        for told in lines:
            if "end" in told:
                await refresh(index)  # who hears of the end is to find its version served
                yield _sent("end", await asyncio.to_thread(run.to_json))
                return
            yield _sent("progress" if "stage" in told else "said", told)
        if not still_there and not lines:
            yield _sent("end", await asyncio.to_thread(run.to_json))
            return
        # Once more after it went: its last lines came before.
        still_there = await asyncio.to_thread(run.runs)
        quiet_s = 0.0 if lines else quiet_s + _LOOK_S
        if quiet_s >= _QUIET_S:
            quiet_s = 0.0
            yield ": still there\n\n"
        await asyncio.sleep(_LOOK_S if still_there else 0)


def _read_on(progress: FilePath, place: int) -> tuple[list[dict[str, Any]], int]:
    """The whole lines after a place; of a stage that went on in them its newest alone."""
    try:
        with progress.open("rb") as file:
            file.seek(place)
            whole = file.read().rpartition(b"\n")[0]
    except FileNotFoundError:
        return [], place
    lines = [told for line in whole.splitlines() if (told := read_line(line)) is not None]
    following: list[dict[str, Any]] = [*lines[1:], {}]
    newest = [
        told
        for told, after in zip(lines, following, strict=False)
        if told.get("ended") or "stage" not in told or told["stage"] != after.get("stage")
    ]
    return newest, place + len(whole) + (1 if whole else 0)


def _sent(event: str, told: dict[str, Any]) -> str:
    return f"event: {event}\ndata: {json.dumps({'event': event} | told, ensure_ascii=False)}\n\n"
