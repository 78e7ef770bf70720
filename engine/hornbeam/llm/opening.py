"""From settings to a language model."""

from __future__ import annotations

from pathlib import Path

from hornbeam.device import choose_device
from hornbeam.errors import ModelError
from hornbeam.llm.protocol import LanguageModel
from hornbeam.settings import Settings


def is_url(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def open_model(settings: Settings) -> LanguageModel:
    """The model that the settings name: a directory, a server, or by default the embedded one.

    Cheap: an engine starts at the first request.

    Raises:
        ModelError: it cannot be found or reached.
    """
    named = settings.model.path
    if named and is_url(named):
        from hornbeam.llm.http_server import HttpModel

        return HttpModel(named, settings.model)
    from hornbeam.llm.embedded import embedded_model_directory
    from hornbeam.llm.vllm_engine import VllmModel

    directory = Path(named).expanduser() if named else embedded_model_directory()
    if not directory.is_dir():
        raise ModelError(f"model {named} is neither a directory nor an http(s) URL")
    device, _ = choose_device(settings.device)
    return VllmModel(directory, settings.model, device)
