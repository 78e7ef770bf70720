"""The HTTP model against a real server on this machine, well and ill behaved."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from tiny_tokenizer import write_tokenizer

from hornbeam.errors import ModelError
from hornbeam.llm.batch import run_requests
from hornbeam.llm.http_server import HttpModel
from hornbeam.llm.protocol import Completion, Request, TokenScore, Usage
from hornbeam.settings import ModelSettings

ANSWER = {
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
    """Answers every completion with `status` and `body`; a list as body is streamed, one event each."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.models: Any = {"data": [{"id": "tiny", "max_model_len": 64}, {"id": "other"}]}
        self.status = 200
        self.body: Any = ANSWER
        self.seen: list[dict[str, Any]] = []
        self.headers_seen: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        assert self.path == "/v1/models"
        self._send(200, json.dumps(self.server.models).encode())

    def do_POST(self) -> None:
        assert self.path == "/v1/completions"
        length = int(self.headers["Content-Length"])
        self.server.seen.append(json.loads(self.rfile.read(length)))
        self.server.headers_seen.append(dict(self.headers))
        body = self.server.body
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


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(write_tokenizer(tmp_path / "tokenizer"))


@pytest.fixture
def model(server: Server, directory: str) -> Iterator[HttpModel]:
    opened = HttpModel(server.url, ModelSettings(tokenizer=directory, request_timeout_s=10))
    yield opened
    opened.close()


REQUEST = Request("r1", "prompt", 16, grammar='root ::= "]}"', stop=("\n",), logprobs=True)


def complete(model: HttpModel, request: Request = REQUEST) -> Completion:
    model.submit(request)
    (completion,) = model.poll()
    assert model.in_flight == 0
    return completion


def streamed(model: HttpModel, request: Request = REQUEST) -> tuple[list[str], Completion]:
    *pieces, last = model.stream(request)
    assert isinstance(last, Completion)
    return [piece for piece in pieces if isinstance(piece, str)], last


def event(text: str, **more: Any) -> str:
    return json.dumps({"choices": [{"text": text, "finish_reason": None} | more]})


def test_a_completion_has_text_scores_and_the_servers_own_usage(model: HttpModel) -> None:
    assert complete(model) == Completion(
        "r1",
        "]}",
        "stop",
        Usage(prompt=10, cached=8, output=2),
        (TokenScore("]", -0.5), TokenScore("}", 0.0)),
    )


def test_the_request_names_model_grammar_and_limits(model: HttpModel, server: Server) -> None:
    complete(model)
    (body,) = server.seen
    assert body["model"] == "tiny"
    assert body["structured_outputs"] == {"grammar": REQUEST.grammar}
    assert (body["prompt"], body["max_tokens"], body["temperature"]) == ("prompt", 16, 0.0)
    assert (body["stop"], body["logprobs"], body["add_special_tokens"]) == (["\n"], 0, False)


def test_a_plain_request_asks_for_no_grammar_and_no_scores(model: HttpModel, server: Server) -> None:
    complete(model, Request("r", "prompt", 4))
    assert not {"structured_outputs", "logprobs", "stop"} & set(server.seen[0])


def test_an_answer_never_outgrows_the_servers_context(model: HttpModel, server: Server) -> None:
    assert model.max_model_len == 64
    complete(model, Request("r", "x" * 60, 16))
    assert server.seen[0]["max_tokens"] == 4
    refused = complete(model, Request("r", "x" * 64, 16))
    assert refused.finish_reason == "error"
    assert "exceeds the context of 64" in refused.error
    assert len(server.seen) == 1


def test_a_cut_answer_is_told_from_a_finished_one(model: HttpModel, server: Server) -> None:
    server.body = {"choices": [{"text": "a", "finish_reason": "length"}], "usage": None}
    assert complete(model) == Completion("r1", "a", "length", Usage())


