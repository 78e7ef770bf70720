"""The worker: an actor with a model of its own that extracts the batches it is given."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hornbeam import __version__
from hornbeam.distributed.messages import pack_outcomes, unpack_chunks
from hornbeam.distributed.overlapping import OverlappingBatches
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.llm.protocol import LanguageModel
from hornbeam.opening import open_build_model, open_embedder
from hornbeam.pipeline.executing import LocalExecutor, open_extraction
from hornbeam.pipeline.recipe import Recipe
from hornbeam.prompts import load_prompts
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings

#: Nothing is fetched by a worker, wherever it runs.
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What a worker opens: the same as the process that builds, on a machine that has the same files."""

    settings: Settings
    schema: GraphSchema
    open_model: Callable[[Settings], LanguageModel] = open_build_model


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a worker is, before it is given any work."""

    host: str
    pid: int
    hornbeam: str
    recipe: dict[str, Any]  # a `Recipe`


class ExtractionWorker:
    """Made in a process of its own; opens nothing before it is asked to introduce itself."""

    def __init__(self) -> None:
        self._batches: OverlappingBatches | None = None

    def introduce(self, plan: WorkerPlan) -> Introduction:
        """Open model and extraction. Not at construction: Ray then tells what was raised in words alone.

        Raises:
            HornbeamError: as a build that cannot open them.
        """
        for name, value in _OFFLINE.items():
            os.environ.setdefault(name, value)
        settings = plan.settings
        prompts = load_prompts(settings.prompts, embedded=settings.model.path is None)
        # Sentences are compared for examples and known facts alone, and an embedder is heavy.
        compares = settings.extract.example_choice == "nearest" or settings.extract.known_facts is not None
        embedder = open_embedder(settings) if compares else HashedEmbedder()
        extraction = open_extraction(settings, plan.schema, plan.open_model(settings), embedder, prompts)
        executor = LocalExecutor(settings.corpus, extraction)
        self._batches = OverlappingBatches(executor.extract, verifying=extraction.verifier is not None)
        return Introduction(socket.gethostname(), os.getpid(), __version__, recipe_fields(extraction.recipe))

    def extract(self, chunks: bytes) -> bytes:
        """A batch's outcomes, packed. Batches overlap when they are given in several threads."""
        assert self._batches is not None, "a worker introduces itself first"
        return pack_outcomes(self._batches.run(unpack_chunks(chunks)))


def recipe_fields(recipe: Recipe) -> dict[str, Any]:
    return asdict(recipe) | {"by_language": dict(recipe.by_language)}
