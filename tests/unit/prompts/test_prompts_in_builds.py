"""A chunk is asked about in its document's language, and again when that prompt changes, and only then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.grammar import entities as entity_stage
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.prompts import write_prompts
from support.building import build, walking_settings
from support.invariants import check_invariants
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("Ada Byron met Charles Babbage in London. They were friends.", "utf-8")
    (folder / "b.txt").write_text("林冲在沧州遇见了鲁智深。他们是朋友，都住在东京。", "utf-8")
    return folder


def asked(model: GrammarWalker) -> set[str]:
    """Languages of the first questions to chunks."""
    prompts = [one.prompt for one in model.requests if one.prompt.endswith(entity_stage.OPENING)]
    return {"zh" if "文本：" in prompt else "en" for prompt in prompts}


def built(tmp_path: Path, corpus: Path, own: Path | None = None, language: str = "document") -> set[str]:
    model = GrammarWalker(7, closing=0.1)
    chosen = {"directory": str(own) if own else None, "language": language}
    report = build(tmp_path / "index", [corpus], model=model, settings=walking_settings(prompts=chosen))
    check_invariants(tmp_path / "index" / "versions" / report.version)
    return asked(model)


def test_a_changed_prompt_asks_again_about_the_texts_of_its_language_alone(
    tmp_path: Path, corpus: Path
) -> None:
    own = tmp_path / "prompts"
    write_prompts(own)
    assert built(tmp_path, corpus) == {"en", "zh"}
    assert built(tmp_path, corpus, own) == set()  # the same texts from files
    file = own / "zh" / "extraction.txt"
    file.write_text(file.read_text("utf-8").replace("知识图谱", "图谱"), "utf-8")
    assert built(tmp_path, corpus, own) == {"zh"}
    (own / "en" / "examples.json").unlink()
    assert built(tmp_path, corpus, own) == set()


def test_one_language_for_all_and_the_versions_in_the_manifest(tmp_path: Path, corpus: Path) -> None:
    assert built(tmp_path, corpus, language="en") == {"en"}
    assert built(tmp_path, corpus) == {"zh"}  # the English one is there
    manifests = sorted((tmp_path / "index" / "versions").glob("*/manifest.json"))
    prompts = [json.loads(file.read_text("utf-8"))["prompt"] for file in manifests]
    assert {len(one["by_language"]) for one in prompts} == {1, 2}
    assert len({one["all"] for one in prompts}) == 2
    assert len({one["version"] for one in prompts}) == 1