def test_many_requests_run_at_once_and_each_comes_back(model: HttpModel, server: Server) -> None:
    requests = [Request(f"r{i}", "prompt", 4) for i in range(30)]
    completions = list(run_requests(model, requests, window=8))
    assert sorted(c.request_id for c in completions) == sorted(r.request_id for r in requests)
    assert model.in_flight == 0
    assert model.poll() == []


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (500, b"out of memory", "500: out of memory"),
        (400, b'{"error":"bad grammar"}', "bad grammar"),
        (200, b"not json", "JSONDecodeError"),
        (200, b"[]", "TypeError"),
        (200, {"choices": []}, "IndexError"),
        (200, {"choices": None}, "TypeError"),
        (200, {"choices": [{"finish_reason": "stop"}]}, "KeyError"),
        (200, {"choices": [{"text": "a", "finish_reason": "stop", "logprobs": {"tokens": None}}]}, "Error"),
    ],
)
def test_a_bad_answer_is_an_error_completion_of_that_request(
    model: HttpModel, server: Server, status: int, body: Any, says: str
) -> None:
    server.status, server.body = status, body
    for completion in (complete(model), streamed(model)[1]):
        assert (completion.finish_reason, completion.text) == ("error", "")
        assert completion.error
    assert says in complete(model).error
    server.status, server.body = 200, ANSWER
    assert complete(model).finish_reason == "stop"


def test_a_server_that_went_away_is_an_error_completion(model: HttpModel, server: Server) -> None:
    server.socket.close()
    for completion in (complete(model), streamed(model)[1]):
        assert completion.finish_reason == "error"
        assert server.url in completion.error


def test_a_stream_yields_the_pieces_and_then_the_whole(model: HttpModel, server: Server) -> None:
    scores = {"tokens": ["Da"], "token_logprobs": [-1.0]}
    server.body = [
        event("Da", logprobs=scores),
        event(""),
        event(" 字", finish_reason="length"),
        json.dumps({"choices": [], "usage": ANSWER["usage"]}),
        "[DONE]",
    ]
    pieces, completion = streamed(model)
    assert pieces == ["Da", " 字"]
    assert completion == Completion(
        "r1", "Da 字", "length", Usage(prompt=10, cached=8, output=2), (TokenScore("Da", -1.0),)
    )
    assert server.seen[0]["stream"] is True


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([event("a"), '{"error": {"message": "engine died"}}', "[DONE]"], "engine died"),
        ([event("a"), "{broken"], "JSONDecodeError"),
        ([event("a")], "broke off"),
    ],
)
def test_a_stream_that_breaks_ends_in_an_error(
    model: HttpModel, server: Server, events: list[str], says: str
) -> None:
    server.body = events
    pieces, completion = streamed(model)
    assert pieces == ["a"]
    assert completion.finish_reason == "error"
    assert says in completion.error


def test_a_stream_can_be_left_early_and_the_model_goes_on(model: HttpModel, server: Server) -> None:
    server.body = [event("a"), event("b"), "[DONE]"]
    stream = model.stream(REQUEST)
    assert next(stream) == "a"
    stream.close()  # type: ignore[attr-defined]
    server.body = ANSWER
    assert complete(model).text == "]}"


def test_the_model_named_in_the_settings_is_used(server: Server, directory: str) -> None:
    model = HttpModel(f"{server.url}/v1/", ModelSettings(name="other", tokenizer=directory))
    assert model.identity.name == "other"
    assert server.url in model.identity.reason
    assert complete(model).text == "]}"
    assert server.seen[0]["model"] == "other"
    model.close()


def test_the_key_goes_into_the_header_and_nowhere_else(server: Server, directory: str) -> None:
    model = HttpModel(server.url, ModelSettings(tokenizer=directory, api_key="s3cret"))
    complete(model)
    assert server.headers_seen[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in json.dumps(server.seen[0])
    assert "s3cret" not in repr(model.identity)
    model.close()


@pytest.mark.parametrize("models", [{"data": []}, {"data": [{"id": "a"}]}, {}, [], {"data": [{}]}])
def test_a_server_without_the_wanted_model_is_refused(server: Server, directory: str, models: Any) -> None:
    server.models = models
    with pytest.raises(ModelError, match=r"127\.0\.0\.1"):
        HttpModel(server.url, ModelSettings(name="tiny", tokenizer=directory))


def test_no_server_at_all_is_refused_with_its_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ModelError, match=f"no model server answers at {url}"):
            HttpModel(url, ModelSettings())


def test_without_a_tokenizer_on_this_machine_the_setting_to_name_one_is_told(server: Server) -> None:
    with pytest.raises(ModelError, match="HORNBEAM_MODEL__TOKENIZER"):
        HttpModel(server.url, ModelSettings())


def test_the_servers_own_model_directory_serves_as_tokenizer(server: Server, directory: str) -> None:
    server.models = {"data": [{"id": "tiny", "root": directory}]}
    model = HttpModel(server.url, ModelSettings(max_model_len=700))
    assert model.tokenizer.count("abc") == 3
    assert model.max_model_len == 700
    model.close()
