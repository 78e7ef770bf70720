"""A local model directory run by transformers inside this process, grammars enforced by xgrammar.

For platforms that have no vLLM. Slower: a batch is written to its end before the next one begins, and its
rows do not share more of their prompts than what all begin with.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import Any, Literal

from hornbeam.errors import ModelError
from hornbeam.llm.adapter import AdapterCard
from hornbeam.llm.masked_batch import MaskedBatch, PrefixStore, Row
from hornbeam.llm.precision import model_dtype
from hornbeam.llm.protocol import Completion, ModelIdentity, Part, Request, Usage
from hornbeam.llm.stepped import SteppedModel
from hornbeam.llm.tokenizer import DirectoryTokenizer, directory_fingerprint
from hornbeam.settings import ModelSettings


class TransformersModel(SteppedModel):
    """The model is loaded at the first request.

    Args:
        reason: why transformers serves it.
        card: of an adapter whose weights are among those of the directory.
    """

    def __init__(
        self,
        directory: Path,
        settings: ModelSettings,
        device: Literal["cpu", "cuda"],
        reason: str = "",
        card: AdapterCard | None = None,
    ) -> None:
        if not (directory / "config.json").is_file():
            raise ModelError(f"{directory} is no model directory (no config.json)")
        self._directory = directory
        self._settings = settings
        self._device = device
        self._reason = reason
        self._card = card
        super().__init__(DirectoryTokenizer(directory))
        self._loaded: _Loaded | None = None
        self._identity: ModelIdentity | None = None
        self._waiting: deque[Row] = deque()
        self._batch: MaskedBatch | None = None
        self._most_rows = settings.max_num_seqs

    @property
    def identity(self) -> ModelIdentity:
        if self._identity is None:
            dtype = model_dtype(self._settings, self._device)
            self._identity = ModelIdentity(
                name=self._directory.name,
                fingerprint=f"{directory_fingerprint(self._directory)} {dtype} transformers",
                backend=f"transformers {_version()}, in process",
                reason=f"{self._reason or 'model.backend'}; device {self._device}, {dtype}",
                adapter=self._card,
            )
        return self._identity

    @property
    def max_model_len(self) -> int:
        return self._settings.max_model_len

    def _under_way(self) -> int:
        return len(self._waiting) + (len(self._batch.rows) if self._batch is not None else 0)

    def start(self, request: Request, *, streaming: bool) -> None:
        """Begin a request; with `streaming` its text comes in pieces. One that cannot begin comes back from
        `step` as a failed completion."""
        prompt = self._tokenizer.encode(request.prompt)
        room = self.max_model_len - len(prompt)
        if room < 1:
            self._refuse(
                request, f"prompt of {len(prompt)} tokens exceeds the context of {self.max_model_len}"
            )
            return
        if not prompt:
            self._refuse(request, "the prompt is empty")
            return
        loaded = self._load()
        try:
            matcher = loaded.matcher(request.grammar) if request.grammar else None
        except RuntimeError as error:  # a grammar that does not parse
            self._refuse(request, str(error))
            return
        chance = loaded.chance(self._settings.seed) if request.temperature > 0 else None
        decode = self._tokenizer.decoder()
        limit = min(request.max_tokens, room)
        self._waiting.append(Row(request, prompt, limit, matcher, decode, chance, streaming))

    def step(self) -> list[Part]:
        """One token for every request of the batch; what came of it."""
        if self._refused:
            return self._take_refused()
        if self._batch is None and self._waiting:
            self._batch = self._next_batch()
        if self._batch is None:
            return []
        parts: list[Part] = []
        for row, piece in self._batch.step():
            if piece and row.streaming:
                parts.append((row.request.request_id, piece))
            if row.ended:
                parts.append((row.request.request_id, _completion(row)))
        if not self._batch.rows:
            self._batch = None
        return parts

    def cancel(self, request_id: str) -> None:
        self._waiting = deque(row for row in self._waiting if row.request.request_id != request_id)
        if self._batch is not None:
            self._batch.drop(request_id)
            if not self._batch.rows:
                self._batch = None

    def close(self) -> None:
        self._loaded = self._batch = None
        self._waiting.clear()

    def _next_batch(self) -> MaskedBatch | None:
        """The oldest that wait, as many as fit; fewer where memory ends."""
        import torch

        loaded = self._load()
        rows: list[Row] = []
        while self._waiting and len(rows) < self._most_rows:
            tokens = (len(rows) + 1) * max(len(row.prompt) for row in (*rows, self._waiting[0]))
            if rows and tokens > max(self._settings.max_num_batched_tokens, self.max_model_len):
                break
            rows.append(self._waiting.popleft())
        try:
            return MaskedBatch(loaded.model, rows, loaded.prefix, loaded.stop_tokens)
        except torch.OutOfMemoryError as error:
            loaded.prefix.ids, loaded.prefix.cache = [], None
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if len(rows) == 1:
                self._refuse(rows[0].request, f"out of memory: {error}")
                return None
            self._most_rows = len(rows) // 2
            self._waiting.extendleft(reversed(rows))
            return None

    def _load(self) -> _Loaded:
        if self._loaded is None:
            self._loaded = _Loaded(self._directory, self._settings, self._device)
        return self._loaded


class _Loaded:
    """Weights, and a grammar compiler for their vocabulary."""

    def __init__(self, directory: Path, settings: ModelSettings, device: Literal["cpu", "cuda"]) -> None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
        try:
            import torch
            import xgrammar
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise ModelError(
                f"model.backend = transformers needs torch, transformers, xgrammar: {error}"
            ) from error
        self.prefix = PrefixStore()
        try:
            dtype = getattr(torch, model_dtype(settings, device))
            loaded: Any = AutoModelForCausalLM.from_pretrained(str(directory), dtype=dtype)
            self.model = loaded.to(device).eval()
            tokenizer = AutoTokenizer.from_pretrained(str(directory))
        except (ImportError, ValueError, OSError, RuntimeError) as error:
            raise ModelError(f"transformers cannot load {directory}: {error}") from error
        self.stop_tokens = _stop_tokens(self.model, tokenizer)
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=self.model.config.vocab_size, stop_token_ids=sorted(self.stop_tokens)
        )
        self._compiler = xgrammar.GrammarCompiler(info)

    def matcher(self, grammar: str) -> Any:
        """
        Raises:
            RuntimeError: the grammar does not parse.
        """
        import xgrammar

        return xgrammar.GrammarMatcher(self._compiler.compile_grammar(grammar))

    def chance(self, seed: int) -> Any:
        import torch

        return torch.Generator().manual_seed(seed)


def _stop_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    found: set[int] = set()
    for named in (model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id):
        found.update(named if isinstance(named, list) else [named] if named is not None else [])
    return frozenset(found)


def _completion(row: Row) -> Completion:
    usage = Usage(len(row.prompt), row.cached, row.written)
    reason: Literal["stop", "length"] = "length" if row.ended == "length" else "stop"
    return Completion(row.request.request_id, row.text, reason, usage, tuple(row.scores))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("transformers")
    except PackageNotFoundError as error:
        raise ModelError(
            "transformers is not installed; run 'pip install -e .[cpu]' in the checkout"
        ) from error
