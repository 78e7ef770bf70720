"""Is what we call of the GPU packages there? ``python check.py SETUP``, in a lock's environment, without GPU.

SETUP is the name of a lock without its ending. Everything is imported, and what the engine gives to vLLM and
xgrammar is looked for in their signatures; the kernels' calls have a test of their own
(`tests/contract/kernels/test_gpu_library_calls.py`).
"""

from __future__ import annotations

import importlib
import inspect
import sys
import time
from collections.abc import Callable
from typing import Any

_MODEL = ("torch", "transformers", "xgrammar", "vllm")
_RAPIDS = ("cupy", "cupyx.scipy.sparse", "cuml.cluster", "pylibcugraph", "cuvs.neighbors.cagra")
_ENGINE = ("hornbeam.build", "hornbeam_kernels.cuda_libraries", "faiss", "sentence_transformers", "pynvml")
MODULES: dict[str, tuple[str, ...]] = {
    "gpu-all-in-one": (*_MODEL, *_RAPIDS, *_ENGINE),
    "gpu-engine": ("torch", "transformers", "xgrammar", *_RAPIDS, *_ENGINE),
    "gpu-server": _MODEL,
}
#: What `hornbeam.llm.vllm_engine` gives to vLLM.
ENGINE_ARGUMENTS = (
    *("model", "dtype", "seed", "max_model_len", "max_num_seqs", "max_num_batched_tokens"),
    *("enable_prefix_caching", "disable_log_stats", "use_tqdm_on_load", "structured_outputs_config"),
    *("enforce_eager", "gpu_memory_utilization", "quantization"),
)
SAMPLING_ARGUMENTS = (
    *("temperature", "max_tokens", "seed", "stop", "logprobs", "structured_outputs", "output_kind"),
)
ENGINE_METHODS = ("from_engine_args", "add_request", "step", "abort_request", "reset_prefix_cache")


def main(setup: str) -> int:
    problems = []
    for name in MODULES[setup]:
        before = time.perf_counter()
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - the next one is looked at, too
            problems.append(f"{name}: {type(error).__name__} {error}")
            continue
        print(f"import {name}: {time.perf_counter() - before:.1f} s", flush=True)
    if "vllm" in MODULES[setup]:
        problems += vllm_problems()
    problems += xgrammar_problems()
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if problems else 0


def vllm_problems() -> list[str]:
    from vllm import EngineArgs, SamplingParams
    from vllm.exceptions import VLLMValidationError  # noqa: F401 - that it is there
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
    from vllm.v1.engine.llm_engine import LLMEngine

    found = [f"EngineArgs has no {name}" for name in lacking(EngineArgs, ENGINE_ARGUMENTS)]
    found += [f"SamplingParams has no {name}" for name in lacking(SamplingParams, SAMPLING_ARGUMENTS)]
    found += [f"structured outputs have no {name}" for name in lacking(StructuredOutputsParams, ("grammar",))]
    return found + without(LLMEngine, ENGINE_METHODS) + without(RequestOutputKind, ("DELTA", "FINAL_ONLY"))


def xgrammar_problems() -> list[str]:
    import xgrammar

    information = xgrammar.TokenizerInfo.from_huggingface
    calls: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
        "TokenizerInfo.from_huggingface": (information, ("vocab_size", "stop_token_ids")),
        "GrammarCompiler": (xgrammar.GrammarCompiler, ("max_threads", "cache_enabled")),
        "apply_token_bitmask_inplace": (xgrammar.apply_token_bitmask_inplace, ("indices",)),
    }
    found = [f"{name} has no {one}" for name, (call, names) in calls.items() for one in lacking(call, names)]
    return found + without(xgrammar.GrammarMatcher, ("fill_next_token_bitmask", "accept_token"))


def without(thing: Any, names: tuple[str, ...]) -> list[str]:
    return [f"{thing.__name__} has no {name}" for name in names if not hasattr(thing, name)]


def lacking(call: Callable[..., Any], names: tuple[str, ...]) -> list[str]:
    """The names that are no parameters of the call."""
    return [name for name in names if name not in inspect.signature(call).parameters]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
