"""A byte-level tokenizer without merges in a directory: every byte of UTF-8 is one token."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CHAT = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"


def write_tokenizer(
    directory: Path, *, template: str | None = None, special: tuple[str, ...] = ("<|end|>",)
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({symbol: place for place, symbol in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    tokenizer.add_tokens([AddedToken("<｜User｜>", special=False), AddedToken("  ", special=False)])
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": special[0]}), "utf-8")
    if template is not None:
        (directory / "chat_template.jinja").write_text(template, "utf-8")
    return directory
