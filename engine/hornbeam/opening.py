"""From settings to what builds and questions work with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.index.embedder import Embedder, TextEmbedder, find_embedder
from hornbeam.index.hashed_embedder import NAME as HASHED
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.settings import Settings
from hornbeam.store.versions import Version, open_current

if TYPE_CHECKING:
    from hornbeam.llm.protocol import LanguageModel
    from hornbeam.retrieve.knowledge_base import KnowledgeBase
    from hornbeam.schema import GraphSchema


def open_schema(settings: Settings) -> GraphSchema:
    """The schema that a build fills: the settings', but the fast tier has its own."""
    from hornbeam.extract.cooccurrence import SCHEMA
    from hornbeam.schema import load_schema

    return load_schema(SCHEMA if settings.extract.tier == "fast" else settings.schema_file)


def open_build_model(settings: Settings) -> LanguageModel:
    """The settings' model; for the fast tier its tokenizer alone, behind a model that generates nothing."""
    from hornbeam.llm.opening import open_model
    from hornbeam.llm.unused import UnusedModel

    model = open_model(settings)
    return UnusedModel(model) if settings.extract.tier == "fast" else model


def open_embedder(settings: Settings) -> TextEmbedder:
    if settings.embedder.kind == "hashed":
        return HashedEmbedder()
    return Embedder(find_embedder(settings.embedder.path), settings.device)


def embedder_of(version: Version, settings: Settings) -> TextEmbedder:
    """The embedder for a version's vectors: hashed if they are, else the one that is set."""
    return HashedEmbedder() if version.manifest["embedder"]["name"] == HASHED else open_embedder(settings)


def open_knowledge_base(index: Path, settings: Settings) -> tuple[KnowledgeBase, Version]:
    """The current version and its resident view.

    Raises:
        StoreError: no current version, or the embedder is not the one that the vectors were made with.
    """
    version = open_current(index)
    from hornbeam.retrieve.knowledge_base import KnowledgeBase

    expected = version.manifest["embedder"]["fingerprint"]
    kb = KnowledgeBase.open(
        version.directory, embedder_of(version, settings), expected_embedder_fingerprint=expected
    )
    return kb, version
