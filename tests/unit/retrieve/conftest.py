from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hornbeam.index.build import build_indexes
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import EmbedderSettings
from support.version_by_hand import HashedWords, small_rows, write_tables


@pytest.fixture
def open_rows(tmp_path: Path) -> Callable[[Mapping[str, Sequence[Any]]], KnowledgeBase]:
    """Write, index and open a version of the given rows."""

    def build(rows: Mapping[str, Sequence[Any]]) -> KnowledgeBase:
        directory = write_tables(tmp_path / "version", rows)
        build_indexes(directory, HashedWords(), EmbedderSettings())
        return KnowledgeBase.open(directory, HashedWords())

    return build


@pytest.fixture
def kb(open_rows: Callable[[Mapping[str, Sequence[Any]]], KnowledgeBase]) -> KnowledgeBase:
    return open_rows(small_rows())
