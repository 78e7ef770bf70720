"""One SVG per kernel: seconds over entities, both logarithmic, the kernel and what it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel_growth.kernels import KERNELS
from kernel_growth.peers import PEERS


def draw(report: dict[str, Any], folder: Path) -> list[Path]:
    """Writes the plots of a report and returns their paths; kernels without a measured point have none."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "hornbeam"  # the same report, the same file
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, kernel in report["kernels"].items():
        lines = [(name, kernel)]
        lines += [(peer, report["peers"][peer]) for peer in report["peers"] if PEERS[peer].beside == name]
        lines = [line for line in lines if line[1]["reached"] is not None]
        if lines:
            written.append(_draw_one(name, lines, folder / f"{name}.svg"))
    return written


def _draw_one(name: str, lines: list[tuple[str, dict[str, Any]]], file: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for label, growth in lines:
        measured = [point for point in growth["points"] if "seconds" in point]
        slope = growth["exponent"]
        axes.loglog(
            [point["n"] for point in measured],
            [point["seconds"] for point in measured],
            marker="o",
            linestyle="-" if label == name else "--",
            label=label.replace("_", " ") + (f", exponent {slope:.2f}" if slope is not None else ""),
        )
    axes.set(xlabel="entities (3 triples each)", ylabel="seconds", title=KERNELS[name].about)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(file, metadata={"Date": None})
    return file
