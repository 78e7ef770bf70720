"""What extraction costs the host: chunks a second of everything but the model, on one core.

A model's answers are recorded once and then given again at once (`hornbeam.llm.replay`), so that what is left
is reading, chunking, grammars, prompts, the reading of answers with their probabilities, and the ledger.
"""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.errors import UsageError
from hornbeam.extract.stages import Extractor
from hornbeam.llm.checked import CheckedModel
from hornbeam.llm.grammar_check import GrammarCheck
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.replay import RecordingModel, ReplayModel
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.pipeline.executing import Extraction, LocalExecutor
from hornbeam.pipeline.extraction import extract_chunks
from hornbeam.pipeline.reading import Reader
from hornbeam.pipeline.recipe import make_recipe, reading_key
from hornbeam.progress import Progress
from hornbeam.schema import GraphSchema
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import Ledger


def host_report(
    path: Path, recording: Path, settings: Settings, schema: GraphSchema, *, profile: bool
) -> dict[str, Any]:
    """Record the answers of the model in use where that has not been done, and measure without it."""
    model = open_model(settings)
    tokenizer: Any = model.tokenizer
    if not recording.is_file():
        unfinished = recording.with_name(f"{recording.name}.unfinished")
        recorder = RecordingModel(model, unfinished)
        _extract(path, settings, schema, recorder)
        recorder.close()
        unfinished.rename(recording)
    return measure_host(path, recording, settings, schema, tokenizer, profile=profile)


def measure_host(
    path: Path,
    recording: Path,
    settings: Settings,
    schema: GraphSchema,
    tokenizer: DirectoryTokenizer,
    *,
    profile: bool,
) -> dict[str, Any]:
    """Seconds of processor time and wall time with the answers replayed, bound to one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        replay = ReplayModel(recording, tokenizer)
        _extract(path, settings, schema, replay)  # imports, caches, the first use of everything
        profiler = cProfile.Profile()
        if profile:
            profiler.enable()
        started, busy, own = time.perf_counter(), time.process_time(), time.thread_time()
        chunks, stages = _extract(path, settings, schema, replay)
        own = time.thread_time() - own
        wall, busy = time.perf_counter() - started, time.process_time() - busy
        profiler.disable()
    finally:
        os.sched_setaffinity(0, cores)
    report: dict[str, Any] = {
        "recorded_model": replay.identity.name,
        "schema": schema.name,
        "chunks": chunks,
        "processor_seconds": round(busy, 3),
        "caller_seconds": round(own, 3),  # without the threads that compile grammars
        "wall_seconds": round(wall, 3),
        "chunks_per_processor_second": round(chunks / busy, 1),
        "chunks_per_caller_second": round(chunks / own, 1),
        "chunks_per_wall_second": round(chunks / wall, 1),
        "ms_per_chunk": {name: round(1000 * seconds / chunks, 3) for name, seconds in stages.items()},
    }
    if profile:
        table = io.StringIO()
        pstats.Stats(profiler, stream=table).sort_stats("tottime").print_stats(30)
        report["profile"] = table.getvalue()
    return report


def _extract(
    path: Path, settings: Settings, schema: GraphSchema, model: LanguageModel
) -> tuple[int, dict[str, float]]:
    """Read and extract into an index that is thrown away; chunks, and processor seconds by stage.

    Raises:
        UsageError: a request has no recorded answer: the recording is of other texts or settings.
    """
    check = GrammarCheck(model.tokenizer.directory, settings.extract.grammar_seconds)
    extractor = Extractor(CheckedModel(model, check), schema, settings.extract)
    recipe = make_recipe(settings, schema, model.identity, extractor.versions)
    chunker = Chunker(model.tokenizer, settings.chunk.max_tokens, settings.chunk.overlap_tokens)
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder), create=True) as ledger:
        run = ledger.runs.start()
        began = time.process_time()
        corpus = read_corpus([path], settings.corpus)
        key, quiet, stop = reading_key(settings, recipe), Progress(quiet=True), StopRequest()
        Reader(ledger, run, chunker, recipe.chunking, key, quiet, str, stop).read(corpus)
        middle = time.process_time()
        extract = LocalExecutor(settings.corpus, Extraction(extractor, None, recipe)).extract
        report = extract_chunks(ledger, run, extract, recipe, quiet, stop)
        ended = time.process_time()
    check.close()
    if report.unsettled:
        raise UsageError(
            f"{len(report.unsettled)} of {report.total} chunks have no answer in the recording: it is of "
            "other texts or settings; name a new file with --recording"
        )
    return report.total, {"read": middle - began, "extract": ended - middle}
