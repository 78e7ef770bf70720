"""What serves each part of the engine in this installation, and why."""

from __future__ import annotations

import platform
import sqlite3
from typing import Literal

from hornbeam.doctor.components import FAISS, first_installed, installed_version, with_version, with_versions
from hornbeam.doctor.diagnosis import FoundModel, Part
from hornbeam.doctor.models import server_url
from hornbeam.errors import ModelError
from hornbeam.settings import Settings


def serving_parts(
    settings: Settings,
    device: Literal["cpu", "cuda"],
    device_reason: str,
    model: FoundModel,
    embedder: FoundModel,
) -> list[Part]:
    """Every part, whether something serves it or not."""
    url = server_url(settings)
    return [
        _behind_url(url, model) if url is not None else _in_process(settings, device, device_reason, model),
        _grammar(url),
        Part(
            "embedder",
            with_version("sentence-transformers", device) if embedder.path else "none",
            device_reason if embedder.path else "no embedding model",
        ),
        *_kernels(settings),
        Part(
            "vectors",
            with_version(first_installed(FAISS)),
            "exact below 200,000 rows, inverted lists above; on the CPU in this version",
        ),
        Part("lexical", with_version("bm25s"), "the only one"),
        Part("tables", with_versions("pyarrow", "duckdb"), "the only ones"),
        Part("ledger", f"SQLite {sqlite3.sqlite_version}", f"in Python {platform.python_version()}"),
        *_many_machines(settings),
    ]


def _many_machines(settings: Settings) -> list[Part]:
    """Nothing to tell where Ray is neither there nor asked for."""
    if settings.executor == "local" and installed_version("ray") is None:
        return []
    where = f"at {settings.ray.address}" if settings.ray.address else "on this machine"
    asked = f"executor = ray: {settings.ray.workers} workers {where}"
    reason = asked if settings.executor == "ray" else "not used: executor = local"
    return [Part("many machines", with_version("ray"), reason)]


def _behind_url(url: str, model: FoundModel) -> Part:
    backend = "OpenAI-compatible HTTP" if model.path else "none"
    return Part("language model", backend, f"model.path names servers: {url}")


def _in_process(
    settings: Settings, device: Literal["cpu", "cuda"], device_reason: str, model: FoundModel
) -> Part:
    from hornbeam.llm.opening import choose_backend
    from hornbeam.llm.vllm_engine import vllm_distribution

    backend, reason = choose_backend(settings.model.backend, device)
    if backend == "transformers":
        served = with_version("transformers")
        where = "" if served == "none" else f", in process, {device}"
        return Part("language model", served + where, reason)
    try:
        distribution, version = vllm_distribution(device)
    except ModelError as error:
        return Part("language model", "none", str(error))
    if model.path is None:
        return Part("language model", "none", "no model")
    return Part("language model", f"{distribution} {version}, in process, {device}", device_reason)


def _grammar(url: str | None) -> Part:
    if url is not None:
        return Part("grammar", "structured outputs of the server", "start it with the xgrammar backend")
    return Part("grammar", with_version("xgrammar"), "through vLLM's structured outputs")


def _kernels(settings: Settings) -> list[Part]:
    try:
        from hornbeam_kernels.backend import select_backend

        # As a build does: device = cuda is about the models, the kernels take what they can.
        backend = select_backend("cpu" if settings.device == "cpu" else "auto")
    except ImportError as error:
        return [Part("arrays", "none", str(error))]
    if backend.on_device:
        from hornbeam_kernels.cuda_libraries import chosen_libraries

        found = chosen_libraries()
        return [
            Part("arrays", f"CuPy {backend.xp.__version__}", backend.reason),
            Part("K-means", found["kmeans"], "on the device from 20,000 rows, scikit-learn below"),
            Part("Leiden", found["leiden"], "on the device"),
            Part("neighbours of communities", found["neighbours"], "on the device"),
        ]
    return [
        Part("arrays", with_versions("numpy", "scipy"), backend.reason),
        Part(
            "K-means",
            with_versions("scikit-learn", first_installed(FAISS)),
            "scikit-learn for few rows, faiss at size",
        ),
        Part("Leiden", with_version("graspologic-native"), "as the arrays"),
    ]
