"""Rating an answer, and what was rated or asked: for people who improve an index."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hornbeam.serve.access import OperableIndex, ReadableIndex, TheClient, TheServer
from hornbeam.serve.forms import Failure, FeedbackForm
from hornbeam.store.question_log import QuestionLog, Rating, probes_of

router = APIRouter(
    prefix="/v1/{index}/questions",
    tags=["questions"],
    responses={403: {"model": Failure}, 404: {"model": Failure}},
)
QuestionId = Annotated[
    str,
    Path(
        pattern=r"^[0-9a-f]{16}$",
        description="the X-Request-Id of the answer's response",
        examples=["0123456789abcdef"],
    ),
]
Rated = Annotated[Rating | None, Query(description="none: all that are kept")]


@router.post("/{question}/feedback")
async def feedback(
    body: FeedbackForm, question: QuestionId, index: ReadableIndex, server: TheServer, client: TheClient
) -> dict[str, str]:
    """Rate an answer of one's own; with it question and answer are kept with the index."""
    memory = server.remembered
    if not memory.can_rate:
        raise HTTPException(404, "this server keeps no questions (serve.question_log is off)")
    if not await asyncio.to_thread(memory.rate, index, question, client.name, body.rating, body.note):
        raise HTTPException(404, "no such question of yours; ratings are for recent ones")
    return {"question": question, "rating": body.rating}


@router.get("")
async def questions(
    index: OperableIndex, rating: Rated = None, limit: Annotated[int, Query(ge=1, le=10_000)] = 200
) -> dict[str, Any]:
    """What is kept, the newest first."""
    entries = await asyncio.to_thread(QuestionLog(index.directory).entries, rating, limit)
    return {"questions": [entry.to_json() for entry in entries]}


@router.get(
    "/probes",
    response_class=Response,
    responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}},
)
async def probes(index: OperableIndex, rating: Rated = "up") -> Response:
    """Questions with the documents that their answers cite, as JSON lines that `gates.probes` reads."""
    entries = await asyncio.to_thread(QuestionLog(index.directory).entries, rating)
    lines = [json.dumps(probe, ensure_ascii=False) + "\n" for probe in probes_of(entries)]
    return Response("".join(lines), media_type="application/x-ndjson")
