"""OpenAI's chat interface, for programs that speak it: a model's name is an index's.

The question is the last message of the user. Those before it, with their answers, are the conversation: a
question that leans on them ("And where was she born?") is completed from them. What a system prompt asks for
is not followed: the answer's form is Hornbeam's, and so are its citations, whose sources are listed below the
answer.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hornbeam.answer.events import AnswerText, Event, Final, evidence_json
from hornbeam.answer.writing import without_marks
from hornbeam.errors import HornbeamError
from hornbeam.serve.access import TheClient, TheServer, asker_of, permitted
from hornbeam.serve.asking_routes import collected, deadline_of, entered
from hornbeam.serve.forms import LONGEST_TEXT, Ask, ChatRequest, Failure, PastTurn
from hornbeam.serve.streams import EventStream

#: As `_sources` writes them.
_SOURCES = re.compile(r"\n\n(?:\[\d+\] [^\n]+:\d+-\d+\n?)+\Z")
#: Of a conversation that are looked at.
_TURNS = 8

router = APIRouter(prefix="/v1", tags=["OpenAI"])


@router.get("/models")
async def models(server: TheServer, client: TheClient) -> dict[str, Any]:
    """The indexes that the caller may read, as models."""
    readable = [name for name in server.indexes if client.key is None or client.key.allows("read", name)]
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": int(server.indexes[name].reader.version.manifest.get("created", 0)),
                "owned_by": "hornbeam",
            }
            for name in readable
        ],
    }


@router.post(
    "/chat/completions",
    response_class=Response,
    responses={
        200: {"content": {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {}}},
        429: {"model": Failure},
    },
)
async def chat(body: ChatRequest, server: TheServer, client: TheClient, request: Request) -> Response:
    """Answer the last message of the user, in its conversation, from the index that `model` names."""
    index = permitted(server, client, "read", body.model)
    ask = _asked(body)
    identity = f"chatcmpl-{uuid.uuid4().hex}"
    if not body.stream:
        events, _ = await collected(server, index, ask, client, request)
        final = events[-1]
        assert isinstance(final, Final)
        return JSONResponse(_completion(identity, body.model, final))
    leave, left_s = await entered(server, client, request, deadline_of(server, ask))
    events_on = server.answer(index, index.reader, ask, left_s, asker_of(request))
    usage = body.stream_options is not None and body.stream_options.include_usage
    return EventStream(_chunks(events_on, identity, body.model, request, usage=usage), left_s, leave)


def _asked(body: ChatRequest) -> Ask:
    said = [
        (message.role, message.text) for message in body.messages if message.role in ("user", "assistant")
    ]
    asked = [at for at, (role, _) in enumerate(said) if role == "user"]
    if not asked:
        raise HTTPException(422, "messages: none of them is the user's")
    try:
        return Ask(question=said[asked[-1]][1], history=past_turns(said[: asked[-1]]))
    except ValidationError as error:
        raise HTTPException(
            422, f"messages: the user's last is empty or longer than {LONGEST_TEXT} characters"
        ) from error


def past_turns(said: Sequence[tuple[str, str]]) -> list[PastTurn]:
    """The last turns of a conversation, each with the answer that followed it, less our marks and sources."""
    turns: list[PastTurn] = []
    for role, text in said:
        if role == "user":
            cut = text[:LONGEST_TEXT]
            try:
                turns.append(PastTurn(question=cut))
            except ValidationError:
                continue  # empty, or no text: nothing can lean on it
        elif turns:
            answer = without_marks(_SOURCES.sub("", text))[:LONGEST_TEXT]
            turns[-1] = turns[-1].model_copy(update={"answer": answer})
    return turns[-_TURNS:]


def _completion(identity: str, model: str, final: Final) -> dict[str, Any]:
    return {
        "id": identity,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": final.answer + _sources(final),
                    "citations": [evidence_json(piece) for piece in final.citations],
                },
                "finish_reason": _finish(final),
                "logprobs": None,
            }
        ],
        "usage": _usage(final),
    }


async def _chunks(
    events: AsyncGenerator[Event, None], identity: str, model: str, request: Request, *, usage: bool
) -> AsyncGenerator[str, None]:
    created, written = int(time.time()), ""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data(_head(identity, model, created) | {"choices": [choice]})

    try:
        yield chunk({"role": "assistant", "content": ""})
        async for event in events:
            if isinstance(event, AnswerText):
                written += event.text
                yield chunk({"content": event.text})
            elif isinstance(event, Final):
                # A rejection is written nowhere else.
                yield chunk({"content": ("" if written else event.answer) + _sources(event)})
                yield chunk({}, _finish(event))
                if usage:
                    yield _data(_head(identity, model, created) | {"choices": [], "usage": _usage(event)})
                yield "data: [DONE]\n\n"
    except HornbeamError as error:
        request.scope["state"]["problem"] = str(error)
        yield _data({"error": {"message": str(error), "type": "unavailable", "code": 503}})
    finally:
        await events.aclose()


def _head(identity: str, model: str, created: int) -> dict[str, Any]:
    return {"id": identity, "object": "chat.completion.chunk", "created": created, "model": model}


def _data(form: dict[str, Any]) -> str:
    return f"data: {json.dumps(form, ensure_ascii=False)}\n\n"


def _sources(final: Final) -> str:
    lines = [
        f"[{piece.label}] {piece.title or piece.source}:{piece.start}-{piece.end}"
        for piece in final.citations
        if piece.source is not None
    ]
    return "\n\n" + "\n".join(lines) if lines else ""


def _finish(final: Final) -> str:
    return "length" if final.cut else "stop"


def _usage(final: Final) -> dict[str, int]:
    prompt, output = final.tokens.get("prompt", 0), final.tokens.get("output", 0)
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
