"""The page: static files of the package, no build step, nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

_FOLDER = Path(__file__).parent / "page"
#: Scripts and styles from here alone, none inline; what is drawn into the graph's canvas needs no more.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",  # asked for again, and not sent again while it is the same
}


def add_page(app: FastAPI) -> None:
    app.get("/", include_in_schema=False)(_page)
    app.mount("/page", StaticFiles(directory=_FOLDER), name="page")


def headers_of_page(path: str) -> dict[str, str]:
    """What is sent in place of the stricter headers of everything else; {} for everything else."""
    return _HEADERS if path == "/" or path.startswith("/page/") else {}


async def _page() -> Response:
    return FileResponse(_FOLDER / "index.html")
