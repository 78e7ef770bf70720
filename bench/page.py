"""The page in headless Chromium, over a generated index: when it can be used, how its picture moves.

    hornbeam bench page [--entities 100000] [--seconds 5] [--json]

Milliseconds from the start of loading until the question can be typed, until the tree of the index is there,
and until its picture is drawn; then frames a second, as Chromium itself counts them (requestAnimationFrame),
while the picture is dragged about. Headless Chromium draws with SwiftShader, WebGL in software on the CPU: a
graphics card is faster. Needs Chromium and playwright (extra dev).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from query_growth.generated import RandomVectors, write_index

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
_FRAMES = """() => { window.frames_at = [];
    const tick = (now) => { window.frames_at.push(now); requestAnimationFrame(tick); };
    requestAnimationFrame(tick); }"""
_DIMENSION = 16
_PATIENCE_MS = 120_000


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.serve is not None:
        serve(options.serve)
        return 0
    report = measure(options)
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hornbeam-bench-") as folder:
        directory = (options.keep or Path(folder)) / f"page-{options.entities}"
        if not directory.exists():
            print(f"index of {options.entities} entities", file=sys.stderr)
            write_index(directory, options.entities, _DIMENSION)
        command = [sys.executable, str(Path(__file__).resolve()), "--serve", str(directory)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            try:
                found = browse(f"http://127.0.0.1:{int(child.stdout.readline())}", options)
            finally:
                child.terminate()
    machine = f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores"
    return {"machine": machine, "entities": options.entities, **found}


def serve(directory: Path) -> None:
    """In a process of its own: a server of one version, whose port is printed. The page searches by name
    alone, so vectors are short and random."""
    import socket

    import uvicorn

    from hornbeam.llm.opening import open_model
    from hornbeam.llm.unused import UnusedModel
    from hornbeam.retrieve.knowledge_base import KnowledgeBase
    from hornbeam.serve.app import create_app
    from hornbeam.serve.indexes import Reader, ServedIndex
    from hornbeam.serve.keys import KeyRing
    from hornbeam.serve.server import Server
    from hornbeam.settings import load_settings
    from hornbeam.store.versions import Version

    settings = load_settings()
    embedder: Any = RandomVectors(_DIMENSION, 42, 1)
    kb = KnowledgeBase.open(directory, embedder)
    index = ServedIndex("generated", directory, lambda *_: Reader(kb, Version("generated", directory, {})))
    index.open()
    model = UnusedModel(open_model(settings))
    app = create_app(Server({"generated": index}, model, settings, KeyRing(directory / "keys.json")))
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listening])


def browse(url: str, options: argparse.Namespace) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(_PATIENCE_MS)
        since_start = "performance.now()"
        page.goto(url, wait_until="commit")
        page.wait_for_selector("#question")
        asked = page.evaluate(since_start)
        page.goto(f"{url}/?anew#/explore", wait_until="commit")
        page.wait_for_selector(".tree-community")
        tree = page.evaluate(since_start)
        page.wait_for_selector(".graph canvas")
        page.wait_for_selector(".graph-caption:not(:empty)")
        drawn = page.evaluate(since_start)
        moved = {"communities": drag(page, options.seconds)}
        page.locator(".tree-community .tree-row").first.click()
        page.wait_for_selector(".detail .plain button")
        moved["members"] = drag(page, options.seconds)
        browser.close()
    return {
        "milliseconds": {"question": round(asked), "tree": round(tree), "picture": round(drawn)},
        "frames": moved,
    }


def drag(page: Any, seconds: float) -> dict[str, float]:
    """Frames a second while the picture is dragged, and the longest time between two of them."""
    box = page.locator(".graph").bounding_box()
    left, top = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(left, top)
    page.mouse.down()
    page.evaluate(_FRAMES)
    started = page.evaluate("performance.now()")
    step = 0
    while page.evaluate("performance.now()") - started < 1000 * seconds:
        step += 1
        page.mouse.move(left + 120 * ((step % 40) / 40 - 0.5), top + 80 * ((step % 25) / 25 - 0.5))
    page.mouse.up()
    at = page.evaluate("window.frames_at")
    between = [after - before for before, after in pairwise(at)]
    return {
        "per_second": round(1000 * len(between) / sum(between), 1),
        "longest_ms": round(max(between), 1),
        "moves": step,
    }


def as_text(report: dict[str, Any]) -> str:
    times = ", ".join(f"{name} {value}" for name, value in report["milliseconds"].items())
    lines = [f"{report['machine']}; {report['entities']} entities", f"usable after: {times} ms"]
    for what, row in report["frames"].items():
        lines.append(f"dragging {what:12} {row['per_second']} frames/s, longest {row['longest_ms']} ms")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench page", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entities", type=int, default=100_000, metavar="N", help="of the generated index")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="of dragging")
    parser.add_argument("--chromium", default="/usr/bin/chromium", metavar="FILE")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the index there, and use it again")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser


if __name__ == "__main__":
    sys.exit(main())
