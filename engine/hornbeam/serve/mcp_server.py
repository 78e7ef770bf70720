"""An open index as tools for programs that speak the Model Context Protocol."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field, ValidationError

from hornbeam import __version__
from hornbeam.answer.engines import ENGINES
from hornbeam.answer.events import Final, final_json
from hornbeam.answer.session import Session
from hornbeam.errors import HornbeamError
from hornbeam.serve.forms import Text
from hornbeam.serve.graph import entity_json, neighbourhood_json

_SHOWN = 50

Identifier = Annotated[str, Field(description="an entity's id, as search gives it", max_length=200)]


class _Server(MCPServer[Any]):
    """Says of arguments that do not fit what is wrong with each, in one line."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            problems = (
                f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}"
                for one in error.__cause__.errors()
            )
            raise ToolError(f"{name}: {'; '.join(problems)}") from error.__cause__


def create_mcp_server(session: Session, deadline_s: float) -> MCPServer[Any]:
    """
    Args:
        session: stays open, and is the caller's to close.
        deadline_s: of a question.
    """
    server = _Server(
        "hornbeam",
        version=__version__,
        instructions="A knowledge graph made from documents. ask answers with citations; search finds "
        "entities, facts and passages; entity and neighbourhood look at the graph around what was found.",
        log_level="WARNING",
    )
    kb = session.kb

    def row_of(entity_id: str) -> int:
        row = kb.entities.row_of("entity_id", entity_id)
        if row is None:
            raise ToolError(f"no entity '{entity_id}' in this index; search gives the ids")
        return row

    @server.tool()
    async def ask(
        question: Text, engine: Annotated[str, Field(description="one of " + ", ".join(ENGINES))] = "auto"
    ) -> dict[str, Any]:
        """Answer a question from the documents, with citations of document and character span."""
        try:
            final: Final = await session.ask(question, engine=engine, deadline=deadline_s)
        except HornbeamError as error:
            raise ToolError(str(error)) from error
        return final_json(final)

    @server.tool()
    async def search(text: Text, top_k: Annotated[int, Field(ge=1, le=100)] = 10) -> dict[str, Any]:
        """Find entities, facts, paths, communities and passages, best first, with where they stand."""
        try:
            return (await asyncio.to_thread(session.search, text, top_k)).to_json()
        except HornbeamError as error:
            raise ToolError(str(error)) from error

    @server.tool()
    async def entity(entity_id: Identifier) -> dict[str, Any]:
        """One entity: attributes, relations, community, and the place that best shows it."""
        return await asyncio.to_thread(lambda: entity_json(kb, row_of(entity_id), _SHOWN))

    @server.tool()
    async def neighbourhood(
        entity_id: Identifier,
        depth: Annotated[int, Field(ge=1, le=3)] = 1,
        limit: Annotated[int, Field(ge=1, le=500)] = _SHOWN,
    ) -> dict[str, Any]:
        """The relations around an entity, the nearest first, and the entities at their ends."""
        return await asyncio.to_thread(lambda: neighbourhood_json(kb, row_of(entity_id), depth, limit))

    return server
