"""A Llama of random weights over bytes: small enough to be made in a test, real enough for every engine."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def write_tiny_model(directory: Path) -> Path:
    """A Hugging Face model directory; every byte of UTF-8 is one token."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    directory.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({symbol: place for place, symbol in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    tokenizer.save(str(directory / "tokenizer.json"))
    end = tokenizer.token_to_id("<|end|>")
    config = {"eos_token": "<|end|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (directory / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    torch.manual_seed(7)
    tiny = LlamaConfig(
        vocab_size=288,
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=1024,
        eos_token_id=end,
        bos_token_id=None,
        pad_token_id=None,
        initializer_range=0.2,  # far from uniform: another batch must not change the order of two tokens
    )
    LlamaForCausalLM(tiny).float().save_pretrained(directory)
    return directory
