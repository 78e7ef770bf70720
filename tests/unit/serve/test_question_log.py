"""What is kept of questions, who may rate and read it, and that it can be erased."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.probes import read_probes
from hornbeam.serve.keys import KeyRing
from hornbeam.store.ledger import Ledger
from hornbeam.store.question_log import FILE, Asked, QuestionLog
from support.serving import QUESTION, running


def entry(number: int, **changes: object) -> Asked:
    values: dict[str, object] = {
        "question_id": f"{number:016x}",
        "asked": float(number),
        "client": "key a",
        "version": "v1",
        "question": f"question {number}",
        "standalone": f"question {number}",
        "engine": "mix",
        "answer": f"a secret answer {number}",
        "outcome": "answered",
        "milliseconds": 12.5,
        "cited": (f"{number}.txt",),
        "documents": frozenset({f"d{number}"}),
    }
    return Asked(**values | changes)  # type: ignore[arg-type]


def ask(client: httpx.Client) -> str:
    answered = client.post(
        "/v1/papers/ask", json={"question": QUESTION}, headers={"Accept": "application/json"}
    )
    assert answered.status_code == 200
    return answered.headers["X-Request-Id"]


def test_only_what_is_rated_is_kept_and_by_whom_it_was_asked(index: Path, tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    secrets = {name: ring.add(name, ["papers"], [])[1] for name in ("anna", "bert")}
    _, operator = ring.add("operator", [], ["papers"])
    with running(index, keys=ring) as (url, _):

        def as_(secret: str) -> httpx.Client:
            return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=30)

        with as_(secrets["anna"]) as anna, as_(secrets["bert"]) as bert, as_(operator) as operates:
            assert anna.get("/v1/indexes").json()["feedback"] is True
            asked, unrated = ask(anna), ask(anna)
            assert not (index / FILE).exists()
            place = f"/v1/papers/questions/{asked}/feedback"
            assert bert.post(place, json={"rating": "down"}).status_code == 404
            assert anna.post(place, json={"rating": "up"}).status_code == 200
            assert anna.post(place, json={"rating": "up", "note": "short and right"}).status_code == 200
            assert anna.get("/v1/papers/questions").status_code == 403
            (kept,) = operates.get("/v1/papers/questions").json()["questions"]
            assert (kept["question"], kept["rating"], kept["note"]) == (QUESTION, "up", "short and right")
            assert kept["answer"].startswith("Polonium")
            assert unrated not in json.dumps(kept)
            lines = operates.get("/v1/papers/questions/probes").text.splitlines()
            assert [json.loads(line) for line in lines] == [
                {"question": QUESTION, "documents": kept["cited"]}
            ]
            assert kept["cited"]
    assert (index / FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("mode", "kept"), [("all", 1), ("off", 0)])
def test_the_setting_says_what_is_kept(index: Path, mode: str, kept: int) -> None:
    with (
        running(index, question_log=mode) as (url, _),
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        asked = ask(client)
        assert client.get("/v1/indexes").json()["feedback"] is (mode != "off")
        rated = client.post(f"/v1/papers/questions/{asked}/feedback", json={"rating": "down"})
        assert rated.status_code == (200 if kept else 404)
    assert len(QuestionLog(index).entries()) == kept
    assert len(QuestionLog(index).entries("down")) == kept


def test_an_export_is_a_probe_set_in_which_the_newest_answer_counts(tmp_path: Path) -> None:
    index, output = tmp_path / "index", tmp_path / "probes.jsonl"
    with Ledger(index, create=True):
        pass
    log = QuestionLog(index)
    log.add(entry(1, rating="up"))
    log.add(entry(2, rating="up", standalone="question 1", cited=("2.txt", "3.txt", "2.txt")))
    log.add(entry(4, rating="down"))
    log.add(entry(5, rating="up", cited=()))
    done = CliRunner().invoke(app, ["questions", "export", str(output), "--index", str(index)])
    assert done.exit_code == 0, done.output
    (probe,) = read_probes(output)
    assert (probe.question, probe.documents) == ("question 1", ("2.txt", "3.txt"))
    listed = CliRunner().invoke(app, ["questions", "list", "--index", str(index), "--rating", "down"])
    assert "question 4" in listed.stdout
    assert "question 1" not in listed.stdout


def test_what_is_erased_is_in_no_page_of_the_file(tmp_path: Path) -> None:
    log = QuestionLog(tmp_path)
    for number in range(1, 5):
        log.add(entry(number))
    assert log.forget(["0" * 15 + "1"]) == 1
    assert log.forget(before=3.0) == 1
    assert [one.question for one in log.entries()] == ["question 4", "question 3"]
    assert log.keep_documents({"d4", "d9"}) == 1
    held = b"".join(path.read_bytes() for path in tmp_path.glob(f"{FILE}*"))
    assert [number for number in range(1, 5) if f"a secret answer {number}".encode() in held] == [4]
    assert log.forget() == 1
    assert log.entries() == []
    assert QuestionLog(tmp_path / "none").forget() == 0
