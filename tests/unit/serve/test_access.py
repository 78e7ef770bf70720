"""Keys, scopes, and requests that are refused: the right status, one line in the log, nothing else harmed."""

from __future__ import annotations

import json
import logging
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.errors import UsageError
from hornbeam.serve.keys import KeyRing
from support.serving import QUESTION, SECOND, running, until

#: HORNBEAM_TEST_REQUESTS=1000: the long form.
REQUESTS = int(os.environ.get("HORNBEAM_TEST_REQUESTS", "64"))


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_a_key_is_stored_as_a_hash_that_only_its_owner_can_read(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "deep" / "keys.json")
    key, secret = ring.add("anna", ["papers"], [])
    assert secret not in ring.path.read_text("utf-8")
    assert ring.path.stat().st_mode & 0o077 == 0
    assert ring.find(secret) == key
    assert ring.find(secret + "x") is None
    assert key.allows("read", "papers")
    assert not key.allows("read", "patents")
    assert not key.allows("operate", "papers")


def test_another_process_s_change_of_the_keys_is_seen(tmp_path: Path) -> None:
    ring, other = KeyRing(tmp_path / "keys.json"), KeyRing(tmp_path / "keys.json")
    key, secret = other.add("anna", ["*"], [])
    assert ring.find(secret) == key
    other.remove(key.key_id)
    assert ring.find(secret) is None
    with pytest.raises(UsageError, match="no key"):
        other.remove(key.key_id)


def test_keys_at_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["keys", *arguments, "--keys", str(tmp_path / "keys.json")])
        assert done.exit_code == 0, done.output
        return done.stdout

    made = json.loads(run("add", "anna", "--operate", "papers", "--json"))
    assert made["key"].startswith("hb_")
    listed = run("list")
    assert "anna: operate papers" in listed
    assert made["key"] not in listed
    assert "removed" in run("remove", made["key_id"])
    assert "no keys" in run("list")


