"""A server over a small index by hand, with a model by script, on a socket of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from hornbeam.index.build import build_indexes
from hornbeam.llm.protocol import LanguageModel
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType
from hornbeam.serve.app import create_app
from hornbeam.serve.indexes import Reader, ServedIndex
from hornbeam.serve.keys import KeyRing
from hornbeam.serve.server import Server
from hornbeam.settings import EmbedderSettings, Settings
from hornbeam.store.ledger import FORMAT_VERSION
from hornbeam.store.versions import open_pinned
from support.scripted_model import ScriptedModel
from support.version_by_hand import HashedWords, small_rows, write_tables

QUESTION = "What did Curie discover in Warsaw?"
FIRST, SECOND = "v" + "1" * 16, "v" + "2" * 16


def write_version(index: Path, version_id: str) -> None:
    directory = write_tables(index / "versions" / version_id, small_rows())
    build_indexes(directory, HashedWords(), EmbedderSettings())
    manifest = {
        "format": FORMAT_VERSION,
        "version": version_id,
        "created": float(version_id[1]),
        "counts": {"documents": 2},
        "communities": {"leaf": {}},
        "schema": {},
        "model": {"name": "by hand"},
        "embedder": {"name": "words", "fingerprint": HashedWords().fingerprint},
        "gates": {"degraded": {"value": 0.01, "threshold": 0.02, "passed": True}},
        "files": {},
    }
    (directory / "schema.json").write_text(schema_by_hand().to_json(), "utf-8")
    (directory / "manifest.json").write_text(json.dumps(manifest), "utf-8")


def schema_by_hand() -> GraphSchema:
    """The types of `small_rows`."""
    rows = small_rows()
    return GraphSchema(
        name="pioneers",
        version=1,
        entity_types=[EntityType(name=one) for one in sorted({row.type for row in rows["entities"]})],
        relation_types=[RelationType(name=one) for one in sorted({row.type for row in rows["relations"]})],
        attribute_types=[AttributeType(name=one) for one in sorted({row.type for row in rows["attributes"]})],
    )


def opened(directory: Path, beside: Reader | None) -> Reader:
    version = open_pinned(directory)
    return Reader(KnowledgeBase.open(version.directory, HashedWords()), version)


def short() -> ScriptedModel:
    return ScriptedModel(lambda request: "Polonium [1].")


@contextmanager
def running(
    index: Path,
    model: LanguageModel | None = None,
    keys: KeyRing | None = None,
    *,
    opened: Callable[[Path, Reader | None], Reader] = opened,
    **limits: Any,
) -> Iterator[tuple[str, Server]]:
    """The address of a server with the index `papers`, and it.

    Args:
        limits: settings of the section `serve`.
    """
    settings = Settings().model_copy(update={"serve": Settings().serve.model_copy(update=limits)})
    served = ServedIndex("papers", index, opened)
    served.open()
    server = Server({"papers": served}, model or short(), settings, keys or KeyRing(index / "keys.json"))
    uvicorn_server = uvicorn.Server(
        uvicorn.Config(
            create_app(server), port=0, log_config=None, access_log=False, timeout_graceful_shutdown=1
        )
    )
    thread = threading.Thread(target=uvicorn_server.run, daemon=True)
    thread.start()
    until(lambda: uvicorn_server.started)
    port = uvicorn_server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        uvicorn_server.should_exit = True
        thread.join(timeout=30)
        assert not thread.is_alive()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def events_of(text: str) -> list[dict[str, Any]]:
    return [
        json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")
    ]
