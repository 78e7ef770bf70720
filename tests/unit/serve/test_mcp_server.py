"""The official client lists the tools and calls each."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from mcp import Client

from hornbeam.answer.session import Session
from hornbeam.serve.mcp_server import create_mcp_server
from hornbeam.settings import Settings
from support.serving import QUESTION, opened, short


def test_the_official_client_lists_the_tools_and_calls_them(index: Path) -> None:
    reader = opened(index, None)

    async def work(session: Session) -> None:
        async with Client(create_mcp_server(session, 30.0)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"ask", "search", "entity", "neighbourhood"}
            assert tools["ask"].description

            async def call(name: str, **arguments: Any) -> Any:
                result = await client.call_tool(name, arguments)
                text = getattr(result.content[0], "text", "")
                return text if result.is_error else json.loads(text)

            answer = await call("ask", question=QUESTION)
            assert answer["answer"].startswith("Polonium")
            assert answer["citations"][0]["label"] == 1
            found = await call("search", text="Curie", top_k=20)
            entity_id = next(item["ids"][0] for item in found["items"] if item["kind"] == "entity")
            entity = await call("entity", entity_id=entity_id)
            assert entity["relations"]
            near = await call("neighbourhood", entity_id=entity_id, depth=1)
            assert len(near["relations"]) == entity["relations_in_all"]
            assert "search gives the ids" in await call("entity", entity_id="../../etc/passwd")
            assert "no engine 'none'" in await call("ask", question=QUESTION, engine="none")
            wrong = await call("search", text="Curie", top_k=1000)
            assert wrong == "search: top_k: Input should be less than or equal to 100"
            assert await call("entity") == "entity: entity_id: Field required"

    with Session(reader.kb, reader.version, short(), Settings()) as session:
        asyncio.run(work(session))
