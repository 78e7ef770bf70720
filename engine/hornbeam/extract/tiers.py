"""The two ways to extract: by a model, or without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from hornbeam.extract.cooccurrence import CooccurrenceExtractor
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.stages import Extractor
from hornbeam.llm.grammar_check import GrammarCheck
from hornbeam.llm.protocol import LanguageModel
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings


class ChunkExtractor(Protocol):
    @property
    def version(self) -> str:
        """Part of the key of stored results."""
        ...

    def check_room(self, max_chunk_tokens: int) -> None:
        """Raises ModelError when chunks of this size cannot be extracted."""
        ...

    def run(
        self, chunks: Iterable[tuple[str, str]], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, ChunkExtraction]]:
        """Extract `(key, text)` pairs lazily; every chunk that goes in comes out, in any order."""
        ...


def chunk_extractor(model: LanguageModel, schema: GraphSchema, settings: ExtractSettings) -> ChunkExtractor:
    """The extractor of `settings.tier`."""
    if settings.tier == "fast":
        return CooccurrenceExtractor(schema, settings)
    check = GrammarCheck(model.tokenizer.directory, settings.grammar_seconds)
    return Extractor(model, schema, settings, check.too_large)
