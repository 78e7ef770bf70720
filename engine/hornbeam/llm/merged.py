"""A model with an adapter's weights added to its own: a model directory like any other, made once.

Where the adapter's products would cost more than they bring (a CPU) and where a backend serves none.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hornbeam.errors import ModelError
from hornbeam.llm.adapter import Adapter, weights_fingerprint
from hornbeam.llm.embedded import cache_directory

#: Written last, so a directory that holds it is complete.
_COMPLETE = "hornbeam.json"
_FORMAT = 1


def merged_model_directory(base: Path, adapter: Adapter) -> Path:
    """The directory of the merged model in the user's cache, made on first use.

    Raises:
        ModelError: the weights do not fit together, or a package is missing.
    """
    key = hashlib.sha256(f"{_FORMAT} {weights_fingerprint(base)} {adapter.fingerprint}".encode()).hexdigest()
    target = cache_directory() / "models" / f"{base.name}+{adapter.name}-{key[:12]}"
    if (target / _COMPLETE).is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # A private directory and a rename: two processes that merge at once do not see each other's half.
    temporary = Path(tempfile.mkdtemp(prefix=".merging-", dir=target.parent))
    try:
        _merge(base, adapter.directory, temporary)
        shutil.rmtree(target, ignore_errors=True)
        try:
            temporary.rename(target)
        except OSError:
            if not (target / _COMPLETE).is_file():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _merge(base: Path, adapter: Path, directory: Path) -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch
        from peft import PeftModel
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise ModelError(f"an adapter on this device needs peft, torch and transformers: {error}") from error
    try:
        # In single precision: sums in half of it would round the adapter away.
        model: Any = AutoModelForCausalLM.from_pretrained(str(base), dtype=torch.float32)
        merged: Any = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
        merged.save_pretrained(directory)
    except (ImportError, ValueError, OSError, RuntimeError, KeyError) as error:
        raise ModelError(f"adapter {adapter} cannot be merged into {base}: {error}") from error
    for path in base.iterdir():
        about_weights = path.suffix == ".safetensors" or path.name.endswith(".index.json")
        if path.is_file() and not about_weights and path.name not in (_COMPLETE, "config.json"):
            shutil.copy(path, directory / path.name)
    config_file = directory / "config.json"
    config = json.loads(config_file.read_text("utf-8"))
    config["torch_dtype"] = config["dtype"] = "float32"
    config_file.write_text(json.dumps(config, indent=2), "utf-8")
    (directory / _COMPLETE).write_text(json.dumps({"format": _FORMAT, "adapter": adapter.name}), "utf-8")
