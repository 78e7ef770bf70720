"""A real index served with its model, as users would: questions, searches, looking about, versions switched.

Part of `hornbeam bench serve`; see there. The server is `hornbeam serve` in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

_RESTS_S = 0.5
_SHARES = (0.5, 0.9, 0.99)
_COMMAND = (sys.executable, "-c", "from hornbeam.cli import main; main()")


def measure_served(options: argparse.Namespace) -> dict[str, Any]:
    """Time to the first event and the first token of questions, then mixed traffic for `--minutes`."""
    from hornbeam.serve.keys import KeyRing
    from hornbeam.store.versions import list_versions

    questions = [line for line in options.asked.read_text("utf-8").splitlines() if line.strip()]
    questions = [json.loads(line)["question"] if line.startswith("{") else line for line in questions]
    versions = [version.version_id for version in list_versions(options.index)]
    with tempfile.TemporaryDirectory(prefix="hornbeam-bench-") as folder:
        keys = Path(folder) / "keys.json"
        _, secret = KeyRing(keys).add("bench", [], ["*"])
        command = [
            *_COMMAND,
            "serve",
            "--index",
            f"served={options.index}",
            "--port",
            "0",
            "--keys",
            str(keys),
        ]
        if options.model:
            command += ["--model", options.model]
        with (Path(folder) / "log").open("w+") as log, subprocess.Popen(command, stderr=log) as server:
            try:
                url = _address(Path(folder) / "log", server)
                return asyncio.run(_measure(url, secret, server.pid, questions, versions, options))
            finally:
                server.terminate()


async def _measure(
    url: str, secret: str, pid: int, questions: Sequence[str], versions: Sequence[str], options: Any
) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
        await _ask(client, questions[0])  # warm
        asked = []
        for callers in options.callers:
            turn = itertools.cycle(questions)
            rounds = [[next(turn) for _ in range(max(1, options.rounds))] for _ in range(callers)]
            rows = [
                row
                for one in await asyncio.gather(*(_in_turn(client, some) for some in rounds))
                for row in one
            ]
            asked.append({"callers": callers, "questions": len(rows), **_times(rows)})
        mixed = await _mixed(client, pid, questions, versions, options) if options.minutes else None
    return {"index": str(options.index), "cores": len(os.sched_getaffinity(0)), "ask": asked, "mixed": mixed}


async def _in_turn(client: httpx.AsyncClient, questions: Sequence[str]) -> list[dict[str, float]]:
    return [await _ask(client, question) for question in questions]


async def _ask(client: httpx.AsyncClient, question: str) -> dict[str, float]:
    """Milliseconds until each kind of event came first.

    Raises:
        RuntimeError: it did not end with a final event.
    """
    started, first, last = time.perf_counter(), dict[str, float](), ""
    async with client.stream("POST", "/v1/served/ask", json={"question": question}) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                last = line.removeprefix("event: ")
                first.setdefault(last, 1000 * (time.perf_counter() - started))
    if last != "final":
        raise RuntimeError(f"the answer ended with {last or 'nothing'}")
    return {"first_event": min(first.values()), **first}


async def _mixed(
    client: httpx.AsyncClient, pid: int, questions: Sequence[str], versions: Sequence[str], options: Any
) -> dict[str, Any]:
    """Two callers that ask, four that search and look about, and a version promoted every two seconds."""
    until = time.monotonic() + 60 * options.minutes
    statuses: Counter[str] = Counter()
    problems: list[str] = []
    memory: list[int] = []
    found = await client.get("/v1/served/entities", params={"limit": 50})
    entities = [one["id"] for one in found.json()["entities"]]

    async def again(what: str, work: Any, rest_s: float = 0.0) -> None:
        for turn in itertools.count():
            if time.monotonic() > until:
                return
            try:
                statuses[f"{what} {await work(turn)}"] += 1
            except Exception as error:  # noqa: BLE001 - every fault is counted and told
                statuses[f"{what} failed"] += 1
                problems.append(f"{what}: {type(error).__name__}: {error}")
            await asyncio.sleep(rest_s)

    async def ask(turn: int) -> int:
        await _ask(client, questions[turn % len(questions)])
        return 200

    async def search(turn: int) -> int:
        body = {"text": questions[turn % len(questions)]}
        return (await client.post("/v1/served/search", json=body)).status_code

    async def look(turn: int) -> int:
        # Of another version there may be no such entity.
        place = f"/v1/served/entities/{entities[turn % len(entities)]}"
        return (await client.get(place)).status_code

    async def promote(turn: int) -> int:
        body = {"version": versions[turn % len(versions)], "force": True}
        return (await client.post("/v1/served/versions/promote", json=body)).status_code

    async def weigh(turn: int) -> str:
        memory.append(psutil.Process(pid).memory_info().rss)
        return "times"

    work = [again("ask", ask), again("ask", ask), *(again("search", search) for _ in range(2))]
    work += [again("look", look, 0.05), again("look", look, 0.05), again("memory", weigh, 5 * _RESTS_S)]
    if len(versions) > 1:
        work.append(again("promote", promote, 4 * _RESTS_S))
    await asyncio.gather(*work)
    fifth = max(1, len(memory) // 5)
    return {
        "minutes": options.minutes,
        "answered": dict(sorted(statuses.items())),
        "problems": problems[:10],
        "resident_mib": {
            "second_fifth": round(max(memory[fifth : 2 * fifth] or memory) / 2**20),
            "last_fifth": round(max(memory[-fifth:]) / 2**20),
        },
    }


def _times(rows: Sequence[dict[str, float]]) -> dict[str, Any]:
    found = {}
    for kind in ("first_event", "evidence", "token", "final"):
        spent = sorted(row[kind] for row in rows if kind in row)
        if spent:
            found[kind] = {
                f"p{100 * share:g}": round(spent[min(len(spent) - 1, int(share * len(spent)))], 1)
                for share in _SHARES
            }
    return {"milliseconds": found}


def _address(log: Path, server: subprocess.Popen[bytes]) -> str:
    while True:
        text = log.read_text("utf-8")
        if " on http" in text:
            return text.partition(" on ")[2].splitlines()[0]
        if server.poll() is not None:
            raise RuntimeError(f"the server did not start: {text.strip()}")
        time.sleep(0.1)
