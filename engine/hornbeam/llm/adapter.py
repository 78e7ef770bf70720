"""An adapter: low-rank weights (LoRA) that were trained for this engine and are served with their model.

A directory of peft's form with a card beside it:

    adapter_config.json  adapter_model.safetensors    as peft writes them, and vLLM and transformers read them
    hornbeam.json                                     the card: base model, forms that it learnt, its scores
    README.md                                         the same for people: data, licence, settings, figures
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hornbeam.errors import ModelError

CARD = "hornbeam.json"
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
FORMAT = 1


class FactWeights(BaseModel):
    """Of `extract.fact_scores`, as fitted with the adapter on sentences that it was not trained on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bias: float
    weights: tuple[float, ...]
    threshold: float = Field(ge=0, le=1)


class AdapterCard(BaseModel):
    """What an engine must know of an adapter."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int
    base: str  # name of the model that it was trained on
    base_weights: str  # hash of that model's weights (`weights_fingerprint`)
    tasks: tuple[str, ...]  # forms of question that it learnt
    judges: bool  # facts of guided extraction end with yes or no
    facts: FactWeights | None = None


@dataclass(frozen=True, slots=True)
class Adapter:
    directory: Path
    card: AdapterCard
    rank: int

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what changes an answer or how it is read."""
        digest = hashlib.sha256()
        for name in (CARD, CONFIG, WEIGHTS):
            digest.update((self.directory / name).read_bytes())
        return digest.hexdigest()


def read_adapter(directory: Path) -> Adapter:
    """
    Raises:
        ModelError: it is no adapter of this form; what is missing or wrong is named.
    """
    for name in (CONFIG, WEIGHTS, CARD):
        if not (directory / name).is_file():
            raise ModelError(f"{directory} is no adapter: it holds no {name} ('hornbeam tune' writes one)")
    try:
        card = AdapterCard.model_validate_json((directory / CARD).read_bytes())
        rank = json.loads((directory / CONFIG).read_text("utf-8"))["r"]
    except ValidationError as error:
        fault = error.errors()[0]
        raise ModelError(f"{directory / CARD}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error
    except (ValueError, KeyError) as error:
        raise ModelError(f"{directory / CONFIG} names no rank: {error!r}") from error
    if card.format != FORMAT:
        raise ModelError(f"{directory / CARD} is of format {card.format}; this version reads {FORMAT}")
    if not isinstance(rank, int) or rank < 1:
        raise ModelError(f"{directory / CONFIG}: rank {rank!r} is no positive number")
    return Adapter(directory, card, rank)


def adapter_for(directory: Path, base: Path) -> Adapter:
    """The adapter, which is that model's.

    Raises:
        ModelError: it is no adapter, or another model's.
    """
    adapter = read_adapter(directory)
    if adapter.card.base_weights != weights_fingerprint(base):
        raise ModelError(
            f"adapter {directory} was trained on {adapter.card.base}, and {base} has other weights; "
            "train one on it with 'hornbeam tune --model', or leave --adapter out"
        )
    return adapter


def weights_fingerprint(directory: Path) -> str:
    """SHA-256 that tells weights apart, whatever wrote the files beside them: of every weights file 64 KiB at
    64 places behind its header."""
    files = sorted(path for path in directory.glob("*.safetensors") if path.is_file())
    if not files:
        raise ModelError(f"{directory} holds no *.safetensors")
    digest = hashlib.sha256()
    block = 64 << 10
    for path in files:
        with path.open("rb") as file:
            header = 8 + int.from_bytes(file.read(8), "little")
            size = path.stat().st_size - header
            digest.update(f"{size}:".encode())
            for place in range(64):
                file.seek(header + max(0, size - block) * place // 63)
                digest.update(file.read(block))
    return digest.hexdigest()
