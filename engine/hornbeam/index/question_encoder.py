"""Short texts through a BERT encoder at what their arithmetic costs: for questions.

A library's forward pass is made for batches. A question of a dozen word pieces spends most of it in Python
and in reading weights: all-MiniLM-L6-v2 takes 13 ms of one core, this 5 ms (10 ms without bfloat16). What
differs:

* query, key and value are one product; nothing is padded, so nothing is masked;
* questions that are asked at once stand one under the other in every product, which reads the weights once
  for all of them: eight take half of the time of eight. Attention is by question;
* weights and products are in bfloat16 where the processor multiplies it (AVX-512 BF16, AMX): half the memory
  to read. Sums, norms and the mean stay what torch makes of them; the vector's cosine with the library's own
  is above .999. Vectors that are stored are always the library's.

The caller sees to it that it runs on one thread (`threads.one_thread`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

_PROBES = ("Who wrote it?", "Which river runs through the capital of the country where the author was born?")
_LEAST_COSINE = 0.999


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: torch.Tensor  # [out, in]
    bias: torch.Tensor  # [out]


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: torch.Tensor  # [h]
    bias: torch.Tensor  # [h]
    epsilon: float


@dataclass(frozen=True, slots=True)
class _Layer:
    attention: _Linear  # query, key and value, one under the other: [3h, h]
    attended: _Linear
    attended_norm: _Norm
    widened: _Linear
    narrowed: _Linear
    norm: _Norm


@dataclass(frozen=True, slots=True)
class QuestionEncoder:
    """`encode` gives what the model gives for the text of these word pieces alone."""

    words: torch.Tensor  # [vocabulary, h]
    places: torch.Tensor  # [positions, h], the first token type added
    norm: _Norm
    layers: tuple[_Layer, ...]
    heads: int
    dtype: torch.dtype

    def encode(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Unit rows, float32 [len(texts), h], of texts of word pieces with the special ones at both ends.

        A row does not depend on the texts beside it, but for the order in which a product may add up: 1e-6.
        """
        import torch
        from torch.nn import functional

        lengths = [len(pieces) for pieces in texts]
        with torch.inference_mode():
            pieces = torch.tensor([piece for text in texts for piece in text])
            places = torch.cat([torch.arange(length) for length in lengths])
            embedded = self.words[pieces] + self.places[places]
            state = _normed(embedded, self.norm).to(self.dtype)  # [pieces of all texts, h]
            for layer in self.layers:
                parts = _product(state, layer.attention).view(len(pieces), 3, self.heads, -1)
                met = torch.cat([_attention(part) for part in parts.split_with_sizes(lengths)])
                state = _normed(state + _product(met, layer.attended), layer.attended_norm)
                wide = functional.gelu(_product(state, layer.widened))
                state = _normed(state + _product(wide, layer.narrowed), layer.norm)
            means = torch.stack([part.mean(dim=0) for part in state.float().split_with_sizes(lengths)])
            vectors: NDArray[np.float32] = functional.normalize(means, dim=1).numpy()
        return vectors


def question_encoder(model: Any) -> QuestionEncoder | None:
    """The encoder of a sentence-transformers model on the CPU; None where the model is of another make.

    Its make: BERT, exact GELU, the mean over word pieces, unit length. Models say so in many ways, so what
    decides is whether the vectors of two texts come out as the model's own.
    """
    bert: Any = getattr(model[0], "auto_model", None) or getattr(model[0], "model", None)
    if type(bert).__name__ != "BertModel" or bert.device.type != "cpu" or bert.config.hidden_act != "gelu":
        return None
    encoder = _encoder(bert)
    pieces: list[list[int]] = model.tokenizer(list(_PROBES), truncation=False)["input_ids"]
    wanted = model.encode(list(_PROBES), show_progress_bar=False, normalize_embeddings=True)
    cosines = (encoder.encode(pieces) * wanted).sum(axis=1)
    return encoder if float(cosines.min()) >= _LEAST_COSINE else None


def _encoder(bert: Any) -> QuestionEncoder:
    import torch

    dtype = torch.bfloat16 if _multiplies_bfloat16() else torch.float32

    def linear(*parts: Any) -> _Linear:
        weight = torch.cat([part.weight.detach() for part in parts]).to(dtype)
        return _Linear(weight, torch.cat([part.bias.detach() for part in parts]).to(dtype))

    def norm(part: Any, of: torch.dtype = dtype) -> _Norm:
        return _Norm(part.weight.detach().to(of), part.bias.detach().to(of), float(part.eps))

    embeddings = bert.embeddings
    layers = [
        _Layer(
            linear(block.attention.self.query, block.attention.self.key, block.attention.self.value),
            linear(block.attention.output.dense),
            norm(block.attention.output.LayerNorm),
            linear(block.intermediate.dense),
            linear(block.output.dense),
            norm(block.output.LayerNorm),
        )
        for block in bert.encoder.layer
    ]
    places = embeddings.position_embeddings.weight + embeddings.token_type_embeddings.weight[0]
    return QuestionEncoder(
        embeddings.word_embeddings.weight.detach(),
        places.detach(),
        norm(embeddings.LayerNorm, torch.float32),
        tuple(layers),
        int(bert.config.num_attention_heads),
        dtype,
    )


def _attention(parts: torch.Tensor) -> torch.Tensor:
    """Within one text: query, key and value [pieces, 3, heads, h / heads] → [pieces, h]."""
    from torch.nn import functional

    query, key, value = parts.permute(1, 2, 0, 3)  # [heads, pieces, h / heads] each
    met = functional.scaled_dot_product_attention(query[None], key[None], value[None])[0]
    return met.transpose(0, 1).reshape(len(parts), -1)


def _product(state: torch.Tensor, by: _Linear) -> torch.Tensor:
    from torch.nn import functional

    return functional.linear(state, by.weight, by.bias)


def _normed(state: torch.Tensor, by: _Norm) -> torch.Tensor:
    from torch.nn import functional

    return functional.layer_norm(state, by.weight.shape, by.weight, by.bias, by.epsilon)


def _multiplies_bfloat16() -> bool:
    import torch

    told: Any = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(told.get("avx512_bf16") or told.get("amx_bf16"))
