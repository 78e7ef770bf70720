"""The pipeline from paths to a promoted version, stage by stage.

read → chunk → extract → consolidate → organise → index → gate → promote (→ propose types)

Every stage's results live in the ledger by content, so a build that was stopped goes on where it was, and
one without changes makes no model call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, Root, ShownSources, roots_of
from hornbeam.corpus.sources import check_holds_files
from hornbeam.cost.budget import BudgetWatch
from hornbeam.cost.energy import EnergyMeter
from hornbeam.evolve.asking import asker_of
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.working_time import TimedModel, idle_figures
from hornbeam.pipeline.executing import Executor, LocalExecutor, open_extraction
from hornbeam.pipeline.extraction import extract_chunks
from hornbeam.pipeline.finished import all_passed, find_finished
from hornbeam.pipeline.forgetting import forget_named, forget_vanished
from hornbeam.pipeline.importing import published_schema
from hornbeam.pipeline.inheritance import inherit_results, inherited_results, may_inherit
from hornbeam.pipeline.proposing import Proposing, ProposingReport
from hornbeam.pipeline.public_record import model_record
from hornbeam.pipeline.publishing import Publisher
from hornbeam.pipeline.reading import Reader, ReadingReport
from hornbeam.pipeline.recipe import Recipe, reading_key
from hornbeam.pipeline.report import BuildReport, make_report
from hornbeam.pipeline.scope import remembered_roots, update_scope
from hornbeam.pipeline.text_recipe import TextRecipe, keep_text_recipe
from hornbeam.probes import probe_gate
from hornbeam.progress import Progress
from hornbeam.prompts import load_prompts
from hornbeam.records import Retry
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest
from hornbeam.store.disk import explained
from hornbeam.store.ledger import Ledger, check_is_index
from hornbeam.store.lock import write_lock
from hornbeam.store.promotions import promote

__all__ = ["Build", "BuildReport"]

#: Brings the ledger up to date with the documents, a batch whenever it is asked for one; given the ledger and
#: the run's number. Yields the ids of the documents that came.
Reading = Callable[[Ledger, int], Generator[list[str], None, ReadingReport]]


class Build:
    """One run over one index: `run`, `update` or `delete`, once.

    Raises, from each of them:
        UsageError: what is asked for does not exist.
        ModelError: the prompt does not fit the model, or the model is gone.
        StoreError: the index cannot be written, or another process writes it.
        Interrupted: `stop` was requested.
    """

    def __init__(
        self,
        index: Path,
        settings: Settings,
        schema: GraphSchema,
        model: LanguageModel,
        embedder: TextEmbedder,
        progress: Progress,
        stop: StopRequest | None = None,
        executor: Callable[[Recipe], Executor] | None = None,
    ) -> None:
        """
        Args:
            executor: where documents are read and chunks extracted, given what they are extracted with; None:
                in this process.
        """
        self._index = index
        self._settings = settings
        self._schema = schema
        self._model = timed = TimedModel(model)
        self._embedder = embedder
        self._progress = progress
        self._stop = stop or StopRequest()
        self._prompts = load_prompts(settings.prompts, embedded=settings.model.path is None)
        extraction = open_extraction(settings, schema, timed, embedder, self._prompts)
        self._extractor, self._recipe = extraction.extractor, extraction.recipe
        self._executor: Executor = (
            LocalExecutor(settings.corpus, extraction) if executor is None else executor(self._recipe)
        )
        self._asker = asker_of(settings, schema, timed) if settings.evolve.enabled else None
        self._seconds: dict[str, float] = {}
        self._model_time: dict[str, dict[str, float]] = {}
        self._report = BuildReport()

    def run(self, paths: Sequence[Path | str], retry: Collection[Retry] = ()) -> BuildReport:
        """Read `paths`, add to the index what is new in them, and publish a version, organised from scratch.

        Documents of other paths, and those whose file is gone, stay.

        Args:
            retry: read nothing; take up chunks of these kinds again and no others.
        """
        if retry:
            return self._bring_up_to_date(_nothing_to_read, full=True, create=False, retry=retry)
        # Before anything is written.
        roots = roots_of(paths)
        files = [path for root in roots for path in root.expand()]
        check_holds_files(files, paths)

        def read(ledger: Ledger, run: int) -> Generator[list[str], None, ReadingReport]:
            self._remember(ledger, roots)
            reader = self._reader(ledger, run)
            yield from reader.batches(self._executor.read(files, reader.known_digest))
            return reader.report

        return self._bring_up_to_date(read, full=True, overlap=True)

    def update(
        self, paths: Sequence[Path | str] = (), *, full: bool = False, allow_empty: bool = False
    ) -> BuildReport:
        """Find what is new, changed, moved and gone below the paths that the index was built from, and
        publish a version in which only the communities that this touches are found anew.

        Args:
            paths: look only there; one that is new to the index is added to it.
            full: organise from scratch.
            allow_empty: also if no document is left below a path.
        """

        def read(ledger: Ledger, run: int) -> Generator[list[str], None, ReadingReport]:
            scope = update_scope(ledger, paths)
            self._remember(ledger, scope.new_roots)
            reader = self._reader(ledger, run, skip_deleted=True)
            yield from reader.batches(self._executor.read(scope.paths, reader.known_digest))
            forget_vanished(reader, scope, allow_empty=allow_empty)
            return reader.report

        return self._bring_up_to_date(read, full=full, create=False)

    def delete(self, names: Sequence[str], *, full: bool = False, allow_empty: bool = False) -> BuildReport:
        """Take documents out of the index, with every fact that no other document states.

        Args:
            names: document ids, paths of files and folders, or patterns, as `documents` shows them or as the
                file system does.
            full: organise from scratch: the version then is the one that was never told of them.
            allow_empty: also if no document is left.
        """

        def read(ledger: Ledger, run: int) -> Generator[list[str], None, ReadingReport]:
            yield from ()
            return forget_named(ledger, names, allow_empty=allow_empty)

        return self._bring_up_to_date(read, full=full, create=False)

    def _remember(self, ledger: Ledger, roots: Sequence[Root]) -> None:
        with ledger.transaction():
            ledger.places.add_roots((root.place, root.pattern, root.given) for root in roots)

    def _reader(self, ledger: Ledger, run: int, *, skip_deleted: bool = False) -> Reader:
        chunk = self._settings.chunk
        return Reader(
            ledger,
            run,
            Chunker(self._model.tokenizer, chunk.max_tokens, chunk.overlap_tokens),
            self._recipe.chunking,
            reading_key(self._settings, self._recipe),
            self._progress,
            ShownSources(remembered_roots(ledger)),
            self._stop,
            skip_deleted,
        )

    def _bring_up_to_date(
        self,
        read: Reading,
        *,
        full: bool,
        create: bool = True,
        retry: Collection[Retry] = (),
        overlap: bool = False,
    ) -> BuildReport:
        """
        Args:
            overlap: extract what was read while the rest is read; else all is read first, as where the end of
                reading may find that the run must not go on.
        """
        # These complain before anything is written.
        self._extractor.check_room(self._settings.chunk.max_tokens)
        if self._asker is not None:
            self._asker.check_room(self._settings.chunk.max_tokens)
        if not create:
            check_is_index(self._index)
        with explained(self._index), write_lock(self._index) as left:
            if left is not None:
                self._progress.say(f"index: the last writer ({left}) was stopped; going on from where it was")
            with Ledger(self._index, create=create) as ledger:
                try:
                    self._report = self._run(ledger, read, full, retry, overlap)
                finally:
                    self._executor.close()
        return self._report

    def _run(
        self, ledger: Ledger, read: Reading, full: bool, retry: Collection[Retry], overlap: bool
    ) -> BuildReport:
        run = ledger.runs.start()
        cost, meter = self._settings.cost, EnergyMeter()
        watch = BudgetWatch(
            cost.limits(), cost.gpu_hour_price, cost.currency, lambda: _tokens(ledger.runs.usage(run))
        )
        self._stop.limit = watch.used_up
        arriving = _Arriving(read(ledger, run), self._seconds)
        if (record := self._progress.record) is not None:
            record.spent = lambda: _spent(ledger, run, watch)
        try:
            return self._stages(ledger, run, arriving, full, retry, meter, overlap)
        finally:  # what a run that was stopped has cost is known, too
            self._stop.limit = str
            if record is not None:
                last = record.spent()  # the ledger is closed when the record ends
                record.spent = lambda: last
            with ledger.transaction():
                for stage, seconds in self._seconds.items():
                    ledger.runs.add_usage(run, stage, seconds=seconds)
                if (joules := meter.joules()) is not None:
                    ledger.runs.add_energy(run, joules)

    def _stages(
        self,
        ledger: Ledger,
        run: int,
        arriving: _Arriving,
        full: bool,
        retry: Collection[Retry],
        meter: EnergyMeter,
        overlap: bool,
    ) -> BuildReport:
        # What may be taken over from an older schema is found out over all documents, before any is asked
        # about.
        if not overlap or may_inherit(self._index, self._schema):
            for _ in arriving:
                self._stop.check(f"{arriving.taken} documents are read")
            overlap = False
        read_first = arriving.seconds
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
                self._prompts,
            )
            extraction = extract_chunks(
                ledger,
                run,
                self._executor.extract,
                self._recipe,
                self._progress,
                self._stop,
                retry,
                arriving if overlap else (),
            )
            self._executor.close()  # what it holds of the GPUs is needed to organise
        self._seconds["extract"] -= arriving.seconds - read_first  # what was read in between
        publisher = self._publisher(ledger)
        inputs = publisher.inputs(ledger, extraction.unsettled)
        version = existing = find_finished(self._index, inputs, full=full)
        if version is None:
            version = publisher.publish(ledger, run, inputs, full=full)
        elif all_passed(version):
            promote(self._index, version.version_id)
        proposing = self._propose(ledger, run)
        report = make_report(
            reading=arriving.report,
            extraction=extraction,
            inherited=inherited_results(ledger, self._recipe).chunks,
            proposing=proposing,
            version=version,
            unchanged=existing is not None,
            usage=ledger.runs.usage(run),
            seconds=self._seconds,
            cost=self._settings.cost,
            joules=meter.joules(),
            serving=self._model.serving(),
            model_time=self._model_time,
        )
        with ledger.transaction():
            ledger.runs.finish(run, version.version_id, json.dumps(report.to_json(), ensure_ascii=False))
        return report

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
        model, versions = model_record(self._model.identity), self._extractor.versions
        # What was imported stays in the graph, whatever schema the texts are read with.
        schema = published_schema(ledger, self._schema)
        keep_text_recipe(ledger, TextRecipe(self._recipe, self._schema, model, versions))
        return Publisher(
            self._index,
            self._settings,
            schema,
            None if self._settings.extract.tier == "fast" else self._model,
            model,
            self._embedder,
            self._recipe,
            versions,
            self._progress,
            self._timed,
            probe_gate(self._index, self._settings, self._embedder),
            self._stop,
            self._prompts,
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started, model = time.perf_counter(), self._model
        working, starting = model.working_s, model.starting_s
        try:
            yield
        finally:
            seconds = self._seconds[stage] = time.perf_counter() - started
            if model.working_s > working:
                worked, began = model.working_s - working, model.starting_s - starting
                self._model_time[stage] = idle_figures(seconds, worked, began)


class _Arriving:
    """The documents of a run as they are read, and what reading reports at its end.

    Args:
        seconds: of each stage; reading's are added up here.
    """

    def __init__(self, batches: Generator[list[str], None, ReadingReport], seconds: dict[str, float]) -> None:
        self._batches = batches
        self._seconds = seconds
        self.taken = 0
        self.report = ReadingReport()

    @property
    def seconds(self) -> float:
        return self._seconds.get("read", 0.0)

    def __iter__(self) -> Iterator[list[str]]:
        while True:
            started = time.perf_counter()
            try:
                batch = next(self._batches)
            except StopIteration as end:
                self.report = end.value or self.report
                return
            finally:
                self._seconds["read"] = self.seconds + time.perf_counter() - started
            self.taken += len(batch)
            yield batch


def _nothing_to_read(ledger: Ledger, run: int) -> Generator[list[str], None, ReadingReport]:
    yield from ()
    return ReadingReport()


def _spent(ledger: Ledger, run: int, watch: BudgetWatch) -> dict[str, Any]:
    """Tokens of the run so far, and money where the machine has a price."""
    rows = ledger.runs.usage(run).values()
    tokens = {kind: int(sum(row[kind] for row in rows)) for kind in ("calls", "prompt", "cached", "output")}
    return {"tokens": tokens, "cost": watch.money()}


def _tokens(usage: dict[str, dict[str, Any]]) -> int:
    return int(sum(row["prompt"] + row["output"] for row in usage.values()))
