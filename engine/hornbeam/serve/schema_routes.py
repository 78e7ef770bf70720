"""The schema that builds of an index use, what is proposed to it, accepting and undoing."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from hornbeam.errors import StoreError, UsageError
from hornbeam.evolve.accepting import accept_proposals, read_proposals
from hornbeam.schema.load import load_schema
from hornbeam.serve.access import OperableIndex, ReadableIndex, TheServer
from hornbeam.serve.forms import AcceptForm, Failure
from hornbeam.store.lock import write_lock
from hornbeam.store.schemas import accepted_schema, undo_schema

router = APIRouter(
    prefix="/v1/{index}/schema",
    tags=["schema"],
    responses={403: {"model": Failure}, 409: {"model": Failure}},
)


@router.get("")
async def schema(index: ReadableIndex) -> dict[str, Any]:
    """The served version's schema, and the one that the next build uses if another was accepted."""
    reader = index.reader

    def work() -> dict[str, Any]:
        served = load_schema(str(reader.version.directory / "schema.json"))
        accepted = accepted_schema(index.directory)
        return {
            "version": reader.version.version_id,
            "served": served.to_dict(),
            "next": None if accepted is None else accepted.to_dict(),
            "can_undo": accepted is not None and accepted.parent is not None,
        }

    return await asyncio.to_thread(work)


@router.get("/proposals")
async def proposals(index: ReadableIndex, server: TheServer) -> dict[str, Any]:
    """Types that the last build with `evolve` found to lack, with what the gates say; empty if none asked."""

    def work() -> dict[str, Any]:
        if not (index.directory / "ledger.sqlite").is_file():  # versions alone were brought here to be served
            return {"schema": None, "proposals": []}
        try:
            return read_proposals(index.directory, server.settings.evolve).to_json()
        except StoreError as error:
            if "nothing is proposed" in str(error):
                return {"schema": None, "proposals": []}
            raise

    return await asyncio.to_thread(work)


@router.post("/accept")
async def accept(body: AcceptForm, index: OperableIndex, server: TheServer) -> dict[str, Any]:
    """Write the schema's next version with the named types (none named: all that pass); builds use it."""

    def work() -> dict[str, Any]:
        with write_lock(index.directory):
            accepted = accept_proposals(index.directory, body.types, server.settings.evolve, force=body.force)
        told = accepted.to_json()
        del told["file"]  # a path of the server's
        return told

    try:
        return await asyncio.to_thread(work)
    except UsageError as error:
        raise HTTPException(409, str(error).partition("; 'hornbeam")[0].partition("; --force")[0]) from error


@router.post("/undo")
async def undo(index: OperableIndex) -> dict[str, Any]:
    """Go back to the version before the accepted one; no file is removed, and the next build uses it."""

    def work() -> dict[str, Any]:
        with write_lock(index.directory):
            undone, now = undo_schema(index.directory)
        return {"undone": undone.version, "schema": now.name, "version": now.version}

    try:
        return await asyncio.to_thread(work)
    except StoreError as error:
        if "nothing to undo" in str(error):
            raise HTTPException(409, "nothing to undo: the schema is the first one") from error
        raise
