from pathlib import Path

import pytest

from hornbeam.index.build import build_indexes
from hornbeam.records import TABLES
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import EmbedderSettings
from support.version_by_hand import HashedWords, small_rows, write_tables


def _opened(directory: Path) -> KnowledgeBase:
    build_indexes(directory, HashedWords(), EmbedderSettings())
    return KnowledgeBase.open(directory, HashedWords())


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    return _opened(write_tables(tmp_path / "version", small_rows()))


@pytest.fixture
def empty_kb(tmp_path: Path) -> KnowledgeBase:
    return _opened(write_tables(tmp_path / "version", {name: [] for name in TABLES}))
