"""A batch of sequences that a transformers model writes together, each under its own grammar.

Prompts are padded on the left; what all of them begin with is read once and kept for the next batch. Before
a token is chosen, xgrammar's mask is laid on the logits, and probabilities are taken after that, among the
tokens that the grammar allows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hornbeam.llm.protocol import Request, TokenScore

if TYPE_CHECKING:
    import torch

#: A common beginning of fewer tokens is not kept.
_LEAST_PREFIX = 16


@dataclass(slots=True)
class Row:
    """One request on its way.

    Args:
        prompt: token ids.
        limit: tokens that may be written.
        matcher: xgrammar's, of the request's grammar; None: any token may come.
        decode: token id → what it adds to the text.
        chance: for a temperature above 0.
    """

    request: Request
    prompt: list[int]
    limit: int
    matcher: Any
    decode: Callable[[int], str]
    chance: Any = None
    streaming: bool = False
    cached: int = 0  # prompt tokens that were read before
    written: int = 0
    text: str = ""
    scores: list[TokenScore] = field(default_factory=list)
    ended: str = ""  # "stop" or "length", once it has ended


class PrefixStore:
    """The key-value cache of the last common beginning of prompts."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.cache: Any = None

    def fit(self, prompts: Sequence[list[int]]) -> bool:
        """Whether all prompts begin with what is kept and go on behind it."""
        length = len(self.ids)
        return bool(length) and all(len(p) > length and p[:length] == self.ids for p in prompts)


def common_prefix(prompts: Sequence[list[int]]) -> list[int]:
    """What all prompts begin with; every one of them has at least a token behind it. [] for a lone prompt."""
    if len(prompts) < 2:
        return []
    first, last = min(prompts), max(prompts)  # what the extremes share in this order, all share
    most = min(map(len, prompts)) - 1
    length = next((i for i in range(most) if first[i] != last[i]), most)
    return first[:length] if length >= _LEAST_PREFIX else []


class MaskedBatch:
    """
    Args:
        model: a transformers causal language model, in evaluation mode.
        rows: at least one; prompts are not empty.
        prefix: shared by the batches of a model.
        stop_tokens: ids that end a text.
    """

    def __init__(
        self, model: Any, rows: Sequence[Row], prefix: PrefixStore, stop_tokens: frozenset[int]
    ) -> None:
        self._model = model
        self._stop_tokens = stop_tokens
        self.rows = list(rows)
        self._logits = self._read_prompts(prefix)

    def step(self) -> list[tuple[Row, str]]:
        """Every row's next token and what it adds to the text. Rows that have ended leave the batch."""
        tokens, logprobs = self._choose()
        pieces = []
        for row, token, logprob in zip(self.rows, tokens, logprobs, strict=True):
            pieces.append((row, self._take(row, token, logprob)))
        going = [place for place, row in enumerate(self.rows) if not row.ended]
        if going:
            self._read(going, [tokens[place] for place in going])
        self.rows = [self.rows[place] for place in going]
        return pieces

    def drop(self, request_id: str) -> None:
        going = [place for place, row in enumerate(self.rows) if row.request.request_id != request_id]
        if len(going) < len(self.rows):
            self._keep(going)
            self._logits = self._logits[going]
            self.rows = [self.rows[place] for place in going]

    def _read_prompts(self, prefix: PrefixStore) -> torch.Tensor:
        import torch
        from transformers.cache_utils import DynamicCache

        prompts = [row.prompt for row in self.rows]
        known = prefix.fit(prompts)
        if not known and (shared := common_prefix(prompts)):
            prefix.ids, prefix.cache = shared, DynamicCache(config=self._model.config)
            with torch.inference_mode():
                self._model(
                    input_ids=torch.tensor([shared], device=self._model.device),
                    past_key_values=prefix.cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
        used = len(prefix.ids) if prefix.fit(prompts) else 0
        for place, row in enumerate(self.rows):
            row.cached = used if known or place else 0
        if used:
            self._cache = copy.deepcopy(prefix.cache)
            self._cache.batch_repeat_interleave(len(self.rows))
        else:
            self._cache = DynamicCache(config=self._model.config)
        rests = [prompt[used:] for prompt in prompts]
        width = max(map(len, rests))
        device = self._model.device
        ids = torch.tensor([[0] * (width - len(rest)) + rest for rest in rests], device=device)
        mask = torch.tensor([[0] * (width - len(rest)) + [1] * len(rest) for rest in rests], device=device)
        self._mask = torch.cat([torch.ones((len(rests), used), dtype=mask.dtype, device=device), mask], dim=1)
        self._positions = torch.tensor([len(prompt) for prompt in prompts], device=device)
        positions = (used + mask.cumsum(dim=1) - 1).clamp(min=0)
        return self._forward(ids, positions)

    def _read(self, going: list[int], tokens: list[int]) -> None:
        """The tokens of the rows that go on, for their next logits."""
        import torch

        if len(going) < len(self.rows):
            self._keep(going)
        ids = torch.tensor(tokens, device=self._model.device)[:, None]
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], dim=1)
        self._logits = self._forward(ids, self._positions[:, None])
        self._positions = self._positions + 1

    def _keep(self, going: list[int]) -> None:
        import torch

        places = torch.tensor(going, dtype=torch.long, device=self._model.device)
        self._cache.batch_select_indices(places)
        self._mask, self._positions = self._mask[places], self._positions[places]

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        import torch

        with torch.inference_mode():
            output = self._model(
                input_ids=ids,
                attention_mask=self._mask,
                position_ids=positions,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def _choose(self) -> tuple[list[int], list[float]]:
        """A token for every row, with its log-probability among those that are allowed."""
        import torch

        logits = self._masked()
        logprobs = torch.log_softmax(logits, dim=-1)
        tokens = logits.argmax(dim=-1)
        for place, row in enumerate(self.rows):
            if row.request.temperature > 0:
                weights = torch.softmax(logits[place] / row.request.temperature, dim=-1).cpu()
                tokens[place] = torch.multinomial(weights, 1, generator=row.chance)[0]
        chosen = logprobs.gather(1, tokens[:, None])[:, 0]
        return tokens.tolist(), chosen.tolist()

    def _masked(self) -> torch.Tensor:
        import xgrammar

        bound = [place for place, row in enumerate(self.rows) if row.matcher is not None]
        logits = self._logits
        if not bound:
            return logits
        bits = xgrammar.allocate_token_bitmask(len(self.rows), logits.shape[1])
        for place in bound:
            self.rows[place].matcher.fill_next_token_bitmask(bits, place)
        logits = logits.clone()
        xgrammar.apply_token_bitmask_inplace(logits, bits.to(logits.device), indices=bound)
        return logits

    def _take(self, row: Row, token: int, logprob: float) -> str:
        """Add a token to its row; what it added to the text."""
        row.written += 1
        if row.matcher is not None:
            row.matcher.accept_token(token)
        piece = "" if token in self._stop_tokens else row.decode(token)
        if row.request.logprobs:
            row.scores.append(TokenScore(piece, logprob))
        row.text += piece
        if token in self._stop_tokens:
            row.ended = "stop"
        elif (end := _stopped_at(row.text, row.request.stop)) is not None:
            row.ended = "stop"
            kept = max(0, len(piece) - (len(row.text) - end))
            row.text, piece = row.text[:end], piece[:kept]
        elif row.written >= row.limit:
            row.ended = "length"
        return piece


def _stopped_at(text: str, stops: Sequence[str]) -> int | None:
    """Where the first of the stop strings begins."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return min(places) if places else None
