"""Around every request: an id, limits, the client's name, headers, one line in the log, a measurement."""

from __future__ import annotations

import json
import logging
import time
import uuid
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hornbeam.serve.access import identify
from hornbeam.serve.failures import CLIENT_GONE, failure
from hornbeam.serve.page_routes import headers_of_page, is_page
from hornbeam.serve.server import Server
from hornbeam.serve.streams import ClientGone

log = logging.getLogger("hornbeam.serve")

#: What anybody may ask, key or not; and the page, which holds no data.
_OPEN = frozenset({"/healthz", "/readyz"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Frame:
    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, started = uuid.uuid4().hex[:16], time.perf_counter()
        status, problem = 0, ""
        state: dict[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        tracing = self._server.tracing
        span = state["span"] = tracing.begin(Headers(scope=scope))

        async def framed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers.update(_HEADERS | headers_of_page(scope["path"], status))
            await send(message)

        try:
            refused = self._refusal(scope)
            if refused is not None:
                await refused(scope, receive, framed_send)
            else:
                await self._app(scope, self._limited(receive), framed_send)
        except ClientGone:
            problem = "the client did not read on"
        except Exception as error:  # noqa: BLE001 - the last place where a fault can become one line and a 500
            problem = f"{type(error).__name__}: {error}"
            if not status:
                await failure(500, f"an internal error; the server's log has it under {request_id}")(
                    scope, receive, framed_send
                )
        finally:
            status = status or CLIENT_GONE
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", "none")
            client = state.get("client")
            line = {
                "time": round(time.time(), 3),
                "request": request_id,
                "method": scope["method"] if scope["method"].isalpha() else "?",
                "route": route,
                "index": scope.get("path_params", {}).get("index"),
                "client": getattr(client, "name", None),
                "status": status,
                "ms": round(seconds * 1000, 1),
                "problem": problem or state.get("problem"),
            }
            told = {key: value for key, value in line.items() if value is not None}
            log.log(logging.ERROR if problem else logging.INFO, json.dumps(told, ensure_ascii=False))
            tracing.end(span, line)
            self._server.metrics.request(route, line["method"], status, seconds)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        # A page of another site that points its name at this machine sends that name; it has no key.
        open_to_all = self._server.loopback and not self._server.keys.keys()
        if open_to_all and _host(headers.get("host", "")) not in _LOOPBACK:
            return failure(421, "this server answers to localhost alone")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._server.settings.serve.body_bytes:
            return failure(413, _too_large(self._server))
        if scope["path"] in _OPEN or is_page(scope["path"]):
            return None
        try:
            address = (scope.get("client") or ("unknown",))[0]
            scope["state"]["client"] = identify(self._server, headers.get("authorization"), address)
        except HTTPException as error:
            return failure(error.status_code, error.detail, error.headers)
        return None

    def _limited(self, receive: Receive) -> Receive:
        """For a body that does not say how long it is."""
        limit, total = self._server.settings.serve.body_bytes, 0

        async def limited() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > limit:
                raise HTTPException(413, _too_large(self._server))
            return message

        return limited


def _host(header: str) -> str:
    """Without its port: "[::1]:8080" is "::1"."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if ":" in header else header


def _too_large(server: Server) -> str:
    return f"the body is larger than {server.settings.serve.body_bytes} bytes"
