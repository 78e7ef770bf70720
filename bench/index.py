"""What an index costs at size: a build, an update of 1 %, a delete of 1 %, an audit, opening it; no model.

    hornbeam bench index --sizes 1000,10000 [--keep DIR] [--json]

Sizes are chunks. What a model would have found is known beforehand (`replayed_index.py`), vectors are hashed
n-grams: so what is measured is all the work that is not the model's. An update of 1 % rewrites one paragraph
in 0.5 % of the documents, removes 0.25 % and adds 0.25 %.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from replayed_index import CHUNKS, ReplayedBuild, World, write_corpus

from hornbeam.audit.run import audit_index
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.pipeline.report import BuildReport
from hornbeam.progress import Progress
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.store.versions import open_current


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench index", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000", help="numbers of chunks, comma separated")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the corpora and indexes there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = []
    for size in (int(size) for size in options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as temporary:
            rows.append(measure(size, (options.keep or Path(temporary)) / str(size)))
        if not options.json:
            print("\n".join(f"{name:28} {value}" for name, value in rows[-1].items()), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


def measure(chunks: int, folder: Path) -> dict[str, Any]:
    world = World(chunks)
    documents = max(8, chunks // CHUNKS)
    corpus, index = folder / "corpus", folder / "index"
    write_corpus(corpus, world, range(documents))
    # What is loaded once a process is no cost of a size.
    small = World(8)
    ReplayedBuild(folder / "warm", small).run(write_corpus(folder / "few", small, range(8)))
    built, build_s, build_cpu_s = timed(ReplayedBuild(index, world), lambda build: build.run([corpus]))

    few = max(1, documents // 400)
    files = sorted(corpus.rglob("*.txt"))
    chosen = np.random.default_rng(1).permutation(len(files))[: 3 * few]
    for place in chosen[: 2 * few].tolist():
        paragraphs = files[place].read_text("utf-8").split("\n\n")
        paragraphs[1] = world.text(0).split("\n\n")[0]
        files[place].write_text("\n\n".join(paragraphs), "utf-8")
    for place in chosen[2 * few :].tolist():
        files[place].unlink()
    write_corpus(corpus, world, range(documents, documents + few))
    updated, update_s, update_cpu_s = timed(ReplayedBuild(index, world), lambda build: build.update())

    doomed = [str(file) for file in sorted(corpus.rglob("*.txt"))[:: max(1, len(files) // (4 * few))]]
    deleted, delete_s, delete_cpu_s = timed(ReplayedBuild(index, world), lambda build: build.delete(doomed))

    started = time.perf_counter()
    sound = audit_index(index, None, Progress(quiet=True)).sound
    audit_s = time.perf_counter() - started
    version = open_current(index)
    started = time.perf_counter()
    KnowledgeBase.open(version.directory, HashedEmbedder())
    open_s = time.perf_counter() - started
    return {
        "chunks": built.chunks["total"],
        "documents": documents,
        "entities": built.entities,
        "relations": built.relations,
        "build_s": round(build_s, 2),
        "update_s": round(update_s, 2),
        "update_over_build": round(update_s / build_s, 3),
        "update_clustering": updated.communities["clustering"],
        "delete_s": round(delete_s, 2),
        "delete_over_build": round(delete_s / build_s, 3),
        "build_cpu_s": round(build_cpu_s, 2),
        "update_cpu_over_build": round(update_cpu_s / build_cpu_s, 3),
        "delete_cpu_over_build": round(delete_cpu_s / build_cpu_s, 3),
        "audit_s": round(audit_s, 2),
        "audit_sound": sound,
        "open_s": round(open_s, 3),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "index_bytes": sum(file.stat().st_size for file in index.rglob("*") if file.is_file()),
        "build_stages_s": built.seconds,
        "update_stages_s": updated.seconds,
        "delete_stages_s": deleted.seconds,
    }


def timed(build: ReplayedBuild, work: Any) -> tuple[BuildReport, float, float]:
    """The report, wall seconds, and seconds of all processors of this process."""
    started, worked = time.perf_counter(), time.process_time()
    report: BuildReport = work(build)
    return report, time.perf_counter() - started, time.process_time() - worked


if __name__ == "__main__":
    main()
