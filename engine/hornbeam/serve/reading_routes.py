"""Looking at a graph and its versions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException

from hornbeam.serve.access import ReadableIndex, TheClient, TheServer
from hornbeam.serve.forms import Failure
from hornbeam.serve.graph import communities_json, entity_json, neighbourhood_json
from hornbeam.serve.indexes import Reader
from hornbeam.store.catalogue import catalogue

router = APIRouter(prefix="/v1", tags=["graph"], responses={404: {"model": Failure}})

Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/indexes")
async def indexes(server: TheServer, client: TheClient) -> dict[str, Any]:
    """The indexes that the caller may read."""
    return {
        "indexes": [
            {
                "name": name,
                "version": index.reader.version.version_id,
                "counts": index.reader.version.manifest.get("counts", {}),
            }
            for name, index in server.indexes.items()
            if client.key is None or client.key.allows("read", name)
        ]
    }


@router.get("/{index}/entities/{entity_id}")
async def entity(index: ReadableIndex, entity_id: str, relations: Limit = 50) -> dict[str, Any]:
    """One entity: attributes, relations, community, and the place that best shows it."""
    reader = index.reader
    row = await asyncio.to_thread(_entity_row, reader, entity_id)
    return entity_json(reader.kb, row, relations) | {"version": reader.version.version_id}


@router.get("/{index}/neighbourhood")
async def neighbourhood(
    index: ReadableIndex, entity: str, depth: Annotated[int, Query(ge=1, le=3)] = 1, limit: Limit = 100
) -> dict[str, Any]:
    """The relations around an entity, the nearest first, and the entities at their ends."""
    reader = index.reader

    def work() -> dict[str, Any]:
        return neighbourhood_json(reader.kb, _entity_row(reader, entity), depth, limit)

    return await asyncio.to_thread(work) | {"version": reader.version.version_id}


@router.get("/{index}/communities")
async def communities(
    index: ReadableIndex,
    parent: str | None = None,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """The knowledge tree, a level at a time: below `parent`, or the top."""
    reader = index.reader

    def work() -> dict[str, Any]:
        row = None if parent is None else reader.kb.communities.row_of("community_id", parent)
        if parent is not None and row is None:
            raise HTTPException(404, "no such community in this version")
        return communities_json(reader.kb, row, offset, limit)

    return await asyncio.to_thread(work) | {"version": reader.version.version_id}


@router.get("/{index}/versions")
async def versions(index: ReadableIndex) -> dict[str, Any]:
    """Every version with its gates, oldest first; `serving` is the one that answers now."""
    found = await asyncio.to_thread(catalogue, index.directory)
    return {
        "index": index.name,
        "current": found["current"],
        "serving": index.reader.version.version_id,
        "versions": found["versions"],
        "unreadable": [one["version"] for one in found["unreadable"]],
    }


def _entity_row(reader: Reader, entity_id: str) -> int:
    row = reader.kb.entities.row_of("entity_id", entity_id)
    if row is None:
        raise HTTPException(404, "no such entity in this version")
    return row
