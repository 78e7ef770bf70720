"""Which device the model and the embedder run on, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hornbeam.errors import UsageError


def choose_device(wanted: Literal["auto", "cpu", "cuda"]) -> tuple[Literal["cpu", "cuda"], str]:
    """The device and the reason for it.

    Raises:
        UsageError: "cuda" is asked for and torch sees no device.
    """
    if wanted == "cpu":
        return "cpu", "device = cpu"
    # Importing torch costs seconds; without a driver's device file there is nothing for it to find.
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        found, reason = False, "no CUDA device: no /dev/nvidia* on this machine"
    else:
        import torch

        found = torch.cuda.is_available()
        reason = torch.cuda.get_device_name(0) if found else "a GPU is there, but this torch cannot use it"
    if wanted == "cuda" and not found:
        raise UsageError(f"device = cuda, but {reason}; use device = auto or cpu")
    return ("cuda" if found else "cpu"), reason
