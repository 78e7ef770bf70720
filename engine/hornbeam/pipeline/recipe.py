"""What stored results and versions depend on besides the documents, as keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import hornbeam
from hornbeam.errors import UsageError, reason
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.stages import GRAMMAR_VERSION
from hornbeam.index.texts import TEXTS_VERSION
from hornbeam.llm.protocol import ModelIdentity
from hornbeam.records import content_id
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings

#: Raise when the chunker's cuts change: stored chunks are then made anew.
CHUNKER_VERSION = "1"
#: Begins the chunking fingerprint of documents that an import brought: they have chunks and facts of their
#: own, whatever model reads the rest.
_IMPORTED = "imported:"
#: Settings of `extract` that do not change what a call returns: other values must not repeat every call.
_NOT_OF_A_CALL = {
    "window", "retries", "retry_budget", "retry_splits", "retry_types", "grammar_seconds", "min_confidence",
    "verify", "verify_threshold", "known_facts", "example_file",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    chunking: str  # of a document's chunks
    extraction: str  # of a chunk's extraction
    verification: str | None = None  # of the questions about facts; None: there are none
    #: of a chunk's extraction by its document's language, where there are prompts in it
    by_language: Mapping[str, str] = field(default_factory=dict)
    prompts: str = ""  # version of all prompts

    def verification_key(self, extraction_key: str, extraction: ChunkExtraction) -> str:
        """A result that took another's place has facts of its own to ask about."""
        facts = extraction.model_dump_json(include={"entities", "relations", "attributes"})
        return content_id("v", self.verification or "", extraction_key, facts)

    def extraction_key(self, text_hash: str, chunking: str, language: str) -> str:
        """
        Args:
            chunking: of the chunk's document.
            language: of the chunk's document.
        """
        extraction = self.by_language.get(language, self.extraction)
        if chunking.startswith(_IMPORTED):
            extraction = chunking
        # As `content_id("x", extraction, text_hash)`: there is one for every chunk.
        digest = _begun(extraction).copy()
        encoded = text_hash.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return f"x{digest.hexdigest()[:20]}"


@cache
def _begun(extraction: str) -> Any:
    """The hash of what a content id of two parts begins with."""
    encoded = extraction.encode()
    return hashlib.sha256(len(encoded).to_bytes(8, "little") + encoded)


def imported(form: str) -> str:
    """The chunking fingerprint of documents that an import in this form brought."""
    return _IMPORTED + form


def text_hash(text: str) -> str:
    return content_id("t", text)


def make_recipe(
    settings: Settings,
    schema: GraphSchema,
    model: ModelIdentity,
    prompt_versions: Mapping[str, str],
    verification: str | None = None,
    prompts: str = "",
) -> Recipe:
    """What a model reads the index's texts with.

    Args:
        prompt_versions: of the extractor, by language, "" for all others.
        prompts: version of all prompts.
        verification: version of the verifier's questions, where there is one.
    """
    chunk = settings.chunk
    # The model's tokenizer decides where chunks end.
    chunking = content_id(
        "", CHUNKER_VERSION, model.fingerprint, str(chunk.max_tokens), str(chunk.overlap_tokens)
    )
    call = settings.extract.model_dump_json(exclude=_NOT_OF_A_CALL)
    by_language = {
        language: content_id("", version, schema.hash(), GRAMMAR_VERSION, model.fingerprint, call)
        for language, version in prompt_versions.items()
    }
    extraction = by_language.pop("")
    return Recipe(chunking, extraction, verification, by_language, prompts)


def version_recipe(settings: Settings, recipe: Recipe, schema: GraphSchema, embedder_fingerprint: str) -> str:
    """What a version's files depend on besides the documents.

    Args:
        schema: as published, with the types of imported facts.
    """
    settings = _with_probes_by_content(settings)
    published = settings.fingerprint("extract", "resolve", "organise", "gates")
    asked = recipe.verification or ""
    by_language = [part for pair in sorted(recipe.by_language.items()) for part in pair]
    asking = (recipe.extraction, *by_language, asked, recipe.prompts)
    embedded = (embedder_fingerprint, TEXTS_VERSION)
    parts = (recipe.chunking, *asking, schema.hash(), *embedded, published)
    return content_id("", hornbeam.__version__, *parts)


def reading_key(settings: Settings, recipe: Recipe) -> str:
    """What the documents and chunks of a file depend on besides its bytes."""
    return content_id("", hornbeam.__version__, settings.fingerprint("corpus"), recipe.chunking)


def _with_probes_by_content(settings: Settings) -> Settings:
    """The path of the probes says nothing; other questions may decide otherwise."""
    path = settings.gates.probes
    if path is None:
        return settings
    try:
        content = content_id("", Path(path).read_text("utf-8", "replace"))
    except OSError as error:
        raise UsageError(f"gates.probes {path}: {reason(error)}") from error
    return settings.model_copy(update={"gates": settings.gates.model_copy(update={"probes": content})})
