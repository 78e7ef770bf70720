from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest

from hornbeam.store.promotions import promote
from support.browser import chromium, chromium_path
from support.serving import FIRST, SECOND, write_version

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Not of the session: as long as Playwright is open its event loop counts as running, and no other test could
# start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed (extra dev)")
    if chromium_path() is None:
        missing = (
            "no Chromium: 'apt-get install chromium' (make test does, as root), or HORNBEAM_CHROMIUM=PATH"
        )
        if os.environ.get("HORNBEAM_REQUIRE_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def made_for_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index: Path = tmp_path_factory.mktemp("page") / "index"
    for version_id in (FIRST, SECOND):
        write_version(index, version_id)
    return index


@pytest.fixture
def index(made_for_page: Path, tmp_path: Path) -> Path:
    """An index with two versions, the first promoted, and an operator's key beside it."""
    directory = tmp_path / "index"
    copytree(made_for_page, directory)
    promote(directory, FIRST)
    return directory


@pytest.fixture
def operator(tmp_path: Path) -> tuple[Any, str]:
    from hornbeam.serve.keys import KeyRing

    ring = KeyRing(tmp_path / "keys.json")
    _, secret = ring.add("operator", [], ["*"])
    return ring, secret
