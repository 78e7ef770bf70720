"""The FastAPI application over a `Server`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response

from hornbeam import __version__
from hornbeam.errors import HornbeamError
from hornbeam.serve import (
    asking_routes,
    build_routes,
    chat_routes,
    operating_routes,
    question_routes,
    reading_routes,
    schema_routes,
)
from hornbeam.serve.access import TheServer
from hornbeam.serve.failures import add_handlers
from hornbeam.serve.forms import Failure
from hornbeam.serve.frame import Frame
from hornbeam.serve.page_routes import add_page
from hornbeam.serve.server import Server

log = logging.getLogger("hornbeam.serve")
_LOOK_EVERY_S = 1.0
#: What any request may be answered with.
_REFUSALS = (400, 401, 403, 404, 409, 413, 421, 422, 429, 503)


def create_app(server: Server, origins: Sequence[str] = ()) -> FastAPI:
    """
    Args:
        server: closed when the application's lifespan ends.
        origins: web sites whose pages may call; none by default.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(_watch(server))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.to_thread(server.close)

    app = FastAPI(
        title="Hornbeam",
        version=__version__,
        description="Questions over knowledge graphs: streamed, cited, offline.",
        lifespan=lifespan,
        responses={status: {"model": Failure} for status in _REFUSALS},
        # Their pages load scripts from elsewhere; /openapi.json is there.
        docs_url=None,
        redoc_url=None,
    )
    app.state.server = server
    add_handlers(app)
    app.include_router(chat_routes.router)
    app.include_router(asking_routes.router)
    app.include_router(reading_routes.router)
    app.include_router(operating_routes.router)
    app.include_router(build_routes.router)
    app.include_router(question_routes.router)
    app.include_router(schema_routes.router)
    add_page(app)
    app.get("/healthz", tags=["operating"])(_health)
    app.get("/readyz", tags=["operating"])(_ready)
    app.get("/metrics", tags=["operating"], response_class=Response)(_metrics)
    app.add_middleware(Frame, server=server)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["X-Request-Id", "Retry-After"],
        )
    return app


async def _health() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


async def _ready(server: TheServer) -> Response:
    """Whether a question would be taken now: 503 while the queue is full."""
    full = server.questions.waiting >= server.settings.serve.queue > 0
    return JSONResponse({"status": "busy" if full else "ready"}, 503 if full else 200)


async def _metrics(server: TheServer) -> Response:
    """Prometheus' text form."""
    server.metrics.building(await asyncio.to_thread(server.stages_under_way))
    return Response(server.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _watch(server: Server) -> None:
    """Take versions that another process promotes."""
    told: dict[str, str] = {}
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        for name, index in server.indexes.items():
            try:
                await server.refresh(index)
                told.pop(name, None)
            except (HornbeamError, OSError) as error:
                if told.get(name) != str(error):
                    told[name] = str(error)
                    log.error("index %s goes on with its version: %s", name, error)
