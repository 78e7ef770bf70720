"""From settings to a language model."""

from __future__ import annotations

from pathlib import Path

from hornbeam.device import choose_device
from hornbeam.errors import ModelError
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
    from hornbeam.llm.vllm_engine import VllmModel

    directory = Path(named).expanduser() if named else embedded_model_directory()
    if not directory.is_dir():
        raise ModelError(f"model {named} is neither a directory nor a list of http(s) URLs")
    device, _ = choose_device(settings.device)
    return VllmModel(directory, settings.model, device)
