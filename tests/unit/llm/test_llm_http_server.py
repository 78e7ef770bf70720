"""The HTTP model against a real server on this machine, well and ill behaved."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from tiny_tokenizer import write_tokenizer

from hornbeam.errors import ModelError
from hornbeam.llm.batch import run_requests
from hornbeam.llm.http_server import HttpModel
from hornbeam.llm.protocol import Completion, JsonAnswer, Request, TokenScore, Usage
from hornbeam.llm.shared import SharedModel
from hornbeam.settings import ModelSettings
from support.completions_server import ANSWER, Server, running


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as started:
        yield started


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
    server.dies_after = 0
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


# Servers that know no grammar of ours

SCHEMA = {"type": "object"}
LIST = Request(
    "r1", 'prompt {"entities":[', 16, grammar="root ::= x", json_answer=JsonAnswer('{"entities":[', SCHEMA)
)


def opened(server: Server, directory: str) -> HttpModel:
    return HttpModel(server.url, ModelSettings(tokenizer=directory))


@pytest.mark.parametrize("field", ["structured_outputs", "ebnf", "grammar"])
def test_the_field_in_which_a_server_takes_grammars_is_found(
    server: Server, directory: str, field: str
) -> None:
    server.enforces = field
    model = opened(server, directory)
    assert model.enforcement.kind == "grammar"
    complete(model)
    assert {"structured_outputs", "ebnf", "grammar"} & set(server.seen[0]) == {field}
    assert "root ::=" in json.dumps(server.seen[0][field])
    model.close()


def test_a_server_of_json_schemas_gets_one_and_writes_the_opening_itself(
    server: Server, directory: str
) -> None:
    server.enforces = "response_format"
    text = '{\n  "entities": [["Ada [1]", "person"] ]}\nDone.'
    pieces = [text[i : i + 5] for i in range(0, len(text), 5)]
    scores = {"tokens": pieces, "token_logprobs": [-1.0] * len(pieces)}
    server.body = {"choices": [{"text": text, "finish_reason": "length", "logprobs": scores}]}
    model = opened(server, directory)

    completion = complete(model, LIST)

    (body,) = server.seen
    assert body["prompt"] == "prompt "
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert not {"structured_outputs", "ebnf", "grammar"} & set(body)
    assert completion.text == '["Ada [1]","person"]]}'
    assert "".join(token.text for token in completion.tokens) == completion.text
    assert completion.finish_reason == "stop"  # it went on behind the document's end
    assert model.serving()["enforces"] == "json schema"
    model.close()


@pytest.mark.parametrize(
    ("text", "kept", "reason"),
    [
        (' ["Ada", "person"] ,\n["x"', '["Ada","person"],["x"', "length"),
        ('["a \\" ] b","t"]]} and so on', '["a \\" ] b","t"]]}', "stop"),
        ("", "", "length"),
    ],
)
def test_a_server_that_enforces_nothing_goes_on_from_the_opening(
    server: Server, directory: str, text: str, kept: str, reason: str
) -> None:
    server.enforces = ""
    server.body = {"choices": [{"text": text, "finish_reason": "length"}]}
    model = opened(server, directory)
    completion = complete(model, LIST)
    assert server.seen[0]["prompt"] == LIST.prompt
    assert (completion.text, completion.finish_reason) == (kept, reason)
    model.close()


def test_another_document_than_the_one_asked_for_is_left_as_it_is(server: Server, directory: str) -> None:
    server.enforces = "response_format"
    server.body = {"choices": [{"text": '{"names": []}', "finish_reason": "stop"}]}
    model = opened(server, directory)
    assert complete(model, LIST).text == '{"names": []}'
    model.close()


def test_results_without_a_grammar_are_told_from_those_under_it(server: Server, directory: str) -> None:
    fingerprints = set()
    for server.enforces in ("structured_outputs", "response_format", ""):
        model = opened(server, directory)
        fingerprints.add(model.identity.fingerprint)
        model.close()
    assert len(fingerprints) == 3


def test_a_server_that_refuses_everything_is_refused(server: Server, directory: str) -> None:
    server.enforces = None
    with pytest.raises(ModelError, match="refuses every completion"):
        opened(server, directory)


def test_a_shared_server_gives_each_caller_its_own_stream(model: HttpModel, server: Server) -> None:
    server.body = [
        json.dumps({"choices": [{"text": "a"}]}),
        json.dumps({"choices": [{"text": "b", "finish_reason": "stop"}]}),
        json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        "[DONE]",
    ]
    shared = SharedModel(model)
    polled, read = shared.caller(), shared.caller()
    polled.submit(REQUEST)
    *pieces, last = read.stream(REQUEST)
    assert pieces == ["a", "b"]
    assert isinstance(last, Completion)
    assert last.usage == Usage(3, 0, 2)
    (completion,) = polled.poll()
    assert (completion.text, completion.request_id) == ("ab", REQUEST.request_id)
    shared.close()


def test_a_shared_server_that_is_gone_fails_the_requests(model: HttpModel, server: Server) -> None:
    server.status = 500
    shared = SharedModel(model)
    caller = shared.caller()
    caller.submit(REQUEST)
    (completion,) = caller.poll()
    assert completion.finish_reason == "error"
    assert "500" in completion.error
    shared.close()
