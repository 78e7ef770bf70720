"""The number format in which a local model runs."""

from __future__ import annotations

from typing import Literal

from hornbeam.settings import ModelSettings


def model_dtype(settings: ModelSettings, device: Literal["cpu", "cuda"]) -> str:
    if settings.dtype != "auto":
        return settings.dtype
    # In bfloat16 a prompt's answer follows what else is in its batch, and a run that was stopped and resumed
    # has other batches: it would end with another graph.
    return "float32" if device == "cpu" else "bfloat16"
