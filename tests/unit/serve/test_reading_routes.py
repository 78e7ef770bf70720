"""The graph over HTTP, and versions that change under load."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx

from hornbeam.serve.keys import KeyRing
from hornbeam.store.promotions import promote
from support.serving import FIRST, QUESTION, SECOND, events_of, running, until


def entity_named(client: httpx.Client, name: str) -> str:
    items = client.post("/v1/papers/search", json={"text": name, "top_k": 20}).json()["items"]
    return next(item["ids"][0] for item in items if item["kind"] == "entity")


def test_an_entity_with_its_relations_and_its_place(client: httpx.Client) -> None:
    found = client.get(f"/v1/papers/entities/{entity_named(client, 'Curie')}").json()
    assert found["name"]
    assert found["relations_in_all"] == len(found["relations"]) > 0
    assert found["id"] in {found["relations"][0][end]["id"] for end in ("head", "tail")}
    assert found["provenance"]["end"] > found["provenance"]["start"]
    assert client.get("/v1/papers/entities/none").status_code == 404


def test_a_neighbourhood_holds_the_ends_of_its_relations(client: httpx.Client) -> None:
    entity = entity_named(client, "Curie")
    near = client.get("/v1/papers/neighbourhood", params={"entity": entity}).json()
    far = client.get("/v1/papers/neighbourhood", params={"entity": entity, "depth": 3}).json()
    ids = {node["id"] for node in near["entities"]}
    assert entity in ids
    assert {edge[end]["id"] for edge in near["relations"] for end in ("head", "tail")} | {entity} == ids
    assert ids <= {node["id"] for node in far["entities"]}
    one = client.get("/v1/papers/neighbourhood", params={"entity": entity, "limit": 1}).json()
    assert len(one["relations"]) == 1
    assert client.get("/v1/papers/neighbourhood", params={"entity": entity, "depth": 9}).status_code == 422


def test_the_tree_a_level_at_a_time(client: httpx.Client) -> None:
    top = client.get("/v1/papers/communities").json()
    assert top["communities_in_all"] == len(top["communities"]) > 0
    below = client.get("/v1/papers/communities", params={"parent": top["communities"][0]["id"]}).json()
    assert below["communities"] or below["entities"]
    assert client.get("/v1/papers/communities", params={"parent": "none"}).status_code == 404


def test_versions_are_promoted_and_rolled_back_with_a_key(index: Path, tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    _, secret = ring.add("operator", [], ["papers"])
    headers = {"Authorization": f"Bearer {secret}"}
    with running(index, keys=ring) as (url, _), httpx.Client(base_url=url, headers=headers) as client:

        def serving() -> str:
            return str(client.post("/v1/papers/search", json={"text": "Curie"}).json()["version"])

        assert serving() == FIRST
        promoted = client.post("/v1/papers/versions/promote", json={"version": SECOND})
        assert promoted.json() == {"before": FIRST, "current": SECOND}
        assert serving() == SECOND
        listed = client.get("/v1/papers/versions").json()
        assert [one["version"] for one in listed["versions"]] == [FIRST, SECOND]
        assert listed["current"] == listed["serving"] == SECOND
        assert client.post("/v1/papers/versions/rollback").json()["current"] == FIRST
        assert serving() == FIRST
        unknown = client.post("/v1/papers/versions/promote", json={"version": "v" + "0" * 16})
        assert unknown.status_code == 409
        assert str(index) not in unknown.text
        assert 'hornbeam_version_switches_total{index="papers"} 2.0' in client.get("/metrics").text


def test_a_version_that_another_process_promotes_is_taken_under_load_without_an_error(index: Path) -> None:
    with running(index) as (url, server):
        served, stop = server.indexes["papers"], threading.Event()
        outcomes: list[tuple[int, str]] = []

        def work() -> None:
            with httpx.Client(base_url=url, timeout=30) as client:
                while not stop.is_set():
                    found = client.post("/v1/papers/search", json={"text": "Curie"})
                    outcomes.append((found.status_code, found.json()["version"]))
                    asked = client.post("/v1/papers/ask", json={"question": QUESTION})
                    outcomes.append((asked.status_code, events_of(asked.text)[-1]["event"]))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for version_id in (SECOND, FIRST, SECOND):
            promote(index, version_id)
            until(lambda wanted=version_id: served.reader.version.version_id == wanted)  # type: ignore[misc]
        stop.set()
        for thread in threads:
            thread.join()
    assert {status for status, _ in outcomes} == {200}
    assert {said for _, said in outcomes} == {FIRST, SECOND, "final"}


def test_metrics_tell_of_stages_tokens_evidence_and_gates(client: httpx.Client) -> None:
    client.post("/v1/papers/ask", json={"question": QUESTION})
    text = client.get("/metrics").text
    for line in (
        'hornbeam_stage_seconds_count{index="papers",stage="answer"} 1.0',
        'hornbeam_answers_total{index="papers",outcome="answered"} 1.0',
        'hornbeam_evidence_pieces_count{index="papers"} 1.0',
        'hornbeam_gate_value{gate="degraded",index="papers"} 0.01',
        "hornbeam_questions_waiting 0.0",
        'hornbeam_request_seconds_count{method="POST",route="/v1/{index}/ask",status="200"} 1.0',
    ):
        assert line in text
    assert 'hornbeam_tokens_total{index="papers",kind="output",stage="answer"}' in text


def test_the_openapi_document_has_every_route_and_examples(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    for path in ("ask", "search", "entities/{entity_id}", "neighbourhood", "communities", "versions"):
        assert f"/v1/{{index}}/{path}" in document["paths"]
    assert "/v1/chat/completions" in document["paths"]
    assert document["components"]["schemas"]["Ask"]["properties"]["question"]["examples"]
    assert client.get("/docs").status_code == 404
