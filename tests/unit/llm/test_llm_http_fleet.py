"""Several servers as one model: which is asked, what becomes of a request whose server fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from tiny_tokenizer import write_tokenizer

from hornbeam.errors import ModelError
from hornbeam.llm import http_fleet
from hornbeam.llm.batch import run_requests
from hornbeam.llm.http_fleet import HttpFleet
from hornbeam.llm.http_server import HttpModel
from hornbeam.llm.opening import open_model, server_urls
from hornbeam.llm.protocol import Completion, Request, Stepper
from hornbeam.settings import ModelSettings, Settings
from support.completions_server import ANSWER, Server, running


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(write_tokenizer(tmp_path / "tokenizer"))


@contextmanager
def fleet(directory: str, *servers: dict[str, Any]) -> Iterator[tuple[HttpFleet, list[Server]]]:
    with ExitStack() as stack:
        started = [stack.enter_context(running(**attributes)) for attributes in servers]
        settings = ModelSettings(tokenizer=directory, request_timeout_s=5)
        model = HttpFleet([server.url for server in started], settings)
        stack.callback(model.close)
        yield model, started


def ask(model: HttpFleet, count: int, window: int = 8) -> dict[str, Completion]:
    requests = [Request(f"r{number}", "prompt", 4) for number in range(count)]
    completions = list(run_requests(model, requests, window))
    assert len(completions) == count
    assert model.in_flight == 0
    return {completion.request_id: completion for completion in completions}


def test_every_server_works_and_each_request_is_asked_once(directory: str) -> None:
    with fleet(directory, {"delay_s": 0.01}, {"delay_s": 0.01}) as (model, servers):
        answers = ask(model, 30)
    assert {answer.text for answer in answers.values()} == {"]}"}
    assert sum(len(server.seen) for server in servers) == 30
    assert all(server.seen for server in servers)


def test_the_slow_server_gets_less(directory: str) -> None:
    with fleet(directory, {"delay_s": 0.3}, {"delay_s": 0.005}) as (model, (slow, fast)):
        ask(model, 40)
        assert len(slow.seen) < len(fast.seen)
        assert slow.most_busy <= 5  # half of the window of 8, and one


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500, "body": b"out of memory"},
        {"status": 429, "body": b"slow down"},
        {"body": b"not json"},
        {"body": {"choices": []}},
        {"dies_after": 0},
        {"dies_after": 7},
    ],
    ids=["500", "429", "no json", "no choice", "dead", "dies in the middle"],
)
def test_no_request_is_lost_with_a_server(directory: str, fault: dict[str, Any]) -> None:
    with fleet(directory, fault, {}) as (model, (ill, well)):
        answers = ask(model, 30)
        ill_state, well_state = model.serving()["servers"]
    assert {answer.finish_reason for answer in answers.values()} == {"stop"}
    assert ill_state["url"] == ill.url
    assert ill_state["faults"] >= 1
    assert ill_state["last_fault"]
    assert well_state["faults"] == 0
    assert ill_state["answered"] + well_state["answered"] == 30
    assert len(well.seen) >= 23


def test_a_failing_server_rests_instead_of_failing_every_request(directory: str) -> None:
    with fleet(directory, {"status": 503, "body": b""}, {}) as (model, (ill, _)):
        ask(model, 40, window=2)
        assert len(ill.seen) <= 4


def test_a_request_that_is_at_fault_itself_is_asked_of_one_server(directory: str) -> None:
    refusing = {"status": 400, "body": b"bad grammar"}
    with fleet(directory, refusing, refusing) as (model, servers):
        (answer,) = ask(model, 1).values()
        assert "bad grammar" in answer.error
        assert sum(len(server.seen) for server in servers) == 1
        assert all(state["faults"] == 0 for state in model.serving()["servers"])


def test_a_request_that_every_server_fails_is_an_error_that_names_them(directory: str) -> None:
    with fleet(directory, {"status": 500, "body": b"fire"}, {"dies_after": 0}) as (model, servers):
        (answer,) = ask(model, 1).values()
        assert answer.finish_reason == "error"
        assert "fire" in answer.error
        assert servers[1].url in answer.error


def test_a_server_that_was_down_joins_when_it_is_back(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_fleet, "_FIRST_REST_S", 0.0)
    with running() as well, running(status=503) as late:
        late.models, models = [], late.models
        settings = ModelSettings(tokenizer=directory)
        model = HttpFleet([late.url, well.url], settings)
        late.models, late.status = models, 200
        ask(model, 20)
        assert late.seen
        assert well.seen
        model.close()


def test_a_server_that_comes_back_with_another_model_is_not_asked(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_fleet, "_FIRST_REST_S", 0.0)
    with running() as well, running(models=[]) as late:
        model = HttpFleet([late.url, well.url], ModelSettings(tokenizer=directory))
        late.models = {"data": [{"id": "larger"}]}
        answers = ask(model, 20)
        assert {answer.finish_reason for answer in answers.values()} == {"stop"}
        assert not late.seen
        assert "larger" in model.serving()["servers"][0]["last_fault"]
        model.close()


def test_servers_of_different_models_are_refused(directory: str) -> None:
    other = {"models": {"data": [{"id": "another"}]}}
    with pytest.raises(ModelError, match=r"differ.*tiny.*another"), fleet(directory, {}, other):
        pass


def test_servers_that_enforce_different_things_are_refused(directory: str) -> None:
    with (
        pytest.raises(ModelError, match="enforces json schema"),
        fleet(directory, {}, {"enforces": "response_format"}),
    ):
        pass


def test_no_server_at_all_is_an_error_that_names_each() -> None:
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:1/.*127\.0\.0\.1:2/"):
        HttpFleet(["http://127.0.0.1:1", "http://127.0.0.1:2"], ModelSettings())


def test_a_fleet_answers_as_one_of_its_servers_would(directory: str) -> None:
    """Results of one server are found again when a second one is added."""
    with fleet(directory, {}, {"models": {"data": [{"id": "tiny", "max_model_len": 48}]}}) as (
        model,
        servers,
    ):
        alone = HttpModel(servers[0].url, ModelSettings(tokenizer=directory))
        assert model.identity.fingerprint == alone.identity.fingerprint
        assert model.max_model_len == 48
        alone.close()


def test_a_stream_is_begun_anew_elsewhere_as_long_as_nothing_was_given_out(directory: str) -> None:
    event = '{"choices": [{"text": "Da", "finish_reason": "stop"}]}'
    with fleet(directory, {"status": 500}, {"body": [event, "[DONE]"]}) as (model, (ill, _)):
        for _ in range(2):
            parts = list(model.stream(Request("s", "prompt", 4)))
            assert parts[0] == "Da"
            assert isinstance(parts[-1], Completion)
            assert parts[-1].text == "Da"
        assert len(ill.seen) <= 1


def test_a_stream_that_breaks_off_in_the_middle_is_not_begun_again(directory: str) -> None:
    event = '{"choices": [{"text": "Da", "finish_reason": null}]}'
    with fleet(directory, {"body": [event]}, {"body": [event]}) as (model, servers):
        parts = list(model.stream(Request("s", "prompt", 4)))
        assert parts[0] == "Da"
        assert isinstance(parts[-1], Completion)
        assert parts[-1].finish_reason == "error"
        assert sum(len(server.seen) for server in servers) == 1


def test_a_list_of_urls_opens_a_fleet_and_one_url_a_server(directory: str) -> None:
    with running() as one, running() as two:
        for path, kind in ((f"{one.url}, {two.url}", HttpFleet), (one.url, HttpModel)):
            model = open_model(Settings.model_validate({"model": {"path": path, "tokenizer": directory}}))
            assert isinstance(model, kind)
            model.close()


@pytest.mark.parametrize("path", [None, "", "/models/a,b", "http://a,/models/b", "~/x"])
def test_what_is_no_list_of_urls_is_none(path: str | None) -> None:
    assert server_urls(path) == []


def test_the_answers_that_servers_give_are_the_ones_that_come_back(directory: str) -> None:
    usages = [ANSWER | {"usage": {"prompt_tokens": n, "completion_tokens": 1}} for n in (3, 7)]
    with fleet(directory, {"body": usages[0]}, {"body": usages[1]}) as (model, servers):
        answers = ask(model, 12)
        for server, prompt in zip(servers, (3, 7), strict=True):
            assert sum(a.usage.prompt == prompt for a in answers.values()) == len(server.seen)


def test_many_streams_share_the_fleet_step_by_step(directory: str) -> None:
    events = ['{"choices": [{"text": "Da", "finish_reason": null}]}', "[DONE]"]
    with fleet(directory, {"body": events}, {"body": events}) as (model, servers):
        assert isinstance(model, Stepper)
        for number in range(6):
            model.start(Request(f"s{number}", "prompt", 4), streaming=number % 2 == 0)
        came: dict[str, list[str | Completion]] = {}
        deadline = time.monotonic() + 20
        while sum(isinstance(part, Completion) for parts in came.values() for part in parts) < 6:
            assert time.monotonic() < deadline
            for request_id, part in model.step():
                came.setdefault(request_id, []).append(part)
        assert [len(came[f"s{number}"]) for number in range(6)] == [2, 1, 2, 1, 2, 1]
        assert all(server.seen for server in servers)


def test_credentials_in_a_url_are_not_shown(directory: str) -> None:
    with running() as one, running() as two:
        urls = [server.url.replace("//", "//user:s3cret@") for server in (one, two)]
        model = HttpFleet(urls, ModelSettings(tokenizer=directory))
        assert "s3cret" not in str(model.serving())
        model.close()
