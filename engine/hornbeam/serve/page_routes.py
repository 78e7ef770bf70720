"""The page: files of the package, no build step, nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from hornbeam.serve.failures import failure
from hornbeam.serve.page_files import PageFile, PageFiles, read_page

_FOLDER = Path(__file__).parent / "page"
#: Scripts and styles from here alone, none inline; what is drawn into the graph's canvas needs no more.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ASKED_AGAIN = "no-cache"  # and not sent again while it is the same
_KEPT = "public, max-age=31536000, immutable"


def add_page(app: FastAPI) -> None:
    files = read_page(_FOLDER)

    async def page(request: Request) -> Response:
        return _answer(request, files.page)

    async def file(request: Request) -> Response:
        return _part(request, files)

    app.add_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_route("/page/{path:path}", file, methods=["GET", "HEAD"], include_in_schema=False)


def is_page(path: str) -> bool:
    return path == "/" or path.startswith("/page/")


def headers_of_page(path: str, status: int) -> dict[str, str]:
    """What is sent in place of the stricter headers of everything else; {} for everything else."""
    if not is_page(path) or status not in (200, 304):
        return {}
    # What lies below /page/ has the hash of its contents in its address.
    return {"Content-Security-Policy": _POLICY, "Cache-Control": _ASKED_AGAIN if path == "/" else _KEPT}


def _part(request: Request, files: PageFiles) -> Response:
    found = files.by_address.get(request.path_params["path"])
    return failure(404, "no such file of the page") if found is None else _answer(request, found)


def _answer(request: Request, file: PageFile) -> Response:
    headers = {"ETag": file.etag, "Vary": "Accept-Encoding"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if file.compressed is not None and _takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(
            file.compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.media_type
        )
    return Response(file.body, headers=headers, media_type=file.media_type)


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
