"""Energy of the GPUs, where their driver counts it (NVML; package nvidia-ml-py, extra `energy`)."""

from __future__ import annotations

import importlib
from typing import Any


class EnergyMeter:
    """Counts from when it is made: every GPU that this process may see, whoever uses it."""

    def __init__(self) -> None:
        self._nvml = _nvml()
        self._before = self._counters()

    def joules(self) -> float | None:
        """Since the meter was made; None: no GPU here counts."""
        now = self._counters()
        spent = [now[uuid] - before for uuid, before in self._before.items() if uuid in now]
        return sum(spent) / 1000 if spent else None

    def _counters(self) -> dict[str, int]:
        """Millijoules since the driver was loaded, by GPU."""
        nvml = self._nvml
        if nvml is None:
            return {}
        counters = {}
        for number in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            try:
                counters[str(nvml.nvmlDeviceGetUUID(handle))] = int(
                    nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
                )
            except nvml.NVMLError:  # older than Volta
                continue
        return counters


def _nvml() -> Any:
    """The driver's library, made ready; None where there is none."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml
