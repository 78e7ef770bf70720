"""Where the work of a build that many processes can share is done: reading, chunking, extraction.

The ledger and its segments stay with the process that builds: an executor takes files and chunks, and gives
documents and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from hornbeam.corpus import read_changed
from hornbeam.extract.known_facts import Encoder
from hornbeam.extract.stages import Extractor
from hornbeam.extract.tiers import ChunkExtractor, chunk_extractor
from hornbeam.extract.verification import Chunk, Outcome, Verifier
from hornbeam.llm.protocol import LanguageModel
from hornbeam.pipeline.reading import Item
from hornbeam.pipeline.recipe import Recipe, make_recipe
from hornbeam.prompts import Prompts
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import CorpusSettings, Settings

#: Takes chunks lazily, and tells before every wait how many are on their way; of every chunk its extraction
#: comes out, in any order, unless the chunk came with one, and where facts are verified, its verification.
Extracting: TypeAlias = Callable[[Iterable[Chunk], Callable[[int], None]], Iterator[tuple[str, Outcome]]]


class Executor(Protocol):
    """Reads documents and extracts chunks, wherever it does so."""

    def read(self, paths: Sequence[Path], known_digest: Callable[[str], str | None]) -> Iterator[Item]:
        """As `hornbeam.corpus.read_changed`; documents may come with their chunks."""
        ...

    def extract(
        self, chunks: Iterable[Chunk], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Outcome]]:
        """See `Extracting`."""
        ...

    def close(self) -> None:
        """Let go of what reading and extraction need; nothing more is asked for. May be repeated."""
        ...


@dataclass(frozen=True, slots=True)
class Extraction:
    """What chunks are extracted with, and what their results are kept under."""

    extractor: ChunkExtractor
    verifier: Verifier | None
    recipe: Recipe


def open_extraction(
    settings: Settings, schema: GraphSchema, model: LanguageModel, encoder: Encoder, prompts: Prompts
) -> Extraction:
    """
    Raises:
        UsageError: known facts or examples cannot be used.
    """
    extractor = chunk_extractor(model, schema, settings.extract, encoder, prompts)
    verifier = (
        Verifier(extractor, schema, settings.extract, prompts)
        if settings.extract.verify and isinstance(extractor, Extractor)
        else None
    )
    asked = verifier.version if verifier else None
    recipe = make_recipe(settings, schema, model.identity, extractor.versions, asked, prompts.version)
    return Extraction(extractor, verifier, recipe)


class LocalExecutor:
    """Does it in this process, with the one model of the build."""

    def __init__(self, corpus: CorpusSettings, extraction: Extraction) -> None:
        self._corpus = corpus
        self._extraction = extraction

    def read(self, paths: Sequence[Path], known_digest: Callable[[str], str | None]) -> Iterator[Item]:
        return read_changed(paths, self._corpus, known_digest)

    def extract(
        self, chunks: Iterable[Chunk], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Outcome]]:
        if self._extraction.verifier is not None:
            return self._extraction.verifier.run(chunks, on_progress)
        texts = ((chunk.key, chunk.text, chunk.language) for chunk in chunks)
        return iter(self._extraction.extractor.run(texts, on_progress))

    def close(self) -> None:
        """Holds nothing: the model is its owner's."""
