"""The commands as a person types them; those that need no model, and one that runs it offline."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import Indexed


def run(
    command: list[str], *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | (environment or {}),
        check=False,
    )


def test_help_and_version_answer(hornbeam: list[str]) -> None:
    done = run(hornbeam, "--help")
    assert done.returncode == 0
    assert {"doctor", "index", "query", "search", "status", "schema"} <= set(done.stdout.split())
    assert run(hornbeam, "--version").stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("status", "--index", "{missing}"), 4, "is no index"),
        (("search", "x", "--index", "{missing}"), 4, "no current version"),
        (("search", "x", "--index", "{here}/broken.json"), 4, "no current version"),
        (("index", "{missing}/nothing", "--index", "{missing}"), 2, "nothing"),
        (("index", "{here}", "--index", "{missing}", "--schema", "generall"), 2, "general"),
        (("index", "{here}", "--index", "{missing}", "--set", "chunk.max_token=9"), 2, "chunk.max_tokens"),
        (("index", "{here}", "--index", "{missing}", "--set", "chunk.max_tokens=9"), 2, "32"),
        (("index", "{here}", "--index", "{missing}", "--model", "{missing}/model"), 4, "neither a directory"),
        (("schema", "check", "{here}/broken.json"), 2, "broken.json"),
        (("schema", "diff", "general"), 2, "two schemas"),
        (("schema", "import", "general", "--output", "{here}/broken.json"), 2, "exists already"),
        (("schema", "proposals", "--index", "{missing}"), 4, "is no index"),
        (("schema", "accept", "--index", "{missing}"), 2, "--all"),
        (("schema", "accept", "ship", "--index", "{missing}"), 4, "is no index"),
        (("schema", "undo", "--index", "{missing}"), 4, "nothing to undo"),
        (("schema", "bootstrap", "{here}", "--output", "{here}/broken.json"), 2, "exists already"),
        (("update", "--index", "{missing}"), 4, "is no index"),
        (("delete", "x", "--index", "{missing}"), 4, "is no index"),
        (("query", "x", "--index", "{missing}", "--engine", "magic"), 2, "magic"),
    ],
)
def test_a_mistake_is_one_line_on_standard_error_with_its_exit_code(
    hornbeam: list[str], tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "broken.json").write_text("{", "utf-8")
    places = {"missing": str(tmp_path / "missing"), "here": str(tmp_path)}
    done = run(hornbeam, *(argument.format(**places) for argument in arguments))
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_schema_commands_show_and_check(hornbeam: list[str], tmp_path: Path) -> None:
    shown = json.loads(run(hornbeam, "schema", "show", "nerel", "--json").stdout)
    assert len(shown["entity_types"]) == 29
    (tmp_path / "own.json").write_text(json.dumps(shown), "utf-8")
    assert "49 relation types" in run(hornbeam, "schema", "check", str(tmp_path / "own.json")).stdout
    assert "incident" in run(hornbeam, "schema", "list").stdout.split()


def test_schemas_are_converted_and_compared(hornbeam: list[str], tmp_path: Path) -> None:
    (tmp_path / "flat.json").write_text('{"Nodes": ["ship"], "Relations": ["sails_to"], "Attributes": []}')
    own = tmp_path / "own.json"

    done = run(hornbeam, "schema", "import", str(tmp_path / "flat.json"), "--output", str(own))

    assert "1 entity types, 1 relation types" in done.stdout
    assert json.loads(own.read_text())["entity_types"] == [{"name": "ship", "description": ""}]
    same = run(hornbeam, "schema", "diff", str(own), str(own))
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "the same types")
    own.write_text(own.read_text().replace("ship", "boat"))
    found = json.loads(
        run(hornbeam, "schema", "diff", str(tmp_path / "flat.json"), str(own), "--json").stdout
    )
    assert [(each["name"], each["before"], each["after"]) for each in found["changes"]] == [
        ("ship", "ship", None),
        ("boat", None, "boat"),
    ]


@pytest.mark.model
def test_status_and_search_read_the_index_as_json(hornbeam: list[str], indexed: Indexed) -> None:
    status = json.loads(run(hornbeam, "status", "--index", str(indexed.index), "--json").stdout)
    assert status["version"] == indexed.version.version_id
    assert status["tokens"]["entities"]["output"] > 0
    assert "entities" in run(hornbeam, "status", "--index", str(indexed.index)).stdout
    found = json.loads(
        run(
            hornbeam, "search", "Selkie turbine", "--index", str(indexed.index), "--top-k", "3", "--json"
        ).stdout
    )
    assert len(found["items"]) == 3
    assert found["version"] == indexed.version.version_id


_NO_NETWORK = """
import socket, sys
def refuse(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
        print("NETWORK", address, file=sys.stderr)
        raise OSError(f"the network is off: {address}")
    return real(self, address)
real = socket.socket.connect
socket.socket.connect = refuse
socket.socket.connect_ex = refuse
"""


@pytest.mark.model
def test_index_and_query_make_no_network_call(hornbeam: list[str], tmp_path: Path) -> None:
    guard = tmp_path / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(_NO_NETWORK, "utf-8")
    offline = {"PYTHONPATH": str(guard)}
    document = tmp_path / "note.txt"
    document.write_text("Lena Sorvik founded Sorvik Optics in Quillhaven in 1979.", "utf-8")
    index = str(tmp_path / "index")
    built = run(hornbeam, "index", str(document), "--index", index, "--json", environment=offline)
    assert built.returncode == 0, built.stderr
    assert json.loads(built.stdout)["entities"] > 0
    assert "NETWORK" not in built.stderr
    asked = run(
        hornbeam, "query", "Who founded Sorvik Optics?", "--index", index, "--json", environment=offline
    )
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["citations"]
    assert "NETWORK" not in asked.stderr


@pytest.mark.model
def test_an_empty_folder_is_a_mistake_and_an_empty_file_gives_an_empty_graph(
    hornbeam: list[str], tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    index = str(tmp_path / "index")
    empty = run(hornbeam, "index", str(corpus), "--index", index, "--json")
    assert empty.returncode == 2, empty.stderr
    assert "there is no file in" in json.loads(empty.stdout)["error"]
    (corpus / "empty.txt").write_text("", "utf-8")
    rejected = run(hornbeam, "index", str(corpus), "--index", index, "--json")
    assert rejected.returncode == 1, rejected.stderr
    assert json.loads(rejected.stdout)["documents"]["rejected"][0]["reason"] == "empty"
    nothing = run(hornbeam, "search", "anything", "--index", index)
    assert nothing.returncode == 0, nothing.stderr
    assert "nothing found" in nothing.stdout
    unanswered = run(hornbeam, "query", "anything?", "--index", index, "--json")
    assert unanswered.returncode == 0, unanswered.stderr
    assert json.loads(unanswered.stdout)["rejected"]


@pytest.mark.model
def test_an_index_inside_its_corpus_is_no_document(hornbeam: list[str], tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Lena Sorvik founded Sorvik Optics.", "utf-8")
    index = str(tmp_path / "index")
    first = run(hornbeam, "index", str(tmp_path), "--index", index, "--json")
    assert first.returncode == 0, first.stderr
    second = json.loads(run(hornbeam, "index", str(tmp_path), "--index", index, "--json").stdout)
    assert second["documents"]["seen"] == 1
    assert second["unchanged"]


@pytest.mark.model
def test_ctrl_c_says_that_the_run_can_go_on(hornbeam: list[str], tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Lena Sorvik founded Sorvik Optics. " * 200, "utf-8")
    command = [*hornbeam, "index", str(tmp_path / "note.txt"), "--index", str(tmp_path / "index")]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("extract:"):
            break
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    assert process.wait(timeout=120) == 1
    assert "run the same command again" in said
    assert "Traceback" not in said
