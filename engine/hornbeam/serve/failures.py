"""Errors as responses: one form, which OpenAI's clients read as well."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hornbeam.errors import GateRefused, HornbeamError, ModelError, StoreError, UsageError
from hornbeam.serve.admission import Busy
from hornbeam.serve.streams import ClientGone

_TYPES = {
    400: "invalid_request",
    401: "unauthorised",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    421: "misdirected",
    422: "invalid_request",
    429: "busy",
    503: "unavailable",
}
#: Nobody reads it; it is for the log.
CLIENT_GONE = 499


def failure(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    error = {"message": message, "type": _TYPES.get(status, "internal"), "code": status}
    return JSONResponse({"error": error}, status, headers)


def add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HornbeamError, _ours)
    app.add_exception_handler(Busy, _busy)
    app.add_exception_handler(ClientGone, _gone)


def status_of(error: HornbeamError) -> int:
    match error:
        case UsageError():
            return 400
        case GateRefused() | StoreError():
            return 409
        case ModelError():
            return 503
        case _:
            return 500


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return failure(error.status_code, str(error.detail), error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    said = [f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}".lstrip(": ") for one in error.errors()]
    return failure(422, "; ".join(said[:5]))


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, HornbeamError)
    return failure(status_of(error), _without_paths(error))


async def _busy(request: Request, error: Exception) -> Response:
    assert isinstance(error, Busy)
    return failure(429, str(error), {"Retry-After": str(error.retry_after)})


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


def _without_paths(error: HornbeamError) -> str:
    """A store's messages name folders and processes of the server's machine: they are for its log."""
    if not isinstance(error, StoreError):
        return str(error)
    if "being written" in str(error):
        return "the index is being written by another process; try again when it has ended"
    return "the index does not have that, or it cannot be read now"
