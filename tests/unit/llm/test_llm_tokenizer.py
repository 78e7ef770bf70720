"""A model directory's tokenizer, read without the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

from tiny_tokenizer import CHAT, write_tokenizer

from hornbeam.errors import ModelError
from hornbeam.llm.tokenizer import DirectoryTokenizer, directory_fingerprint


@pytest.fixture
def tokenizer(tmp_path: Path) -> DirectoryTokenizer:
    return DirectoryTokenizer(write_tokenizer(tmp_path / "model", template=CHAT, special=("<|end|>", "<s>")))


def test_offsets_are_character_spans_in_order_one_per_token(tokenizer: DirectoryTokenizer) -> None:
    text = "aé字👍"
    offsets = tokenizer.offsets(text)
    assert len(offsets) == tokenizer.count(text) == len(text.encode())
    assert offsets == [(i, i + 1) for i, character in enumerate(text) for _ in character.encode()]


def test_nothing_is_added_to_what_is_encoded(tokenizer: DirectoryTokenizer) -> None:
    assert tokenizer.encode("") == []
    assert tokenizer.count("ab") == 2
    assert len(tokenizer.encode("<|end|>")) == 1


@pytest.mark.parametrize(
    "text", ["a<|end|>b", "<s><s>", "<|e<|end|>nd|>", "<｜User｜>", "<|end|><｜User｜><s>", "<<s>s>"]
)
def test_no_marker_of_the_chat_format_survives_neutralising(tokenizer: DirectoryTokenizer, text: str) -> None:
    markers = {tokenizer.encode(marker)[0] for marker in ("<|end|>", "<s>", "<｜User｜>")}
    assert markers & set(tokenizer.encode(text))
    broken = tokenizer.neutralise(text)
    assert not markers & set(tokenizer.encode(broken))
    assert broken.replace(" ", "") == text.replace(" ", "")


def test_ordinary_text_is_left_as_it_is(tokenizer: DirectoryTokenizer) -> None:
    text = "a  b <b>bold</b> <|not a marker|> 1 < 2 | 3"
    assert tokenizer.neutralise(text) == text


def test_the_chat_template_of_the_directory_is_used(tokenizer: DirectoryTokenizer) -> None:
    assert tokenizer.chat_prompt("S", "U") == "<|system|>S<|end|><|user|>U<|end|><|assistant|>"


def test_without_a_template_the_prompt_is_plain_text(tmp_path: Path) -> None:
    assert DirectoryTokenizer(write_tokenizer(tmp_path)).chat_prompt("S", "U") == "S\n\nU\n\n"


def test_a_template_that_refuses_a_system_turn_gets_the_instructions_in_the_users(tmp_path: Path) -> None:
    refuse = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    assert DirectoryTokenizer(write_tokenizer(tmp_path, template=refuse + CHAT)).chat_prompt("S", "U") == (
        "<|user|>S\n\nU<|end|><|assistant|>"
    )


def test_a_template_in_the_configuration_and_its_tokens_are_used(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    named = [
        {"name": "tools", "template": "wrong"},
        {"name": "default", "template": "{{ bos_token }}{{ eos_token }}"},
    ]
    config = {"chat_template": named, "bos_token": {"content": "<s>"}, "eos_token": "<e>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    assert DirectoryTokenizer(tmp_path).chat_prompt("S", "U") == "<s><e>"


def test_templates_may_leave_a_loop_early(tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m.content }}{% break %}{% endfor %}"
    assert DirectoryTokenizer(write_tokenizer(tmp_path, template=template)).chat_prompt("S", "U") == "S"


def test_a_template_that_cannot_be_rendered_is_a_model_error(tmp_path: Path) -> None:
    tokenizer = DirectoryTokenizer(write_tokenizer(tmp_path, template="{% nonsense %}"))
    with pytest.raises(ModelError, match="chat template"):
        tokenizer.chat_prompt("S", "U")


def test_a_directory_without_a_readable_tokenizer_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        DirectoryTokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(ModelError, match="not a readable tokenizer"):
        DirectoryTokenizer(tmp_path)


def test_the_fingerprint_tells_models_apart_and_not_their_places(tmp_path: Path) -> None:
    first, second = write_tokenizer(tmp_path / "a"), write_tokenizer(tmp_path / "b")
    (first / "model.safetensors").write_bytes(b"1" * 100)
    (second / "model.safetensors").write_bytes(b"1" * 100)
    (second / "README.md").write_text("another text", "utf-8")
    assert directory_fingerprint(first) == directory_fingerprint(second)
    (second / "model.safetensors").write_bytes(b"1" * 99 + b"2")
    assert directory_fingerprint(first) != directory_fingerprint(second)
