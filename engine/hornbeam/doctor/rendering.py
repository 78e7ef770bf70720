"""The diagnosis for people, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hornbeam.doctor.diagnosis import MISSING, Diagnosis, FoundModel
from hornbeam.doctor.sizes import readable_size

if TYPE_CHECKING:
    from rich.console import Console


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
        available = readable_size(machine.memory_available_bytes)
        memory = f"{available} available of {readable_size(machine.memory_bytes)}"
    gpus = [f"{gpu.name}, {readable_size(gpu.memory_mib << 20)}, driver {gpu.driver}" for gpu in machine.gpus]
    table(
        f"Hornbeam {diagnosis.hornbeam}",
        [
            ("Python", machine.python),
            ("platform", machine.platform),
            ("processor", f"{machine.cpu}, {machine.cores} cores; {' '.join(machine.instruction_sets)}"),
            ("memory", memory),
            *(
                (disk.purpose, f"{readable_size(disk.free_bytes)} free in {disk.path}")
                for disk in machine.disks
            ),
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
        facts.append(readable_size(model.size_bytes))
    if model.fingerprint is not None:
        facts.append(f"fingerprint {model.fingerprint}")
    if model.path is not None:
        facts.append(model.path)
    return kind, model.name, "; ".join(facts)
