"""What the doctor finds, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

MISSING = "missing"


@dataclass(frozen=True)
class Component:
    """A package that something uses."""

    name: str
    version: str
    """Installed version, or `missing`."""
    role: str


@dataclass(frozen=True)
class Part:
    """A part of the engine and what serves it in this installation."""

    name: str
    backend: str
    """`none` if nothing can."""
    reason: str


@dataclass(frozen=True)
class FoundModel:
    """The language model or the embedder that the settings lead to."""

    name: str
    path: str | None
    """Directory, or URL of a server; None: nothing found."""
    fingerprint: str | None
    """First 12 characters; None behind a URL and for a model that is still to be unpacked."""
    size_bytes: int | None
    note: str
    """Where it comes from, or how to get it."""


@dataclass(frozen=True)
class Gpu:
    name: str
    memory_mib: int
    driver: str


@dataclass(frozen=True)
class Disk:
    purpose: str
    path: str
    free_bytes: int


@dataclass(frozen=True)
class Machine:
    python: str
    platform: str
    cpu: str
    cores: int
    """That this process may use."""
    instruction_sets: tuple[str, ...]
    memory_bytes: int | None
    """None where psutil is missing."""
    memory_available_bytes: int | None
    disks: tuple[Disk, ...]
    gpus: tuple[Gpu, ...]
    gpu_reason: str
    """Which driver reported the GPUs, or why there is none."""


@dataclass(frozen=True)
class Diagnosis:
    hornbeam: str
    settings_file: str | None
    machine: Machine
    parts: tuple[Part, ...]
    model: FoundModel
    embedder: FoundModel
    components: tuple[Component, ...]
    warnings: tuple[str, ...]
    """Works, but slowly or narrowly."""
    problems: tuple[str, ...]
    """Each needed thing that is absent, and the command or setting that helps; empty if all is well."""

    def to_json(self) -> dict[str, Any]:
        """Plain data: what `json` writes and reads back as the same."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    """Tuples become lists, as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
