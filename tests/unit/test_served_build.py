"""A build by servers that know no grammars: what they say beside the text and the schema is dropped and
counted, and a server that dies takes nothing with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xgrammar")

from hornbeam.grammar.entities import OPENING
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.http_fleet import HttpFleet
from hornbeam.settings import ModelSettings
from support.building import build, walking_settings
from support.completions_server import running
from support.invariants import check_invariants

MODELS = {"data": [{"id": "tiny", "max_model_len": 4096}]}


def write_corpus(folder: Path) -> Path:
    folder.mkdir()
    for number in range(12):
        text = f"Ada Byron met Charles Babbage in London. Letter {number} says so.\n"
        (folder / f"{number}.txt").write_text(text, "utf-8")
    return folder


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """As a model would that follows the schema's form: some of what it says is true, some made up."""
    schema = body["response_format"]["json_schema"]["schema"] if "response_format" in body else {}
    if "entities" in schema.get("properties", {}):
        document: dict[str, Any] = {
            "entities": [
                ["Ada Byron", "person"],
                ["Charles Babbage", "person"],
                ["London", "place"],
                ["Atlantis", "place"],
                ["Ada Byron", "countess"],
            ]
        }
    elif "relations" in schema.get("properties", {}):
        document = {
            "relations": [["Ada Byron", "lives_in", "London"], ["London", "lives_in", "Ada Byron"]],
            "attributes": [],
        }
    else:
        document = {}
    text = "```json\n" + json.dumps(document, indent=1) + "\n```"
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return {"choices": [{"text": text, "finish_reason": "stop"}], "usage": usage}


def test_what_a_grammar_would_have_ruled_out_is_dropped_and_counted(tmp_path: Path) -> None:
    common: dict[str, Any] = {"models": MODELS, "enforces": "response_format", "body": answer}
    settings = ModelSettings(tokenizer=str(embedded_model_directory()))
    with running(**common, dies_after=4) as dying, running(**common) as lasting:
        model = HttpFleet([dying.url, lasting.url], settings)
        report = build(
            tmp_path / "index",
            [write_corpus(tmp_path / "corpus")],
            model=model,
            settings=walking_settings(extract={"window": 4}, organise={"namer": "facts"}),
        )
        model.close()

    tables = check_invariants(tmp_path / "index" / "versions" / str(report.version))
    assert report.chunks["done"] == report.chunks["total"] == 12
    assert {row["name"] for row in tables["entities"]} == {"Ada Byron", "Charles Babbage", "London"}
    assert [row["type"] for row in tables["relations"]] == ["lives_in"]
    assert report.chunks["dropped"] == 12 * 3  # of every chunk two entities and a relation
    assert report.serving is not None
    assert report.serving["enforces"] == "json schema"
    assert [state["faults"] > 0 for state in report.serving["servers"]] == [True, False]
    # The model writes the opening, so the prompt does not end with it.
    assert not any(body["prompt"].endswith(OPENING) for body in lasting.seen)
