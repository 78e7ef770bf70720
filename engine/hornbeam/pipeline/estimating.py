"""What a build would cost, from a sample of its files and a few of its chunks. Nothing is written.

    chunks = bytes of all files · chunks / bytes of the sampled files
    tokens = chunks · mean tokens of the sampled chunks, as the model itself used them
    hours  = chunks · mean seconds of the sampled chunks

The range is the middle 90 % over resamples of both (the bootstrap: Efron 1979). It is about extraction, as if
the index were new: naming communities and making vectors come on top, chunks that are known come off. A few
chunks do not fill the model's batch, so hours are from above.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.corpus.sources import SourceFile, check_paths, walk
from hornbeam.errors import UsageError
from hornbeam.extract.result import ChunkExtraction, StageUsage
from hornbeam.extract.tiers import ChunkExtractor
from hornbeam.progress import Progress
from hornbeam.records import Document
from hornbeam.settings import CorpusSettings, CostSettings

#: Chunks that the model reads, beside one that lets the engine start.
SAMPLED_CHUNKS = 12
_RESAMPLES = 400
_LOW, _HIGH = 0.05, 0.95
_SEED = 42
_COUNTS = ("prompt", "cached", "output")


@dataclass(frozen=True, slots=True)
class _File:
    """A sampled file."""

    size: int  # bytes
    documents: int
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Corpus:
    files: int
    size: int
    sample: tuple[_File, ...]


def estimate(
    paths: Sequence[Path | str],
    extractor: ChunkExtractor,
    chunker: Chunker,
    corpus: CorpusSettings,
    cost: CostSettings,
    progress: Progress,
    sample: int,
) -> dict[str, Any]:
    """
    Args:
        sample: files to read, drawn evenly; all of them if there are no more.

    Raises:
        UsageError: a path does not exist, or no text was found in the sample.
    """
    found = _read(check_paths(paths), chunker, corpus, progress, sample)
    chance = random.Random(_SEED)
    texts = [text for file in found.sample for text in file.chunks]
    if not texts:
        raise UsageError(f"no text was found in {len(found.sample)} of {found.files} files")
    drawn = chance.sample(texts, min(len(texts), SAMPLED_CHUNKS + 1))
    used, seconds = _extract(drawn, extractor, progress)
    exact = len(found.sample) == found.files

    draws: dict[str, list[float]] = {}
    for _ in range(_RESAMPLES):
        files = found.sample if exact else chance.choices(found.sample, k=len(found.sample))
        share = found.size / max(1, sum(file.size for file in files))
        chunks = share * sum(len(file.chunks) for file in files)
        means = _means(chance.choices(used, k=len(used)))
        _add(draws, _figures(chunks, share * sum(file.documents for file in files), means, seconds, cost))
    share = found.size / max(1, sum(file.size for file in found.sample))
    expected = _figures(
        share * len(texts), share * sum(file.documents for file in found.sample), _means(used), seconds, cost
    )
    return {
        "files": found.files,
        "bytes": found.size,
        "sampled_files": len(found.sample),
        "sampled_chunks": len(used),
        "currency": cost.currency,
        "estimates": {name: _range(draws[name]) | {"expected": value} for name, value in expected.items()},
    }


def _read(
    paths: Sequence[Path], chunker: Chunker, settings: CorpusSettings, progress: Progress, sample: int
) -> _Corpus:
    places: list[Path] = []
    sizes: list[int] = []
    for file in walk(paths, settings.follow_links):
        if isinstance(file, SourceFile):
            places.append(file.path)
            sizes.append(file.path.stat().st_size)
    numbers = sorted(random.Random(_SEED).sample(range(len(places)), min(sample, len(places))))
    read = []
    with progress.stage("sample", len(numbers), "files") as stage:
        for number in numbers:
            items = read_corpus([places[number]], settings)
            documents = [item for item in items if isinstance(item, Document)]
            chunks = tuple(chunk.text for document in documents for chunk in chunker.chunk(document))
            read.append(_File(sizes[number], len(documents), chunks))
            stage.advance()
    return _Corpus(len(places), sum(sizes), tuple(read))


def _extract(
    texts: Sequence[str], extractor: ChunkExtractor, progress: Progress
) -> tuple[list[StageUsage], float]:
    """What each chunk used, and seconds for one of them. The first is read before, for the engine's start."""

    def run(numbered: Sequence[tuple[str, str]]) -> list[ChunkExtraction]:
        return [result for _, result in extractor.run(iter(numbered), lambda in_flight: None)]

    numbered = [(f"estimate-{number}", text) for number, text in enumerate(texts)]
    with progress.stage("extract", len(numbered), "chunks") as stage:
        first = run(numbered[:1])
        stage.advance()
        started = time.perf_counter()
        rest = run(numbered[1:]) if len(numbered) > 1 else first
        seconds = (time.perf_counter() - started) / len(rest)
        stage.advance(len(numbered) - 1)
    return [sum(result.usage.values(), StageUsage()) for result in rest], seconds


def _means(used: Sequence[StageUsage]) -> dict[str, float]:
    return {name: sum(getattr(one, name) for one in used) / len(used) for name in _COUNTS}


def _figures(
    chunks: float, documents: float, means: dict[str, float], seconds: float, cost: CostSettings
) -> dict[str, float]:
    figures = {"documents": documents, "chunks": chunks}
    figures |= {f"{name}_tokens": chunks * mean for name, mean in means.items()}
    figures["hours"] = chunks * seconds / 3600
    if cost.gpu_hour_price is not None:
        figures["money"] = figures["hours"] * cost.gpu_hour_price
    return figures


def _add(draws: dict[str, list[float]], figures: dict[str, float]) -> None:
    for name, value in figures.items():
        draws.setdefault(name, []).append(value)


def _range(values: list[float]) -> dict[str, float]:
    ranked = sorted(values)
    low, high = (ranked[int(share * (len(ranked) - 1))] for share in (_LOW, _HIGH))
    return {"low": low, "high": high}


def lines(found: dict[str, Any]) -> list[str]:
    """The estimate for people."""
    told = [
        f"sample         {found['sampled_files']} of {found['files']} files read, "
        f"{found['sampled_chunks']} chunks extracted; nothing was written"
    ]
    for name, one in found["estimates"].items():
        unit = f" {found['currency']}" if name == "money" else ""
        said = f"{_short(one['expected'])}{unit}  ({_short(one['low'])} to {_short(one['high'])})"
        told.append(f"{name.replace('_', ' '):<15}{said}")
    told.append("extraction alone, as if the index were new; hours from above: a sample fills no batch")
    return told


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
