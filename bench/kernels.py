"""How the kernels grow: seconds and memory from 10³ to 10⁶ entities, beside what a user would otherwise call.

    hornbeam bench kernels [--sizes 1000,10000,100000,1000000] [--json] [--plots DIR]
    hornbeam bench kernels --triples FILE.tsv

Graphs have planted topics, degree 6 on average and 40 relation types. Every measurement runs in a process of
its own, and ends at the latest with the time limit; after a cut the larger sizes are left out. `exponent` is
the slope of log seconds over log n. Exit code 1 when a kernel failed or left an entity without a community.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernel_growth.growth import closure, measure_growth, measure_triples, outcome, summary
from kernel_growth.kernels import KERNELS
from kernel_growth.peers import PEERS
from kernel_growth.planted import PLANTING

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MOST_ENTITIES = 10**9


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    names = closure(options.only or [*KERNELS, *(PEERS if options.peers else ())])
    report = measure(options, names)
    if options.plots is not None:
        from kernel_growth.plots import draw

        for file in draw(report, options.plots):
            _tell(f"plot {file}")
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    return 1 if wrong(report) else 0


def measure(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    limits = {
        "limit": options.limit_seconds,
        "peer_limit": options.peer_limit_seconds,
        "work": options.work,
        "tell": _tell,
    }
    if options.triples is None:
        points = measure_growth(options.sizes, names, **limits)
    else:
        points = measure_triples(options.triples, names, **limits)
        names = list(points)
    return {
        "machine": f"{platform.processor() or platform.machine()}, {_cores()} cores",
        "sizes": sorted({point["n"] for of_one in points.values() for point in of_one}),
        "triples": None if options.triples is None else str(options.triples),
        "planted": asdict(PLANTING),
        "limit_seconds": options.limit_seconds,
        "peer_limit_seconds": options.peer_limit_seconds,
        "kernels": {
            name: {"about": KERNELS[name].about} | summary(points[name]) for name in names if name in KERNELS
        },
        "peers": {
            name: {"about": PEERS[name].about, "beside": PEERS[name].beside} | summary(points[name])
            for name in names
            if name in PEERS
        },
    }


def wrong(report: dict[str, Any]) -> list[str]:
    """The kernels that failed or that left out an entity."""
    return [
        name
        for name, kernel in report["kernels"].items()
        if kernel.get("coverage", 1.0) < 1.0 or any("failed" in point for point in kernel["points"])
    ]


def as_text(report: dict[str, Any]) -> str:
    lines = [report["machine"]]
    for name, growth in (report["kernels"] | report["peers"]).items():
        slope = "" if growth["exponent"] is None else f", exponent {growth['exponent']:.2f}"
        lines.append(f"\n{name}: {growth['about']}{slope}")
        lines += [f"  {point['n']:>9,}  {outcome(point)}" for point in growth["points"]]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench kernels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=_sizes, default=list(SIZES), metavar="N,N,…", help="entities")
    parser.add_argument(
        "--triples",
        type=Path,
        metavar="FILE",
        help="instead of planted graphs one of head TAB relation TAB tail, for what needs no vectors",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--plots", type=_folder, metavar="DIR", help="an SVG per kernel (needs matplotlib)")
    parser.add_argument(
        "--only",
        type=_names,
        metavar="NAME,…",
        help=f"of {', '.join([*KERNELS, *PEERS])}; and what they need",
    )
    parser.add_argument(
        "--no-peers", dest="peers", action="store_false", help="the kernels alone, nothing beside them"
    )
    parser.add_argument(
        "--limit-seconds", type=float, default=900, metavar="S", help="for one kernel at one size (900)"
    )
    parser.add_argument(
        "--peer-limit-seconds", type=float, default=120, metavar="S", help="for what is beside it (120)"
    )
    parser.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="for the inputs of one size at a time, 7 GB at 10⁶ (default: /tmp)",
    )
    return parser


def _sizes(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() and 1 <= int(part) <= MOST_ENTITIES for part in parts):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not whole numbers from 1 to {MOST_ENTITIES:,} with commas between"
        )
    return [int(part) for part in parts]


def _folder(text: str) -> Path:
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{folder} cannot be made: {error.strerror}") from error
    return folder


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in KERNELS and name not in PEERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}")
    return names


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
