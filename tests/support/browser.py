"""Debian's Chromium, driven by Playwright, and a page that must not err nor ask anybody else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Software GL, and nothing that a browser does of its own accord.
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
_PATIENCE_MS = 60_000


def chromium_path() -> str | None:
    """HORNBEAM_CHROMIUM, else what Debian installs."""
    return os.environ.get("HORNBEAM_CHROMIUM") or shutil.which("chromium")


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(
    browser: Browser, url: str, *, key: str = "", expected: tuple[str, ...] = (), **context: Any
) -> Iterator[Page]:
    """A page of its own context; at the end it must have logged no error and asked nobody but `url`.

    Args:
        key: an API key, as if it had been entered.
        expected: parts of messages that are meant to be in the console.
        context: of Playwright's `new_context`.
    """
    options = {"viewport": {"width": 1280, "height": 820}, "locale": "en-GB", "reduced_motion": "reduce"}
    opened = browser.new_context(**(options | context))
    if key:
        opened.add_init_script(f"sessionStorage.setItem('hornbeam.key', '{key}')")
    page = opened.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    wrong: list[str] = []
    asked: list[str] = []

    def heard(kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(part in text for part in expected):
            wrong.append(f"{kind}: {text}")

    page.on("console", lambda message: heard(message.type, message.text))
    page.on("pageerror", lambda error: wrong.append(f"uncaught: {error}"))
    opened.on("request", lambda request: asked.append(request.url))
    try:
        yield page
        assert wrong == [], wrong  # said, as this module's assertions are not rewritten
        here = urlsplit(url).netloc
        elsewhere = [one for one in asked if urlsplit(one).netloc != here]
        assert elsewhere == [], elsewhere
    finally:
        opened.close()
