"""The examination: every look put together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from hornbeam import __version__
from hornbeam.device import choose_device
from hornbeam.doctor.components import check_components
from hornbeam.doctor.diagnosis import Diagnosis
from hornbeam.doctor.machine import cpu_warnings, this_machine
from hornbeam.doctor.models import find_embedder, find_language_model, is_to_be_unpacked, server_url
from hornbeam.doctor.parts import serving_parts
from hornbeam.errors import HornbeamError, UsageError
from hornbeam.settings import Settings


def examine(settings: Settings, config: Path | None = None) -> Diagnosis:
    """Look at this machine and installation as the settings would use it.

    Args:
        config: the settings file given on the command line; None: the one that `load_settings` looks for.
    """
    device, device_reason, device_problem = _device(settings)
    model, model_problem = find_language_model(settings)
    embedder, embedder_problem = find_embedder(settings)
    needs_vllm = server_url(settings) is None and settings.model.backend != "transformers"
    engine = device if needs_vllm else None
    components, component_problems = check_components(
        engine, conversion=is_to_be_unpacked(settings), many_machines=settings.executor == "ray"
    )
    problems = (
        device_problem,
        model_problem,
        embedder_problem,
        *component_problems,
        _schema_problem(settings),
    )
    machine = this_machine()
    settings_file = _settings_file(config, os.environ)
    return Diagnosis(
        hornbeam=__version__,
        settings_file=str(settings_file) if settings_file else None,
        machine=machine,
        parts=tuple(serving_parts(settings, device, device_reason, model, embedder)),
        model=model,
        embedder=embedder,
        components=tuple(components),
        warnings=tuple(cpu_warnings(machine, settings.model.cpu_kv_cache_gib) if engine == "cpu" else ()),
        problems=tuple(problem for problem in problems if problem is not None),
    )


def _device(settings: Settings) -> tuple[Literal["cpu", "cuda"], str, str | None]:
    """The device, the reason for it and the problem with it."""
    try:
        return *choose_device(settings.device), None
    except UsageError as error:
        return "cuda", "asked for, but not there", str(error)
    except ImportError as error:  # torch itself is named with the packages
        return "cpu", f"a GPU's device file is there, but torch cannot be loaded: {error}", None


def _schema_problem(settings: Settings) -> str | None:
    from hornbeam.schema import load_schema

    try:
        load_schema(settings.schema_file)
    except HornbeamError as error:
        return str(error)
    return None


def _settings_file(config: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The file that `load_settings` reads, by the same rule."""
    if config is not None:
        return config
    if named := environment.get("HORNBEAM_CONFIG"):
        return Path(named)
    default = Path("hornbeam.toml")
    return default.absolute() if default.is_file() else None
