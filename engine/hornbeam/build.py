"""The pipeline from paths to a promoted version, stage by stage.

read → chunk → extract → consolidate → organise → index → gate → promote (→ propose types)

Every stage's results live in the ledger by content, so a build that was stopped goes on where it was, and
one without changes makes no model call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.evolve.asking import asker_of
from hornbeam.extract.stages import Extractor
from hornbeam.extract.tiers import chunk_extractor
from hornbeam.extract.verification import Verifier
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.protocol import LanguageModel
from hornbeam.pipeline.extraction import extract_chunks
from hornbeam.pipeline.importing import published_schema
from hornbeam.pipeline.inheritance import inherit_results, inherited_results
from hornbeam.pipeline.proposing import Proposing, ProposingReport
from hornbeam.pipeline.publishing import Publisher, all_passed, find_finished, model_record
from hornbeam.pipeline.reading import read_documents
from hornbeam.pipeline.recipe import make_recipe
from hornbeam.pipeline.report import BuildReport, make_report
from hornbeam.pipeline.text_recipe import TextRecipe, keep_text_recipe
from hornbeam.probes import probe_gate
from hornbeam.progress import Progress
from hornbeam.records import Document, Rejection, Retry
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings
from hornbeam.store.ledger import Ledger, check_is_index
from hornbeam.store.lock import write_lock
from hornbeam.store.promotions import promote

__all__ = ["Build", "BuildReport"]


class Build:
    """One run over one index."""

    def __init__(
        self,
        index: Path,
        settings: Settings,
        schema: GraphSchema,
        model: LanguageModel,
        embedder: TextEmbedder,
        progress: Progress,
    ) -> None:
        self._index = index
        self._settings = settings
        self._schema = schema
        self._model = model
        self._embedder = embedder
        self._progress = progress
        self._extractor = chunk_extractor(model, schema, settings.extract, embedder)
        self._verifier = (
            Verifier(self._extractor, schema, settings.extract)
            if settings.extract.verify and isinstance(self._extractor, Extractor)
            else None
        )
        self._recipe = make_recipe(
            settings,
            schema,
            model.identity,
            self._extractor.version,
            self._verifier.version if self._verifier else None,
        )
        self._asker = asker_of(settings, schema, model) if settings.evolve.enabled else None
        self._seconds: dict[str, float] = {}
        self._report = BuildReport()

    def run(self, paths: Sequence[Path | str], retry: Collection[Retry] = ()) -> BuildReport:
        """Read `paths`, bring the index up to date and publish a version.

        Args:
            retry: take up chunks of these kinds again and no others.

        Raises:
            UsageError: a path does not exist.
            ModelError: the prompt does not fit the model.
            StoreError: the index cannot be written, or another process writes it; there is none to retry.
        """
        chunk = self._settings.chunk
        # These complain before anything is written.
        self._extractor.check_room(chunk.max_tokens)
        if self._asker is not None:
            self._asker.check_room(chunk.max_tokens)
        corpus: Iterator[Document | Rejection] = iter(())
        if retry:
            check_is_index(self._index)
        else:
            corpus = read_corpus(paths, self._settings.corpus)
        chunker = Chunker(self._model.tokenizer, chunk.max_tokens, chunk.overlap_tokens)
        with write_lock(self._index), Ledger(self._index, create=True) as ledger:
            publisher = self._publisher(ledger)
            run = ledger.runs.start()
            with self._timed("read"):
                reading = read_documents(corpus, ledger, run, chunker, self._recipe.chunking, self._progress)
            with self._timed("extract"):
                inherit_results(
                    ledger,
                    self._index,
                    self._recipe,
                    self._schema,
                    self._settings,
                    self._model,
                    self._embedder,
                    self._progress,
                )
                extraction = extract_chunks(
                    ledger, run, self._extractor, self._recipe, self._progress, retry, self._verifier
                )
            inputs = publisher.inputs(ledger, extraction.unsettled)
            version = existing = find_finished(self._index, inputs)
            if version is None:
                version = publisher.publish(ledger, run, inputs)
            elif all_passed(version):
                promote(self._index, version.version_id)
            proposing = self._propose(ledger, run)
            self._report = make_report(
                reading=reading,
                extraction=extraction,
                inherited=inherited_results(ledger, self._recipe).chunks,
                proposing=proposing,
                version=version,
                unchanged=existing is not None,
                usage=ledger.runs.usage(run),
                seconds=self._seconds,
                cost=self._settings.cost,
            )
            with ledger.transaction():
                for stage, seconds in self._seconds.items():
                    ledger.runs.add_usage(run, stage, seconds=seconds)
                ledger.runs.finish(run, version.version_id, json.dumps(self.to_json(), ensure_ascii=False))
        return self._report

    def _propose(self, ledger: Ledger, run: int) -> ProposingReport | None:
        if self._asker is None:
            return None
        with self._timed("propose"):
            return Proposing(
                ledger,
                run,
                self._asker,
                self._recipe,
                self._model.identity.fingerprint,
                self._schema,
                self._embedder,
                self._settings.evolve,
                self._progress,
            ).collect()

    def to_json(self) -> dict[str, Any]:
        return self._report.to_json()

    def _publisher(self, ledger: Ledger) -> Publisher:
        model, prompt_version = model_record(self._model.identity), self._extractor.version
        # What was imported stays in the graph, whatever schema the texts are read with.
        schema = published_schema(ledger, self._schema)
        keep_text_recipe(ledger, TextRecipe(self._recipe, self._schema, model, prompt_version))
        return Publisher(
            self._index,
            self._settings,
            schema,
            None if self._settings.extract.tier == "fast" else self._model,
            model,
            self._embedder,
            self._recipe,
            prompt_version,
            self._progress,
            self._timed,
            probe_gate(self._index, self._settings, self._embedder),
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._seconds[stage] = time.perf_counter() - started
