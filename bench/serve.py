"""Requests per second and milliseconds of a served index, search by search, at 1, 8 and 64 callers.

    hornbeam bench serve [--entities 100000] [--callers 1,8,64] [--seconds 10] [--json]

    hornbeam bench serve --index DIR --asked FILE [--callers 1,4] [--minutes 30] [--model …] [--json]

Server and callers are two processes on this machine, over loopback: the callers' work is in the figures. The
index is generated (see `hornbeam bench query`); no language model is loaded, and no question is asked. What
the server takes of a core for a search says something beside other work, too; requests a second do not.

With --index a real one is served with its model, and asked the questions of FILE (lines, or JSON lines with
`question`): milliseconds to the first event, the first evidence, the first token and the end. Then, for
--minutes, mixed traffic: questions, searches, looking about, and a version of the index promoted every two
seconds; what was answered how often with which status, every fault, and the memory of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from query_growth.generated import questions, write_index

from hornbeam.commands.options import passive_threads

_SHARES = (0.5, 0.9, 0.99)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.index is None) != (options.asked is None):
        parser.error("--index and --asked go together")
    passive_threads()
    if options.serve is not None:
        serve(options.serve)
        return 0
    if options.index is not None:
        from served_mix import measure_served

        print(json.dumps(measure_served(options), indent=2))
        return 0
    report = measure(options)
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hornbeam-bench-") as folder:
        directory = (options.keep or Path(folder)) / f"version-{options.entities}"
        if not directory.exists():
            from hornbeam.opening import open_embedder
            from hornbeam.settings import load_settings

            print(f"index of {options.entities} entities", file=sys.stderr)
            write_index(directory, options.entities, open_embedder(load_settings()).dimension)
        asked = questions(directory, options.questions)
        command = [sys.executable, str(Path(__file__).resolve()), "--serve", str(directory)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            try:
                port = int(child.stdout.readline())
                rows = [
                    asyncio.run(load(port, child.pid, asked, count, options.seconds))
                    for count in options.callers
                ]
            finally:
                child.terminate()
    return {
        "machine": f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "entities": options.entities,
        "search": rows,
    }


def serve(directory: Path) -> None:
    """In a process of its own: a server of one version, whose port is printed."""
    import socket

    import uvicorn

    from hornbeam.llm.opening import open_model
    from hornbeam.llm.unused import UnusedModel
    from hornbeam.opening import open_embedder
    from hornbeam.retrieve.knowledge_base import KnowledgeBase
    from hornbeam.serve.app import create_app
    from hornbeam.serve.indexes import Reader, ServedIndex
    from hornbeam.serve.keys import KeyRing
    from hornbeam.serve.server import Server
    from hornbeam.settings import load_settings
    from hornbeam.store.versions import Version

    settings = load_settings()
    kb = KnowledgeBase.open(directory, open_embedder(settings))
    index = ServedIndex("generated", directory, lambda *_: Reader(kb, Version("generated", directory, {})))
    index.open()
    model = UnusedModel(open_model(settings))
    app = create_app(Server({"generated": index}, model, settings, KeyRing(directory / "keys.json")))
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listening])


async def load(port: int, pid: int, asked: Sequence[str], callers: int, seconds: float) -> dict[str, Any]:
    """So many callers, each with one search under way, for so long."""
    import httpx
    import psutil

    turn, spent, statuses = itertools.count(1), list[float](), dict[int, int]()
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", timeout=60, limits=httpx.Limits(max_connections=callers)
    ) as client:
        await client.post("/v1/generated/search", json={"text": asked[0]})  # warm
        server = psutil.Process(pid)
        started, worked = time.perf_counter(), sum(server.cpu_times()[:2])

        async def call() -> None:
            while time.perf_counter() - started < seconds:
                text, begun = asked[next(turn) % len(asked)], time.perf_counter()
                response = await client.post("/v1/generated/search", json={"text": text})
                spent.append((time.perf_counter() - begun) * 1000)
                statuses[response.status_code] = statuses.get(response.status_code, 0) + 1

        await asyncio.gather(*(call() for _ in range(callers)))
        took = time.perf_counter() - started
        worked = sum(server.cpu_times()[:2]) - worked
    spent.sort()
    return {
        "callers": callers,
        "requests": len(spent),
        "per_second": round(len(spent) / took, 1),
        "milliseconds": {
            f"p{100 * share:g}": round(spent[min(len(spent) - 1, int(share * len(spent)))], 1)
            for share in _SHARES
        },
        "statuses": statuses,
        "processor_ms": round(1000 * worked / len(spent), 1),
        "resident_mib": round(server.memory_info().rss / 2**20),
    }


def as_text(report: dict[str, Any]) -> str:
    lines = [f"{report['machine']}; {report['entities']} entities"]
    for row in report["search"]:
        times = ", ".join(f"{name} {value}" for name, value in row["milliseconds"].items())
        statuses = ", ".join(f"{count} × {status}" for status, count in row["statuses"].items())
        lines.append(
            f"{row['callers']:4} callers  {row['per_second']:8} requests/s  {times} ms  "
            f"{row['processor_ms']} ms of a core each  {row['resident_mib']} MiB  ({statuses})"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench serve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--entities", type=int, default=100_000, metavar="N", help="of the generated index")
    parser.add_argument("--callers", type=_counts, default=(1, 8, 64), metavar="N,N", help="at once")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="of each number of callers")
    parser.add_argument("--questions", type=int, default=2000, metavar="N", help="different searches")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the index there, and use it again")
    parser.add_argument("--index", type=Path, metavar="DIR", help="serve this one, with its model")
    parser.add_argument("--asked", type=Path, metavar="FILE", help="questions for --index")
    parser.add_argument("--model", metavar="DIR|URL", help="for --index; default: the embedded one")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="questions of each caller")
    parser.add_argument("--minutes", type=float, default=0.0, metavar="M", help="of mixed traffic")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser


def _counts(text: str) -> tuple[int, ...]:
    counts = tuple(int(part) for part in text.split(","))
    if not counts or min(counts) < 1:
        raise argparse.ArgumentTypeError("callers are 1 or more")
    return counts


if __name__ == "__main__":
    sys.exit(main())
