"""Open a promoted version for questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.index.embedder import Embedder, find_embedder
from hornbeam.settings import Settings
from hornbeam.store.versions import Version, open_current

if TYPE_CHECKING:
    from hornbeam.retrieve.knowledge_base import KnowledgeBase


def open_embedder(settings: Settings) -> Embedder:
    return Embedder(find_embedder(settings.embedder.path), settings.device)


def open_knowledge_base(index: Path, settings: Settings) -> tuple[KnowledgeBase, Version]:
    """The current version and its resident view.

    Raises:
        StoreError: no current version, or the embedder is not the one that the vectors were made with.
    """
    version = open_current(index)
    from hornbeam.retrieve.knowledge_base import KnowledgeBase

    expected = version.manifest["embedder"]["fingerprint"]
    kb = KnowledgeBase.open(
        version.directory, open_embedder(settings), expected_embedder_fingerprint=expected
    )
    return kb, version
