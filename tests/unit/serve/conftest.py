from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import httpx
import pytest

from hornbeam.store.promotions import promote
from support.serving import FIRST, SECOND, running, write_version


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("served") / "index"
    for version_id in (FIRST, SECOND):
        write_version(index, version_id)
    return index


@pytest.fixture
def index(made: Path, tmp_path: Path) -> Path:
    """An index with two versions, the first promoted."""
    directory = tmp_path / "index"
    copytree(made, directory)
    promote(directory, FIRST)
    return directory


@pytest.fixture
def client(index: Path) -> Iterator[httpx.Client]:
    with running(index) as (url, _), httpx.Client(base_url=url, timeout=30) as opened_client:
        yield opened_client
