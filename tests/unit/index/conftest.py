from pathlib import Path

import pytest

from hornbeam.index.build import build_indexes
from hornbeam.settings import EmbedderSettings
from support.version_by_hand import HashedWords, small_rows, write_tables


@pytest.fixture
def version(tmp_path: Path) -> Path:
    """The small version, indexed with `HashedWords`."""
    directory = write_tables(tmp_path / "version", small_rows())
    build_indexes(directory, HashedWords(), EmbedderSettings())
    return directory
