"""From settings to what builds and questions work with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.errors import UsageError
from hornbeam.index.embedder import ROUGH, Embedder, TextEmbedder, find_embedder
from hornbeam.index.hashed_embedder import NAME as HASHED
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.schema.load import load_schema
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings
from hornbeam.store.damage import check_sizes, naming_damage
from hornbeam.store.schemas import accepted_schema
from hornbeam.store.versions import Version, open_pinned

if TYPE_CHECKING:
    from hornbeam.llm.protocol import LanguageModel
    from hornbeam.retrieve.knowledge_base import KnowledgeBase
    from hornbeam.retrieve.reranking import Reranker

#: Folders of a version that are mapped into memory.
_OPENED = ("graph", "lexical", "rows", "vectors")


def open_schema(index: Path, settings: Settings) -> tuple[GraphSchema, str]:
    """The schema to build with, and a line that says so where it could surprise.

    The fast tier has a schema of its own. One that is given (by an option, a settings file, the environment)
    wins; else the one that was accepted for the index; else the default.

    Raises:
        SchemaError: the schema cannot be used.
    """
    from hornbeam.extract.cooccurrence import SCHEMA

    if settings.extract.tier == "fast":
        own = load_schema(SCHEMA)
        if "schema_file" not in settings.model_fields_set or settings.schema_file == SCHEMA:
            return own, ""
        given = load_schema(settings.schema_file)  # not needed now, but meant: a mistake in it is told now
        return own, f"fast tier: its schema is '{own.name}', '{given.name}' is for the model tier"
    accepted = accepted_schema(index)
    if accepted is None:
        return load_schema(settings.schema_file), ""
    named = f"schema '{accepted.name}' version {accepted.version}"
    if "schema_file" not in settings.model_fields_set:
        return accepted, f"{named}, accepted for this index"
    given = load_schema(settings.schema_file)
    if given.hash() == accepted.hash():
        return accepted, ""
    return given, f"schema '{given.name}' as given; {named}, which was accepted for this index, is not used"


def open_build_model(settings: Settings) -> LanguageModel:
    """The settings' model; for the fast tier its tokenizer alone, behind a model that generates nothing."""
    from hornbeam.llm.opening import open_model
    from hornbeam.llm.unused import UnusedModel

    model = open_model(settings)
    return UnusedModel(model) if settings.extract.tier == "fast" else model


def open_embedder(settings: Settings) -> TextEmbedder:
    if settings.embedder.kind == "hashed":
        return HashedEmbedder()
    return Embedder(find_embedder(settings.embedder.path), settings.device, settings.embedder.dtype)


def embedder_of(version: Version, settings: Settings) -> TextEmbedder:
    """The embedder for a version's vectors: hashed if they are, else the one that is set, in the precision in
    which they were made."""
    made_by = version.manifest["embedder"]
    if made_by["name"] == HASHED:
        return HashedEmbedder()
    dtype = ROUGH if made_by["fingerprint"].startswith(ROUGH) else "float32"
    return open_embedder(
        settings.model_copy(update={"embedder": settings.embedder.model_copy(update={"dtype": dtype})})
    )


def open_knowledge_base(
    index: Path, settings: Settings, beside: KnowledgeBase | None = None
) -> tuple[KnowledgeBase, Version]:
    """The current version, pinned while the caller holds it, and its resident view.

    Args:
        beside: an open one, opened with the same settings; its models are used again where they fit.

    Raises:
        StoreError: no current version, one with a damaged file, or the embedder is not the one that the
            vectors were made with.
    """
    version = open_pinned(index)
    from hornbeam.retrieve.knowledge_base import KnowledgeBase

    expected = version.manifest["embedder"]["fingerprint"]
    if beside is not None and beside.embedder.fingerprint == expected:
        embedder = beside.embedder
    else:
        embedder = embedder_of(version, settings)
    check_sizes(version, _OPENED)
    with naming_damage(version):
        kb = KnowledgeBase.open(version.directory, embedder, expected_embedder_fingerprint=expected)
    if settings.retrieve.rerank == "cross-encoder":
        kb = replace(kb, reranker=_cross_encoder(settings) if beside is None else beside.reranker)
    return kb, version


def _cross_encoder(settings: Settings) -> Reranker:
    from hornbeam.index.cross_encoder import CrossEncoder

    if settings.retrieve.cross_encoder is None:
        raise UsageError("retrieve.rerank=cross-encoder: set retrieve.cross_encoder to its directory")
    return CrossEncoder(Path(settings.retrieve.cross_encoder).expanduser(), settings.device)
