"""Questions and searches over HTTP: the protocol, the queue, what stops when nobody listens."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx

from support.scripted_model import ScriptedModel
from support.serving import QUESTION, events_of, running, until


def endless() -> ScriptedModel:
    return ScriptedModel(lambda request: "word " * 10_000, pause=0.002)


def test_a_question_streams_its_events_in_the_order_of_the_protocol(client: httpx.Client) -> None:
    with client.stream("POST", "/v1/papers/ask", json={"question": QUESTION}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        text = response.read().decode()
    events = events_of(text)
    assert [event["event"] for event in events][:2] == ["question", "evidence"]
    assert [event["event"] for event in events][-2:] == ["usage", "final"]
    assert text.startswith("event: question\n")
    assert events[-1]["answer"].startswith("Polonium")


def test_one_document_where_json_is_asked_for(client: httpx.Client) -> None:
    answer = client.post(
        "/v1/papers/ask", json={"question": QUESTION}, headers={"Accept": "application/json"}
    ).json()
    assert answer["answer"].startswith("Polonium")
    assert answer["evidence"][0]["label"] == answer["citations"][0]["label"]
    assert answer["version"] == "v1111111111111111"


def test_a_search_says_where_what_it_found_stands(client: httpx.Client) -> None:
    found = client.post("/v1/papers/search", json={"text": "Curie", "top_k": 3}).json()
    assert 0 < len(found["items"]) <= 3
    assert found["version"] == "v1111111111111111"
    assert "kind" in found["items"][0]


def test_a_client_that_goes_stops_the_model_call(index: Path) -> None:
    model = endless()
    with running(index, model) as (url, server):
        with httpx.stream("POST", f"{url}/v1/papers/ask", json={"question": QUESTION}) as response:
            for line in response.iter_lines():
                if line == "event: token":
                    break
        until(lambda: model.in_flight == 0)
        assert len(model.cancelled) == 1
        until(lambda: server.questions.at_work == 0)


def test_a_client_that_goes_before_anything_is_sent_stops_it_as_well(index: Path) -> None:
    model = endless()
    headers = {"Accept": "application/json"}
    with running(index, model) as (url, server):
        try:
            httpx.post(f"{url}/v1/papers/ask", json={"question": QUESTION}, headers=headers, timeout=0.5)
        except httpx.ReadTimeout:
            pass
        else:
            raise AssertionError("it answered")
        until(lambda: model.in_flight == 0 and server.questions.at_work == 0)
        assert len(model.cancelled) == 1


def test_a_full_queue_sends_away_and_says_when_to_come_again(index: Path) -> None:
    hold = threading.Event()
    model = ScriptedModel(lambda request: "Polonium [1].", hold=hold)
    with running(index, model, questions=1, queue=1) as (url, server):
        statuses: list[int] = []

        def ask() -> None:
            response = httpx.post(f"{url}/v1/papers/ask", json={"question": QUESTION}, timeout=30)
            statuses.append(response.status_code)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for number, thread in enumerate(threads, start=1):
            thread.start()
            until(lambda n=number: server.questions.at_work + server.questions.waiting == n)  # type: ignore[misc]
        refused = httpx.post(f"{url}/v1/papers/ask", json={"question": QUESTION})
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json()["error"]["type"] == "busy"
        assert httpx.get(f"{url}/readyz").status_code == 503
        assert httpx.get(f"{url}/healthz").status_code == 200
        hold.set()
        for thread in threads:
            thread.join()
        assert statuses == [200, 200]
        assert httpx.get(f"{url}/readyz").status_code == 200


def test_at_the_deadline_the_best_answer_so_far_is_given(index: Path) -> None:
    with running(index, endless()) as (url, _):
        started = time.monotonic()
        events = events_of(
            httpx.post(
                f"{url}/v1/papers/ask", json={"question": QUESTION, "deadline_s": 0.5}, timeout=30
            ).text
        )
        assert time.monotonic() - started < 20
    assert events[-1]["event"] == "final"
    assert events[-1]["out_of_time"] or events[-1]["cut"]


def test_a_model_that_fails_is_an_event_and_the_server_goes_on(index: Path) -> None:
    def fail(request: object) -> str:
        raise ValueError("no such thing")

    with running(index, ScriptedModel(fail)) as (url, server):
        events = events_of(httpx.post(f"{url}/v1/papers/ask", json={"question": QUESTION}).text)
        assert events[-1]["event"] == "error"
        document = httpx.post(
            f"{url}/v1/papers/ask", json={"question": QUESTION}, headers={"Accept": "application/json"}
        )
        assert document.status_code == 503
        assert httpx.post(f"{url}/v1/papers/search", json={"text": "Curie"}).status_code == 200
        assert server.questions.at_work == 0
