"""One SVG: processor milliseconds of a question over entities, both logarithmic, a line per engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw(report: dict[str, Any], folder: Path) -> Path:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "hornbeam"  # the same report, the same file
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    points = report["sizes"]
    entities = [point["entities"] for point in points]
    for engine in points[0]["engines"]:
        p50 = [point["engines"][engine]["cpu_p50_ms"] for point in points]
        axes.loglog(entities, p50, marker="o", linestyle="-" if engine == "mix" else "--", label=engine)
    p99 = [point["engines"]["mix"]["cpu_p99_ms"] for point in points]
    axes.loglog(entities, p99, marker="^", linestyle=":", label="mix, 99th percentile")
    axes.set(
        xlabel="entities (3 triples and 1 chunk each)",
        ylabel="processor milliseconds, median",
        title="A question",
    )
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    file = folder / "query.svg"
    figure.savefig(file, metadata={"Date": None})
    return file
