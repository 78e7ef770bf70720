"""The machine: processor, memory, disks, GPUs, and what of it makes a model slow."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from hornbeam.doctor.diagnosis import Disk, Gpu, Machine
from hornbeam.doctor.sizes import GIB, free_bytes, readable_size
from hornbeam.llm.embedded import cache_directory

_SMI_TIMEOUT_S = 5.0
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


def this_machine() -> Machine:
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
        disks=tuple(Disk(purpose, str(path), free_bytes(path)) for purpose, path in places),
        gpus=gpus,
        gpu_reason=gpu_reason,
    )


def cpu_warnings(machine: Machine, cpu_kv_cache_gib: float) -> list[str]:
    """What makes a model slow, or lets it run out of memory, on this processor."""
    warnings = []
    wanted = cpu_kv_cache_gib + _ENGINE_GIB
    available = machine.memory_available_bytes
    if available is not None and available < wanted * GIB:
        warnings.append(
            f"{readable_size(available)} of memory are available, the model and its cache take "
            f"{wanted:.0f} GiB; lower model.cpu_kv_cache_gib or model.max_num_seqs"
        )
    if platform.machine() in ("x86_64", "AMD64") and "avx512f" not in machine.instruction_sets:
        warnings.append("this processor has no AVX512: the language model runs, but slowly")
    return warnings


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