def test_scopes_are_kept_per_index(index: Path, tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    _, reader = ring.add("reader", ["papers"], [])
    _, stranger = ring.add("stranger", ["patents"], [])
    _, operator = ring.add("operator", [], ["papers"])
    search, promotion = {"text": "Curie"}, {"version": SECOND}
    with running(index, keys=ring) as (url, _), httpx.Client(base_url=url) as client:

        def status(path: str, body: object, secret: str | None) -> int:
            return client.post(path, json=body, headers=bearer(secret) if secret else {}).status_code

        assert status("/v1/papers/search", search, None) == 401
        assert status("/v1/papers/search", search, "hb_guess") == 401
        assert status("/v1/papers/search", search, stranger) == 403
        assert status("/v1/patents/search", search, reader) == 403  # is it there? that is not told
        assert status("/v1/patents/search", search, stranger) == 404
        assert status("/v1/papers/search", search, reader) == 200
        assert status("/v1/papers/versions/promote", promotion, reader) == 403
        assert status("/v1/papers/versions/promote", promotion, operator) == 200
        models = client.get("/v1/models", headers=bearer(stranger)).json()
        assert models["data"] == []
        assert client.get("/metrics").status_code == 401
        assert client.get("/healthz").status_code == 200


def test_without_keys_anybody_here_may_read_and_nobody_may_operate(client: httpx.Client) -> None:
    assert client.post("/v1/papers/search", json={"text": "Curie"}).status_code == 200
    assert client.post("/v1/papers/versions/promote", json={"version": SECOND}).status_code == 403
    assert client.post("/v1/papers/versions/rollback").status_code == 403


def test_a_site_whose_name_points_here_gets_nothing(client: httpx.Client) -> None:
    refused = client.get("/v1/indexes", headers={"Host": "evil.example"})
    assert refused.status_code == 421
    allowed = client.get("/v1/indexes", headers={"Host": "localhost:8080", "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in allowed.headers


def test_every_response_has_its_id_and_the_headers_that_keep_pages_out(client: httpx.Client) -> None:
    for response in (client.get("/healthz"), client.get("/nowhere"), client.post("/v1/papers/ask")):
        assert len(response.headers["x-request-id"]) == 16
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["content-security-policy"].startswith("default-src 'none'")


def test_no_path_of_the_machine_is_in_what_versions_tell(index: Path, client: httpx.Client) -> None:
    told = client.get("/v1/papers/versions").text
    assert str(index) not in told
    assert str(index.parent) not in told


def test_another_host_needs_a_key_or_a_word_that_it_does_not(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["serve", "--index", "x", "--host", "0.0.0.0", "--keys", str(tmp_path / "none.json")]
    )
    assert isinstance(done.exception, UsageError)
    assert "hornbeam keys add" in str(done.exception)


@pytest.mark.parametrize("given", [["--index", "a b=x"], ["--index", "a=x", "--index", "a=y"]])
def test_names_of_indexes_that_cannot_be(given: list[str]) -> None:
    assert CliRunner().invoke(app, ["serve", *given]).exit_code == 2


def abort(url: str, random_: random.Random) -> int:
    """Send half a request and go."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(
            b"POST /v1/papers/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n" + b"{" * random_.randrange(1, 900)
        )
    return 0


def test_bad_requests_get_the_right_status_and_one_line_each(
    index: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ring = KeyRing(tmp_path / "keys.json")
    _, secret = ring.add("reader", ["papers"], [])
    random_ = random.Random(7)

    def post(body: bytes, key: str | None = secret, path: str = "/v1/papers/ask") -> int:
        headers = {"Content-Type": "application/json"} | (bearer(key) if key else {})
        return client.post(path, content=body, headers=headers).status_code

    def chunked() -> int:
        body = iter([b"x" * 9000] * 40)
        return client.post("/v1/papers/ask", content=body, headers=bearer(secret)).status_code

    question = json.dumps({"question": QUESTION}).encode()
    kinds: list[tuple[int, Callable[[], int]]] = [
        (400, lambda: post(b"\x80" * 4 + random_.randbytes(random_.randrange(1, 300)))),
        (400, lambda: post(b"[" * random_.randrange(5_000, 50_000))),
        (422, lambda: post(b"[" * random_.randrange(1, 200))),
        (422, lambda: post(b'{"question": "' + b"q" * 5000 + b'"}')),
        (422, lambda: post(json.dumps({"question": " ", "engine": "auto"}).encode())),
        (422, lambda: post(json.dumps({"question": "x", "engine": "../../etc/passwd"}).encode())),
        (422, lambda: post(b'{"question": "\\ud800"}')),
        (413, lambda: post(b"{" * 300_000)),
        (413, chunked),
        (401, lambda: post(question, None)),
        (401, lambda: post(question, "hb_" + "x" * random_.randrange(1, 2000))),
        (404, lambda: post(question, path="/v1/..%2f..%2fetc/ask")),
        (403, lambda: post(question, path="/v1/etc/ask")),
        (404, lambda: post(question, path="/v1/papers/../../etc")),
        (405, lambda: client.put("/v1/papers/ask", headers=bearer(secret)).status_code),
        (404, lambda: client.get("/v1/papers/entities/..%2f..", headers=bearer(secret)).status_code),
        (0, lambda: abort(url, random_)),
    ]
    with running(index, keys=ring) as (url, server), httpx.Client(base_url=url, timeout=30) as client:
        caplog.clear()
        for number in range(REQUESTS):
            expected, send = kinds[number % len(kinds)]
            assert send() == expected, f"kind {number % len(kinds)}"
        until(lambda: len(_lines(caplog)) == REQUESTS)
        after = client.post("/v1/papers/search", json={"text": "Curie"}, headers=bearer(secret))
        assert after.status_code == 200
        until(lambda: len(_lines(caplog)) == REQUESTS + 1)
        assert server.questions.at_work == server.questions.waiting == 0
    others = [one for one in caplog.records if one.name.startswith(("uvicorn", "asyncio"))]
    assert not [one for one in others if one.levelno > logging.INFO]


def _lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "hornbeam.serve"]
