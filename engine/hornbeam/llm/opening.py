"""From settings to a language model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from hornbeam.device import choose_device
from hornbeam.errors import ModelError
from hornbeam.llm.adapter import Adapter, adapter_for
from hornbeam.llm.protocol import LanguageModel
from hornbeam.settings import Settings


def server_urls(path: str | None) -> list[str]:
    """The servers that a model path names, `URL[,URL…]`; none where it names something else."""
    names = [name.strip() for name in (path or "").split(",") if name.strip()]
    return names if names and all(name.startswith(("http://", "https://")) for name in names) else []


def open_model(settings: Settings) -> LanguageModel:
    """The model that the settings name: a directory, servers, or by default the embedded one.

    Cheap: an engine starts at the first request.

    Raises:
        ModelError: it cannot be found or reached.
    """
    named = settings.model.path
    if urls := server_urls(named):
        from hornbeam.llm.http_fleet import HttpFleet
        from hornbeam.llm.http_server import HttpModel

        return HttpFleet(urls, settings.model) if len(urls) > 1 else HttpModel(urls[0], settings.model)
    from hornbeam.llm.embedded import embedded_model_directory

    directory = Path(named).expanduser() if named else embedded_model_directory()
    if not directory.is_dir():
        raise ModelError(f"model {named} is neither a directory nor a list of http(s) URLs")
    device, _ = choose_device(settings.device)
    backend, reason = choose_backend(settings.model.backend, device)
    adapter = _adapter(settings, directory)
    card = adapter.card if adapter else None
    if adapter is not None and (device == "cpu" or backend == "transformers"):
        from hornbeam.llm.merged import merged_model_directory

        # Beside the weights an adapter costs a CPU two fifths of its tokens a second; in them, nothing.
        directory, adapter = merged_model_directory(directory, adapter), None
    if backend == "transformers":
        from hornbeam.llm.transformers_engine import TransformersModel

        return TransformersModel(directory, settings.model, device, reason, card)
    from hornbeam.llm.vllm_engine import VllmModel

    model = settings.model
    if settings.repro:
        model = model.model_copy(update={"batch_invariant": True})
    return VllmModel(directory, model, device, adapter, card)


def _adapter(settings: Settings, directory: Path) -> Adapter | None:
    named = settings.model.adapter
    return None if named is None else adapter_for(Path(named).expanduser(), directory)


def choose_backend(
    wanted: Literal["auto", "vllm", "transformers"], device: Literal["cpu", "cuda"]
) -> tuple[Literal["vllm", "transformers"], str]:
    """What runs a model directory, and why."""
    from hornbeam.llm.vllm_engine import vllm_distribution

    if wanted != "auto":
        return wanted, f"model.backend = {wanted}"
    try:
        vllm_distribution(device)
    except ModelError:
        if find_spec("transformers") is None:
            return "vllm", "neither vLLM nor transformers is installed"
        return "transformers", f"vLLM for {device} is not installed"
    return "vllm", "model.backend = auto, and vLLM is installed"
