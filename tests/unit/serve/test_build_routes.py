"""Builds over HTTP: a real one to its promoted version, and how they are watched, refused and cancelled."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.opening import open_knowledge_base
from hornbeam.serve.builds import Builds
from hornbeam.serve.indexes import Reader
from hornbeam.serve.keys import KeyRing
from hornbeam.serve.server import Server
from hornbeam.settings import Settings
from support.building_pretence import STOPS_IN_ORDER
from support.serving import events_of, running, until

SAYS_WHY_AND_ENDS = "import sys; sys.exit('error: the model is not there')"


@contextmanager
def operated(index: Path, tmp_path: Path, **serving: Any) -> Iterator[tuple[httpx.Client, Server]]:
    ring = KeyRing(tmp_path / "keys.json")
    _, secret = ring.add("operator", [], ["papers"])
    headers = {"Authorization": f"Bearer {secret}"}
    with (
        running(index, keys=ring, **serving) as (url, server),
        httpx.Client(base_url=url, headers=headers, timeout=60) as client,
    ):
        yield client, server


def pretend(server: Server, program: str) -> None:
    server.builds = Builds(server.settings, (sys.executable, "-c", program))


def test_a_build_reads_a_named_source_and_its_version_is_served(tmp_path: Path) -> None:
    docs, more, index = tmp_path / "docs", tmp_path / "more", tmp_path / "index"
    for folder, text in (
        (docs, "Ada Byron wrote to Charles Babbage."),
        (more, "Grace Hopper met Howard Aiken."),
    ):
        folder.mkdir()
        (folder / "one.txt").write_text(text, "utf-8")
    done = CliRunner().invoke(
        app,
        [
            "index",
            str(docs),
            "--index",
            str(index),
            "--tier",
            "fast",
            "--set",
            "embedder.kind=hashed",
            "--quiet",
        ],
    )
    assert done.exit_code == 0, done.output

    def opened(directory: Path, beside: Reader | None) -> Reader:
        return Reader(*open_knowledge_base(directory, Settings(), None if beside is None else beside.kb))

    with operated(index, tmp_path, opened=opened, sources={"more": str(more)}) as (client, _):
        before = client.get("/v1/papers/versions").json()["serving"]
        refused = client.post("/v1/papers/builds", json={"source": str(more)})
        assert refused.status_code == 400
        assert "serve.sources has more" in refused.json()["error"]["message"]
        started = client.post("/v1/papers/builds", json={"source": "more"})
        assert started.status_code == 202
        build = started.json()
        assert build["by"].startswith("key ")
        told = events_of(client.get(f"/v1/papers/builds/{build['build']}/events").text)
        assert told[-1]["event"] == "end"
        assert told[-1]["state"] == "done", told[-1]
        assert told[-1]["promoted"]
        extracted = [one for one in told if one.get("stage") == "extract"][-1]
        assert (extracted["done"], extracted["total"], extracted["ended"]) == (2, 2, True)
        assert extracted["tokens"]["calls"] == 0
        serving = client.get("/v1/papers/versions").json()["serving"]
        assert serving == told[-1]["version"] != before
        listed = client.get("/v1/papers/builds").json()
        assert listed["sources"] == ["more"]
        assert [one["state"] for one in listed["builds"]] == ["done"]
        found = client.post("/v1/papers/search", json={"text": "Grace Hopper"}).json()
        assert any("Grace Hopper" in json.dumps(item) for item in found["items"])


def test_one_build_at_a_time_is_watched_and_stops_in_order(index: Path, tmp_path: Path) -> None:
    with operated(index, tmp_path) as (client, server):
        pretend(server, STOPS_IN_ORDER)
        build = client.post("/v1/papers/builds", json={}).json()
        place = f"/v1/papers/builds/{build['build']}"
        until(lambda: (client.get(place).json()["progress"] or {}).get("done") == 5)
        now = client.get(place).json()
        assert now["state"] == "running"
        assert now["progress"]["left_s"] == 2.5
        measured = client.get("/metrics").text
        assert 'hornbeam_build_rate{index="papers",stage="extract"} 2.0' in measured
        assert 'hornbeam_build_total{index="papers",stage="extract"} 10.0' in measured
        second = client.post("/v1/papers/builds", json={})
        assert second.status_code == 409
        assert "being written" in second.json()["error"]["message"]
        with client.stream("GET", f"{place}/events") as watched:
            lines = watched.iter_lines()
            assert "event: progress" in next(lines)
            assert client.post(f"{place}/cancel", json={}).status_code == 200
            assert any("5 chunks were extracted" in line for line in lines)
        assert client.get(place).json()["state"] == "stopped"
        until(lambda: "hornbeam_build_rate{" not in client.get("/metrics").text)
        until(lambda: client.post(f"{place}/cancel", json={}).status_code == 409)


def test_a_build_that_says_nothing_more_has_failed_with_its_last_words(index: Path, tmp_path: Path) -> None:
    with operated(index, tmp_path) as (client, server):
        pretend(server, SAYS_WHY_AND_ENDS)
        build = client.post("/v1/papers/builds", json={}).json()["build"]
        told = events_of(client.get(f"/v1/papers/builds/{build}/events").text)
        assert [one["event"] for one in told] == ["end"]
        assert (told[0]["state"], told[0]["message"]) == ("failed", "the model is not there")


def test_a_server_that_starts_anew_knows_and_stops_the_builds_of_the_one_before(
    index: Path, tmp_path: Path
) -> None:
    builds = Builds(Settings(), (sys.executable, "-c", STOPS_IN_ORDER))
    from hornbeam.serve.builds import Wanted

    run = builds.start(index, Wanted(), "test")
    with operated(index, tmp_path) as (client, _):
        place = f"/v1/papers/builds/{run.build_id}"
        assert client.get(place).json()["state"] == "running"
        assert client.post("/v1/papers/builds", json={}).status_code == 409
        until(lambda: client.get(place).json()["progress"] is not None)
        client.post(f"{place}/cancel", json={})
        until(lambda: client.get(place).json()["state"] == "stopped")


def test_the_end_of_the_server_stops_its_builds(index: Path, tmp_path: Path) -> None:
    with operated(index, tmp_path) as (client, server):
        pretend(server, STOPS_IN_ORDER)
        build = client.post("/v1/papers/builds", json={}).json()["build"]
        place = f"/v1/papers/builds/{build}"
        until(lambda: client.get(place).json()["progress"] is not None)
    folder = index / "builds" / build
    until(lambda: '"stopped"' in (folder / "progress.jsonl").read_text("utf-8"))


@pytest.mark.parametrize("build", ["b0000000000000000", "b..%2f..%2fledger", "..", "b000000000000000g"])
def test_no_build_leads_out_of_the_index(index: Path, tmp_path: Path, build: str) -> None:
    with operated(index, tmp_path) as (client, _):
        assert client.get(f"/v1/papers/builds/{build}").status_code in (404, 422)


def test_readers_neither_start_nor_watch(index: Path, tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "readers.json")
    _, secret = ring.add("reader", ["papers"], [])
    with running(index, keys=ring) as (url, _):
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx.get(f"{url}/v1/papers/builds", headers=headers).status_code == 403
        assert httpx.post(f"{url}/v1/papers/builds", headers=headers, json={}).status_code == 403
