"""A completions server on this machine for tests of what talks to one, well and ill behaved."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER: dict[str, Any] = {
    "choices": [
        {
            "text": "]}",
            "finish_reason": "stop",
            "logprobs": {"tokens": ["]", "}"], "token_logprobs": [-0.5, None]},
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}},
}


class Server(ThreadingHTTPServer):
    """Answers every completion with `status` and `body`; a list as body is streamed, one event each, and a
    function is given the request.

    Attributes:
        enforces: what it does with the probe at opening: the name of the field in which it takes grammars,
            "response_format", "" for nothing, None to refuse it.
        delay_s: before every answer but the probes'.
        dies_after: answers, then it closes every connection without a word; None: never.
        seen: bodies of completions but for the probes; `probes` is their number.
    """

    daemon_threads = True

    def __init__(self, **attributes: Any) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.models: Any = {"data": [{"id": "tiny", "max_model_len": 64}, {"id": "other"}]}
        self.enforces: str | None = "structured_outputs"
        self.status = 200
        self.body: Any = ANSWER
        self.delay_s = 0.0
        self.dies_after: int | None = None
        self.seen: list[dict[str, Any]] = []
        self.headers_seen: list[dict[str, str]] = []
        self.probes = 0
        self.busy = self.most_busy = 0
        self.lock = threading.Lock()
        for name, value in attributes.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer_to_probe(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.probes += 1
        text = "I do not know."
        if self.enforces is None:
            return 400, b"unknown field"
        if self.enforces in body:
            text = "zq7vx" if self.enforces != "response_format" else '{"code": "zq7vx"}'
        return 200, json.dumps({"choices": [{"text": text, "finish_reason": "stop"}]}).encode()

    def is_dead(self) -> bool:
        return self.dies_after is not None and len(self.seen) > self.dies_after


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"  # connections are kept

    def do_GET(self) -> None:
        assert self.path == "/v1/models"
        self.close_connection = self.server.is_dead()
        if not self.server.is_dead():
            self._send(200, json.dumps(self.server.models).encode())

    def do_POST(self) -> None:
        assert self.path == "/v1/completions"
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        server = self.server
        if body["prompt"] == "The code word is" and not server.is_dead():
            self._send(*server.answer_to_probe(body))
            return
        with server.lock:
            server.seen.append(body)
            server.headers_seen.append(dict(self.headers))
            server.busy += 1
            server.most_busy = max(server.most_busy, server.busy)
        try:
            time.sleep(server.delay_s)
            self.close_connection = server.is_dead()
            if not server.is_dead():
                self._answer(server.body(body) if callable(server.body) else server.body)
        finally:
            with server.lock:
                server.busy -= 1

    def _answer(self, body: Any) -> None:
        if isinstance(body, list):
            body = b"".join(f"data: {event}\n\n".encode() for event in body)
        elif not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self._send(self.server.status, body)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def running(**attributes: Any) -> Iterator[Server]:
    with Server(**attributes) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
