"""What is special to the transformers backend: its choice, and memory that ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("xgrammar")

import torch

from hornbeam.errors import ModelError
from hornbeam.llm import masked_batch, opening, vllm_engine
from hornbeam.llm.batch import run_requests
from hornbeam.llm.masked_batch import common_prefix
from hornbeam.llm.protocol import Request
from hornbeam.llm.transformers_engine import TransformersModel
from hornbeam.settings import ModelSettings, Settings
from support.tiny_model import write_tiny_model


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


def test_a_setting_chooses_the_backend(directory: Path) -> None:
    values = {"device": "cpu", "model": {"path": str(directory), "backend": "transformers"}}
    model = opening.open_model(Settings.model_validate(values))
    assert isinstance(model, TransformersModel)
    assert "model.backend = transformers" in model.identity.reason


def test_without_vllm_transformers_serves_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(device: str) -> tuple[str, str]:
        raise ModelError("not installed")

    monkeypatch.setattr(vllm_engine, "vllm_distribution", missing)
    assert opening.choose_backend("auto", "cpu") == ("transformers", "vLLM for cpu is not installed")
    assert opening.choose_backend("vllm", "cpu")[0] == "vllm"


def test_what_is_no_model_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        TransformersModel(tmp_path, ModelSettings(), "cpu")


@pytest.mark.parametrize(("fits", "sizes"), [(3, [8, 4, 2, 2, 2, 2]), (8, [8]), (1, [8, 4, 2] + [1] * 8)])
def test_where_memory_ends_the_batch_is_halved_and_nothing_is_lost(
    directory: Path, monkeypatch: pytest.MonkeyPatch, fits: int, sizes: list[int]
) -> None:
    tried: list[int] = []
    original = masked_batch.MaskedBatch._read_prompts

    def limited(batch: Any, prefix: Any) -> Any:
        tried.append(len(batch.rows))
        if len(batch.rows) > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(batch, prefix)

    monkeypatch.setattr(masked_batch.MaskedBatch, "_read_prompts", limited)
    model = TransformersModel(directory, ModelSettings(max_model_len=512, max_num_seqs=8), "cpu")
    asked = [Request(f"r{n}", f"prompt {n}", 8, grammar='root ::= "ok"') for n in range(8)]
    answers = list(run_requests(model, asked, 8))
    assert sorted(answer.request_id for answer in answers) == sorted(one.request_id for one in asked)
    assert {answer.text for answer in answers} == {"ok"}
    assert tried == sizes


def test_one_request_that_is_too_large_alone_fails_alone(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(batch: Any, prefix: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(masked_batch.MaskedBatch, "_read_prompts", too_large)
    model = TransformersModel(directory, ModelSettings(max_model_len=512), "cpu")
    (answer,) = run_requests(model, [Request("r", "prompt", 8)], 1)
    assert answer.finish_reason == "error"
    assert "out of memory" in answer.error


@pytest.mark.parametrize(
    ("prompts", "length"),
    [
        ([[1] * 20], 0),
        ([[1] * 20, [1] * 20], 19),
        ([[*range(30)], [*range(18), 99]], 18),
        ([[*range(10)], [*range(10), 1]], 0),
    ],
)
def test_the_common_beginning_leaves_every_prompt_a_token(prompts: list[list[int]], length: int) -> None:
    assert common_prefix(prompts) == prompts[0][:length]
