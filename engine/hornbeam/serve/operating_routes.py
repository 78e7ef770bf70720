"""Which version is served: for keys with the scope operate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter

from hornbeam.serve.access import OperableIndex, TheServer
from hornbeam.serve.forms import Failure, Promotion
from hornbeam.serve.indexes import ServedIndex
from hornbeam.serve.server import Server
from hornbeam.store.lock import write_lock
from hornbeam.store.promotions import promote_passed
from hornbeam.store.promotions import rollback as go_back
from hornbeam.store.versions import Version, current_version_id

router = APIRouter(
    prefix="/v1/{index}/versions",
    tags=["operating"],
    responses={403: {"model": Failure}, 409: {"model": Failure}},
)


@router.post("/promote")
async def promote(body: Promotion, index: OperableIndex, server: TheServer) -> dict[str, Any]:
    """Serve a version from now on; requests under way end with the one that they began with."""
    return await _switch(
        server, index, lambda: promote_passed(index.directory, body.version, force=body.force)
    )


@router.post("/rollback")
async def rollback(index: OperableIndex, server: TheServer) -> dict[str, Any]:
    """Go back to the version that was promoted before."""
    return await _switch(server, index, lambda: go_back(index.directory))


async def _switch(server: Server, index: ServedIndex, change: Callable[[], Version]) -> dict[str, Any]:
    def work() -> dict[str, Any]:
        before = current_version_id(index.directory)
        with write_lock(index.directory):
            return {"before": before, "current": change().version_id}

    done = await asyncio.to_thread(work)
    await server.refresh(index)
    return done
