"""What the page asks for: its files, a level of the tree, names, a document's text, versions, the schema."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.serving import FIRST, SECOND
from support.version_by_hand import TEXTS


def test_the_page_is_served_without_a_key_and_runs_its_own_scripts_alone(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert "<script>" not in page.text
    assert "style=" not in page.text
    # Of everything else nothing may run.
    assert client.get("/healthz").headers["content-security-policy"].startswith("default-src 'none'; frame")


def test_no_script_of_the_page_makes_elements_from_text() -> None:
    import hornbeam.serve.page_routes as routes

    folder = Path(routes.__file__).parent / "page"
    scripts = [path for path in folder.rglob("*.js") if "vendor" not in path.parts]
    assert len(scripts) > 20
    for path in scripts:
        text = path.read_text("utf-8")
        for risky in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert risky not in text, f"{path.name}: {risky}"


@pytest.mark.parametrize(
    "path", ["/page/../app.py", "/page/%2e%2e/app.py", "/page/..%2fkeys.py", "/page/none.js"]
)
def test_no_path_leads_out_of_the_page_s_folder(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_tree_is_given_a_level_at_a_time_the_largest_first(client: httpx.Client) -> None:
    top = client.get("/v1/papers/tree").json()
    assert [(one["name"], one["size"]) for one in top["communities"]] == [
        ("Poland and science", 4),
        ("北京", 1),
    ]
    assert top["path"] == top["links"] == top["entities"] == []
    inner = client.get("/v1/papers/tree", params={"parent": "k4"}).json()
    assert {one["id"] for one in inner["communities"]} == {"k1", "k2"}
    # r1 links Curie (k1) and Warsaw (k2); r2 and r3 stay within.
    assert [(*sorted((one["source"], one["target"])), one["relations"]) for one in inner["links"]] == [
        ("k1", "k2", 1)
    ]
    leaf = client.get("/v1/papers/tree", params={"parent": "k1"}).json()
    assert [one["id"] for one in leaf["path"]] == ["k4", "k1"]
    assert [(one["name"], one["degree"]) for one in leaf["entities"]] == [("Marie Curie", 2), ("polonium", 1)]
    assert [one["id"] for one in leaf["relations"]] == ["r3"]
    few = client.get("/v1/papers/tree", params={"parent": "k1", "limit": 1}).json()
    assert (len(few["entities"]), few["entities_in_all"]) == (1, 2)


def test_types_and_confidence_filter_the_tree(client: httpx.Client) -> None:
    found = client.get("/v1/papers/tree", params={"parent": "k1", "types": ["element", "city"]}).json()
    assert [one["name"] for one in found["entities"]] == ["polonium"]
    sure = client.get("/v1/papers/tree", params={"parent": "k1", "min_confidence": 0.95}).json()
    assert sure["relations"] == []
    assert client.get("/v1/papers/tree", params={"parent": "none"}).status_code == 404


def test_entities_are_found_by_the_beginning_of_a_name(client: httpx.Client) -> None:
    def names(**asked: object) -> list[str]:
        return [one["name"] for one in client.get("/v1/papers/entities", params=asked).json()["entities"]]

    assert names(text="marie cur") == ["Marie Curie"]
    assert names(text="wars") == ["Warsaw"]
    assert names(text="wars", types="person") == []
    assert names()[0] in ("Marie Curie", "Warsaw")  # two relations each
    assert names(text="nothing like that") == []


@pytest.mark.parametrize("document", list(TEXTS))
def test_a_document_s_text_keeps_its_offsets(client: httpx.Client, document: str) -> None:
    text = TEXTS[document][2]
    for start, end, around in ((0, len(text), 0), (5, 12, 3), (len(text) - 3, len(text) + 50, 10_000)):
        asked = {"start": start, "end": end, "around": around}
        found = client.get(f"/v1/papers/documents/{document}", params=asked).json()
        assert found["start"] == max(0, start - around)
        assert found["end"] == min(len(text), end + around)
        assert found["text"].split() == text[found["start"] : found["end"]].split()
        assert len(found["text"]) == found["end"] - found["start"]
    assert client.get("/v1/papers/documents/none").status_code == 404


def test_a_version_has_its_gates_and_differences(client: httpx.Client) -> None:
    one = client.get(f"/v1/papers/versions/{FIRST}").json()
    assert one["gates"]["degraded"] == {"value": 0.01, "threshold": 0.02, "passed": True}
    found = client.get(f"/v1/papers/versions/{SECOND}/diff", params={"before": FIRST}).json()
    assert found["entities"]["added"] == found["entities"]["removed"] == 0
    assert found["entities"]["unchanged"] == 5
    missing = f"/v1/papers/versions/v{'0' * 16}"
    assert client.get(missing).status_code == 404
    assert client.get(f"{missing}/diff", params={"before": FIRST}).status_code == 404


def test_the_schema_is_that_of_the_served_version(client: httpx.Client) -> None:
    found = client.get("/v1/papers/schema").json()
    assert "person" in [one["name"] for one in found["served"]["entity_types"]]
    assert found["next"] is None
    assert found["can_undo"] is False
    assert client.get("/v1/papers/schema/proposals").json()["proposals"] == []
    assert client.post("/v1/papers/schema/undo").status_code == 403
