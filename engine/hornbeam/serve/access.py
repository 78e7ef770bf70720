"""Who asks, and what they may do with which index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hornbeam.serve.indexes import ServedIndex
from hornbeam.serve.keys import Key, Scope
from hornbeam.serve.server import Asker, Server

_BEARER = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class Client:
    """Args: key: None for somebody without one, where that is allowed."""

    name: str  # of the key, else the address: whose turn it is in a queue
    key: Key | None


def identify(server: Server, authorization: str | None, address: str) -> Client:
    """
    Raises:
        HTTPException: 401, a key is needed, or this one is not known.
    """
    if authorization is None:
        if server.keys.keys():
            raise HTTPException(401, "an API key is needed: 'Authorization: Bearer KEY'", _BEARER)
        return Client(address, None)
    kind, _, secret = authorization.partition(" ")
    key = server.keys.find(secret.strip()) if kind.lower() == "bearer" else None
    if key is not None:
        return Client(f"key {key.key_id}", key)
    if server.keys.keys():
        raise HTTPException(401, "this API key is not known", _BEARER)
    return Client(address, None)  # chat programs insist on sending one


def server_of(request: Request) -> Server:
    server = request.app.state.server
    assert isinstance(server, Server)
    return server


def client_of(request: Request) -> Client:
    client = request.scope["state"]["client"]
    assert isinstance(client, Client)
    return client


def asker_of(request: Request) -> Asker:
    state = request.scope["state"]
    return Asker(client_of(request).name, state["request_id"], state.get("span"))


def permitted(server: Server, client: Client, scope: Scope, name: str) -> ServedIndex:
    """
    Raises:
        HTTPException: 403, the client may not; 404, there is no such index. Who may not is not told which.
    """
    if client.key is None:
        if scope == "operate":
            raise HTTPException(403, "this needs an API key with the scope operate: 'hornbeam keys add'")
    elif not client.key.allows(scope, name):
        raise HTTPException(403, f"this API key has no scope {scope} for '{name}'")
    if name not in server.indexes:
        raise HTTPException(404, f"no index '{name}'; GET /v1/indexes lists them")
    return server.indexes[name]


IndexName = Annotated[str, Path(description="the name that it is served under", examples=["papers"])]


def _readable(index: IndexName, request: Request) -> ServedIndex:
    return permitted(server_of(request), client_of(request), "read", index)


def _operable(index: IndexName, request: Request) -> ServedIndex:
    return permitted(server_of(request), client_of(request), "operate", index)


ReadableIndex = Annotated[ServedIndex, Depends(_readable)]
OperableIndex = Annotated[ServedIndex, Depends(_operable)]
TheServer = Annotated[Server, Depends(server_of)]
TheClient = Annotated[Client, Depends(client_of)]
