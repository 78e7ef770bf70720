"""Looking at a graph and its versions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.exceptions import HTTPException

from hornbeam.errors import StoreError
from hornbeam.serve.access import ReadableIndex, TheClient, TheServer
from hornbeam.serve.documents import document_json
from hornbeam.serve.forms import VERSION_ID, Failure
from hornbeam.serve.graph import communities_json, community_json, entity_json, neighbourhood_json
from hornbeam.serve.indexes import Reader, ServedIndex
from hornbeam.serve.tree import entities_json, tree_json
from hornbeam.store.catalogue import catalogue
from hornbeam.store.differences import diff_versions
from hornbeam.store.versions import Version, read_version

router = APIRouter(prefix="/v1", tags=["graph"], responses={404: {"model": Failure}})

Limit = Annotated[int, Query(ge=1, le=500)]
Types = Annotated[tuple[str, ...], Query(max_length=100, description="of entities; repeatable; none: all")]
VersionId = Annotated[str, Path(pattern=VERSION_ID, examples=["v0123456789abcdef"])]
#: Characters of a document in one response, without what is around.
_LONGEST_SPAN = 20_000


@router.get("/indexes")
async def indexes(server: TheServer, client: TheClient) -> dict[str, Any]:
    """The indexes that the caller may read."""
    return {
        "feedback": server.remembered.can_rate,
        "indexes": [
            {
                "name": name,
                "version": index.reader.version.version_id,
                "counts": index.reader.version.manifest.get("counts", {}),
                "may_operate": client.key is not None and client.key.allows("operate", name),
            }
            for name, index in server.indexes.items()
            if client.key is None or client.key.allows("read", name)
        ],
    }


@router.get("/{index}/entities")
async def entities(
    index: ReadableIndex,
    text: Annotated[str, Query(max_length=200, description="part of a name")] = "",
    types: Types = (),
    limit: Limit = 50,
) -> dict[str, Any]:
    """Entities by name, best first, without a model; without text those with most relations."""
    reader = index.reader
    found = await asyncio.to_thread(entities_json, reader.kb, text, types, limit)
    return found | {"version": reader.version.version_id}


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
        return communities_json(reader.kb, _community_row(reader, parent), offset, limit)

    return await asyncio.to_thread(work) | {"version": reader.version.version_id}


@router.get("/{index}/communities/{community_id}")
async def community(index: ReadableIndex, community_id: str) -> dict[str, Any]:
    """One community: name, summary, keywords, how many entities are in it."""
    reader = index.reader

    def work() -> dict[str, Any]:
        row = _community_row(reader, community_id)
        assert row is not None
        return community_json(reader.kb, row)

    return await asyncio.to_thread(work) | {"version": reader.version.version_id}


@router.get("/{index}/tree")
async def tree(
    index: ReadableIndex,
    parent: str | None = None,
    limit: Limit = 80,
    types: Types = (),
    min_confidence: Annotated[float, Query(ge=0, le=1, description="of relations")] = 0.0,
) -> dict[str, Any]:
    """A picture of what lies below `parent` (or at the top): the largest communities and how many relations
    link them, or the best connected members and their relations."""
    reader = index.reader

    def work() -> dict[str, Any]:
        row = _community_row(reader, parent)
        return tree_json(reader.kb, row, limit, types, min_confidence)

    return await asyncio.to_thread(work) | {"version": reader.version.version_id}


@router.get("/{index}/documents/{document_id}")
async def document(
    index: ReadableIndex,
    document_id: str,
    start: Annotated[int, Query(ge=0, le=2**31, description="of the span, in characters")] = 0,
    end: Annotated[int | None, Query(ge=0, le=2**31)] = None,
    around: Annotated[int, Query(ge=0, le=20_000, description="characters before and after it")] = 4000,
) -> dict[str, Any]:
    """A document's text around a span, as a citation names it."""
    reader = index.reader

    def work() -> dict[str, Any]:
        row = reader.kb.documents.row_of("document_id", document_id)
        if row is None:
            raise HTTPException(404, "no such document in this version")
        last = min(start if end is None else max(start, end), start + _LONGEST_SPAN)
        return document_json(reader.kb, row, max(0, start - around), last + around)

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


@router.get("/{index}/versions/{version}")
async def version_of(index: ReadableIndex, version: VersionId) -> dict[str, Any]:
    """One version with its gates: value, threshold, whether it passed, examples of what did not."""
    found = await asyncio.to_thread(_version, index, version)
    manifest = found.manifest
    told = {
        key: manifest.get(key) for key in ("created", "parent", "counts", "communities", "schema", "gates")
    }
    return {"version": found.version_id, **told, "model": manifest["model"]["name"]}


@router.get("/{index}/versions/{version}/diff")
async def diff(
    index: ReadableIndex,
    version: VersionId,
    before: Annotated[str, Query(pattern=VERSION_ID, description="the version to compare with")],
    examples: Annotated[int, Query(ge=0, le=100)] = 10,
) -> dict[str, Any]:
    """What is added, removed and changed in a version against another one."""

    def work() -> dict[str, Any]:
        return diff_versions(_version(index, before), _version(index, version), examples=examples)

    return await asyncio.to_thread(work)


def _version(index: ServedIndex, version: str) -> Version:
    try:
        return read_version(index.directory, version)
    except StoreError as error:
        raise HTTPException(404, "no such version, or it cannot be read") from error


def _community_row(reader: Reader, community: str | None) -> int | None:
    if community is None:
        return None
    row = reader.kb.communities.row_of("community_id", community)
    if row is None:
        raise HTTPException(404, "no such community in this version")
    return row


def _entity_row(reader: Reader, entity_id: str) -> int:
    row = reader.kb.entities.row_of("entity_id", entity_id)
    if row is None:
        raise HTTPException(404, "no such entity in this version")
    return row
