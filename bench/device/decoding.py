"""Constrained decoding on the device: transformers with xgrammar's mask, each sequence under its own grammar.

The model has random weights, so that nothing has to be brought along. Its answers must keep to their grammars
and be the CPU's (float32 on both sides; two tokens that are nearly alike may change places), and so must
their probabilities. The speed of a random model says what the masks cost, not what a real one does.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from device.report import Row

SUPPORT = Path(__file__).resolve().parents[2] / "tests"
SEQUENCES = 64
LETTERS = 48
SAME_AT_LEAST = 0.9
"""Share of answers that must be the CPU's, letter for letter."""
LOGPROB_TOLERANCE = 0.02
"""Of the mean over an answer's tokens, where the answers are the same."""


def decoding_check(device: Literal["cpu", "cuda"]) -> Row:
    """Args: device: where the model runs that is compared with the CPU's."""
    name = "constrained decoding"
    missing = [package for package in ("torch", "transformers", "xgrammar") if find_spec(package) is None]
    if missing:
        return Row(name, "skip", f"not installed: {', '.join(missing)}")
    if not (SUPPORT / "support" / "tiny_model.py").is_file():
        return Row(name, "skip", f"no {SUPPORT}: run from a checkout")
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        return Row(name, "skip", "this torch sees no CUDA device")
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _compared(name, _tiny_model(Path(folder)), device)
    except Exception as error:  # noqa: BLE001 - a failed check, and the next one runs
        words = str(error).strip().splitlines() or [""]
        return Row(name, "fail", f"{type(error).__name__}: {words[0][:200]}")


def _tiny_model(folder: Path) -> Path:
    sys.path.insert(0, str(SUPPORT))
    try:
        from support.tiny_model import write_tiny_model
    finally:
        sys.path.remove(str(SUPPORT))
    return write_tiny_model(folder / "model")


def _compared(name: str, directory: Path, device: Literal["cpu", "cuda"]) -> Row:
    expected, cpu_seconds, _ = _answers(directory, "cpu")
    found, seconds, free_seconds = _answers(directory, device)
    same = broken = 0
    apart = 0.0
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        broken += re.fullmatch(_shape(number), other.text) is None
        if one.text == other.text:
            same += 1
            tokens = len(one.tokens)
            apart = max(
                apart, abs(sum(t.logprob for t in one.tokens) - sum(t.logprob for t in other.tokens)) / tokens
            )
    agrees = not broken and same >= SAME_AT_LEAST * SEQUENCES and apart <= LOGPROB_TOLERANCE
    detail = (
        f"{broken} answers break their grammar; {same} of {SEQUENCES} are the CPU's, log-probabilities "
        f"within {apart:.1e}; masked at {free_seconds / seconds:.0%} of the free speed"
    )
    return Row(name, "pass" if agrees else "fail", detail, seconds, cpu_seconds=cpu_seconds)


def _mean_logprob(answer: Any) -> float:
    return sum(token.logprob for token in answer.tokens) / len(answer.tokens)


def _shape(number: int) -> str:
    return rf"{number}: [a-z ]{{{LETTERS}}}"


def _answers(directory: Path, device: Literal["cpu", "cuda"]) -> tuple[list[Any], float, float]:
    """The answers under grammars, their seconds, and the seconds of as many tokens without any."""
    from hornbeam.llm.batch import run_requests
    from hornbeam.llm.protocol import Request
    from hornbeam.llm.transformers_engine import TransformersModel
    from hornbeam.settings import ModelSettings

    settings = ModelSettings(
        max_model_len=512, max_num_seqs=SEQUENCES, max_num_batched_tokens=1 << 16, dtype="float32"
    )
    model = TransformersModel(directory, settings, device)
    try:
        asked = [
            Request(
                f"r{number}",
                f"Sequence {number} of the check goes on: ",
                LETTERS + 16,
                grammar=f'root ::= "{number}: " [a-z ]{{{LETTERS}}}',
                logprobs=True,
            )
            for number in range(SEQUENCES)
        ]
        list(run_requests(model, asked[:2], 2))  # kernels are loaded
        before = time.perf_counter()
        answers = {answer.request_id: answer for answer in run_requests(model, asked, SEQUENCES)}
        seconds = time.perf_counter() - before
        output = sum(answer.usage.output for answer in answers.values())
        free = [Request(f"f{r.request_id}", r.prompt, output // SEQUENCES) for r in asked]
        before = time.perf_counter()
        freely = sum(answer.usage.output for answer in run_requests(model, free, SEQUENCES))
        free_seconds = (time.perf_counter() - before) * output / max(1, freely)
    finally:
        model.close()
    return [answers[request.request_id] for request in asked], seconds, free_seconds
