"""Milliseconds of retrieval, by engine and by step, on generated indexes from 10³ entities on, or on yours.

    hornbeam bench query [--sizes 1000,10000,100000] [--questions 100] [--plots DIR] [--json]
    hornbeam bench query --index DIR --from FILE.jsonl [--json]

The question goes through the real embedder every time; the vectors of a generated index are random around
random centres. Figures at the top of the report are those of the largest size.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from query_growth.generated import questions, write_index
from query_growth.timing import time_engines

from hornbeam.commands.options import passive_threads
from hornbeam.settings import load_settings

SIZES = (1_000, 10_000, 100_000)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    passive_threads()
    report = measure(options)
    if options.plots is not None:
        from query_growth.plots import draw

        print(f"plot {draw(report, options.plots)}", file=sys.stderr)
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    settings = load_settings()
    if options.index is not None:
        from hornbeam.evaluate.question_files import read_questions
        from hornbeam.opening import open_knowledge_base

        kb, _ = open_knowledge_base(options.index, settings)
        asked = [one.text for one in read_questions(options.questions_from, options.questions)]
        points = [_counts(kb) | time_engines(kb, asked, settings, _token_counter(settings))]
    else:
        points = [_generated(size, options.questions, settings, options.keep) for size in options.sizes]
    return {
        "machine": f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "questions": options.questions,
        **points[-1],
        "sizes": points,
    }


def _generated(size: int, count: int, settings: Any, keep: Path | None) -> dict[str, Any]:
    from hornbeam.opening import open_embedder
    from hornbeam.retrieve.knowledge_base import KnowledgeBase

    with tempfile.TemporaryDirectory(prefix="hornbeam-bench-") as folder:
        directory = (keep or Path(folder)) / f"version-{size}"
        embedder = open_embedder(settings)
        print(f"index of {size} entities", file=sys.stderr)
        if not directory.exists():
            write_index(directory, size, embedder.dimension)
        kb = KnowledgeBase.open(directory, embedder)
        asked = questions(directory, count)
        return _counts(kb) | time_engines(kb, asked, settings, _token_counter(settings))


def _token_counter(settings: Any) -> Callable[[str], int]:
    """Of the embedding model's tokenizer: as fast as a language model's, and always there."""
    from hornbeam.index.embedder import find_embedder
    from hornbeam.llm.tokenizer import DirectoryTokenizer

    return DirectoryTokenizer(find_embedder(settings.embedder.path)).count


def _counts(kb: Any) -> dict[str, int]:
    return {
        "entities": len(kb.entities),
        "relations": len(kb.relations),
        "chunks": len(kb.chunks),
        "communities": len(kb.communities),
    }


def as_text(report: dict[str, Any]) -> str:
    lines = [report["machine"]]
    for point in report["sizes"]:
        lines.append(
            f"{point['entities']} entities, {point['relations']} relations, {point['chunks']} chunks"
        )
        for engine, row in point["engines"].items():
            steps = ", ".join(f"{step} {spent:.1f}" for step, spent in row["steps"].items() if spent >= 0.1)
            lines.append(f"  {_times(engine, row)}  {steps}")
        lines.append(f"  {_times('evidence', point['first_evidence'])}  of mix, found and packed")
        lines.append(f"  all      p50 {point['p50_ms']:7.1f}  p99 {point['p99_ms']:7.1f}")
    return "\n".join(lines)


def _times(name: str, row: dict[str, Any]) -> str:
    return (
        f"{name:8} p50 {row['p50_ms']:7.1f}  p99 {row['p99_ms']:7.1f}"
        f"  processor {row['cpu_p50_ms']:6.1f}, {row['cpu_p99_ms']:6.1f}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench query",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,N", help="entities of each index")
    parser.add_argument("--questions", type=int, default=100, metavar="N", help="questions of each index")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="generated indexes stay there, and are taken from there"
    )
    parser.add_argument("--index", type=Path, metavar="DIR", help="measure this index instead")
    parser.add_argument(
        "--from", dest="questions_from", type=Path, metavar="FILE", help="with --index: its questions"
    )
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write query.svg there")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.split(","))
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError("sizes are 1 or more")
    return sizes


if __name__ == "__main__":
    sys.exit(main())
