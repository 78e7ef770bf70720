"""The ways to extract: by a model, by a model guided by known facts, or without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from hornbeam.errors import UsageError
from hornbeam.extract.cooccurrence import CooccurrenceExtractor
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.known_facts import Encoder, read_known_sentences
from hornbeam.extract.result import ChunkExtraction, ChunkText
from hornbeam.extract.stages import Extractor
from hornbeam.llm.checked import CheckedModel
from hornbeam.llm.grammar_check import GrammarCheck
from hornbeam.llm.protocol import LanguageModel
from hornbeam.prompts import Prompts
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings


class ChunkExtractor(Protocol):
    @property
    def versions(self) -> Mapping[str, str]:
        """Part of the key of stored results: of the prompts by language, "" for all others."""
        ...

    def check_room(self, max_chunk_tokens: int) -> None:
        """Raises ModelError when chunks of this size cannot be extracted."""
        ...

    def run(
        self, chunks: Iterable[ChunkText], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, ChunkExtraction]]:
        """Extract chunks lazily; every chunk that goes in comes out, in any order."""
        ...


def chunk_extractor(
    model: LanguageModel,
    schema: GraphSchema,
    settings: ExtractSettings,
    encoder: Encoder,
    prompts: Prompts | None = None,
) -> ChunkExtractor:
    """The extractor that the settings ask for.

    Args:
        prompts: None: the shipped ones.

    Raises:
        UsageError: known facts or examples cannot be read, or none has a type of the schema.
    """
    if settings.tier == "fast":
        return CooccurrenceExtractor(schema, settings)
    model = CheckedModel(model, GrammarCheck(model.tokenizer.directory, settings.grammar_seconds))
    if settings.known_facts is not None:
        file = Path(settings.known_facts)
        guided = GuidedExtractor(model, schema, settings, read_known_sentences(file), encoder, prompts)
        if not len(guided.known):
            raise UsageError(f"known facts {file}: no fact has a type of schema '{schema.name}'")
        return guided
    return Extractor(model, schema, settings, prompts, encoder)
