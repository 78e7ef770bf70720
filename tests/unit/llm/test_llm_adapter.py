"""Adapters: what is read of one, what is refused, and that a merged model answers as model and adapter do."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("peft")

import peft
import torch
import transformers

from hornbeam.errors import ModelError
from hornbeam.extract.fact_scores import UNTRAINED, scores_of
from hornbeam.llm.adapter import CARD, CONFIG, WEIGHTS, adapter_for, read_adapter, weights_fingerprint
from hornbeam.llm.merged import merged_model_directory
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import ModelIdentity
from hornbeam.settings import load_settings
from support.tiny_model import write_tiny_model

FACTS = {"bias": -0.5, "weights": [1, 0, 0, 0, 0, 0, 2], "threshold": 0.2}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def write_adapter(base: Path, directory: Path, **card: Any) -> Path:
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    # Random, as if trained: peft begins with an adapter that changes nothing.
    config = peft.LoraConfig(r=4, lora_alpha=64, target_modules="all-linear", init_lora_weights=False)
    peft.get_peft_model(model, config).save_pretrained(directory)
    written = {
        "format": 1,
        "base": base.name,
        "base_weights": weights_fingerprint(base),
        "tasks": ["guided"],
        "judges": True,
        "facts": FACTS,
    }
    (directory / CARD).write_text(json.dumps(written | card), "utf-8")
    return directory


def test_an_adapter_is_read_with_its_card(base: Path, tmp_path: Path) -> None:
    adapter = adapter_for(write_adapter(base, tmp_path / "mine"), base)
    assert (adapter.name, adapter.rank, adapter.card.judges) == ("mine", 4, True)
    assert adapter.card.facts is not None
    assert adapter.card.facts.threshold == 0.2


def test_what_is_missing_or_wrong_is_named(base: Path, tmp_path: Path) -> None:
    for name in (CARD, CONFIG, WEIGHTS):
        directory = write_adapter(base, tmp_path / f"without {name}")
        (directory / name).unlink()
        with pytest.raises(ModelError, match=f"no {name}"):
            read_adapter(directory)
    with pytest.raises(ModelError, match="format 2"):
        read_adapter(write_adapter(base, tmp_path / "newer", format=2))
    with pytest.raises(ModelError, match=r"hornbeam.json: judges"):
        read_adapter(write_adapter(base, tmp_path / "unsure", judges="perhaps"))
    torn = write_adapter(base, tmp_path / "torn")
    (torn / CARD).write_text("{", "utf-8")
    with pytest.raises(ModelError, match=r"hornbeam.json"):
        read_adapter(torn)
    rankless = write_adapter(base, tmp_path / "rankless")
    (rankless / CONFIG).write_text("{}", "utf-8")
    with pytest.raises(ModelError, match="rank"):
        read_adapter(rankless)


def test_another_models_adapter_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="other weights"):
        adapter_for(write_adapter(base, tmp_path / "other", base_weights="0" * 64), base)


def test_a_fingerprint_of_weights_does_not_follow_the_files_beside_them(base: Path, tmp_path: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    model.save_pretrained(tmp_path / "same")
    (tmp_path / "same" / "config.json").write_text("{}", "utf-8")
    assert weights_fingerprint(tmp_path / "same") == weights_fingerprint(base)
    with torch.no_grad():
        next(iter(model.parameters())).mul_(1.5)
    model.save_pretrained(tmp_path / "other")
    assert weights_fingerprint(tmp_path / "other") != weights_fingerprint(base)


def test_a_merged_model_computes_what_model_and_adapter_do(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORNBEAM_CACHE", str(tmp_path / "cache"))
    directory = write_adapter(base, tmp_path / "mine")
    merged = merged_model_directory(base, read_adapter(directory))
    ids = torch.tensor([[65, 66, 67, 68]])

    def logits(model: Any) -> Any:
        with torch.no_grad():
            return model(ids).logits

    def load(path: Path) -> Any:
        return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()

    together = logits(peft.PeftModel.from_pretrained(load(base), directory).eval())
    assert torch.allclose(logits(load(merged)), together, atol=1e-4)
    assert not torch.allclose(logits(load(base)), together, atol=1e-2)
    assert (merged / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    assert merged_model_directory(base, read_adapter(directory)) == merged


def test_the_settings_adapter_is_in_the_model_and_its_scores_are_used(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORNBEAM_CACHE", str(tmp_path / "cache"))
    directory = write_adapter(base, tmp_path / "mine")
    backend = {"model.backend": "transformers", "model.path": str(base), "device": "cpu"}
    plain = open_model(load_settings(None, backend))
    adapted = open_model(load_settings(None, backend | {"model.adapter": str(directory)}))
    assert plain.identity.fingerprint != adapted.identity.fingerprint
    assert "mine" in adapted.identity.name
    assert scores_of(plain.identity) == UNTRAINED
    scores = scores_of(adapted.identity)
    assert scores.judged
    assert (scores.bias, scores.weights[-1], scores.threshold) == (-0.5, 2, 0.2)


def test_without_fitted_weights_judgements_are_asked_for_and_count_for_nothing(
    base: Path, tmp_path: Path
) -> None:
    card = read_adapter(write_adapter(base, tmp_path / "mine", facts=None)).card
    scores = scores_of(ModelIdentity("m", "f", "b", "r", adapter=card))
    assert scores == replace(UNTRAINED, judged=True)
    assert scores.weights[-1] == 0
