"""Options and small helpers that the commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hornbeam.printing import print_json as print_json  # commands take it from here or from there
from hornbeam.settings import Settings, load_settings

IndexOption = Annotated[Path, typer.Option("--index", metavar="DIR", help="The index directory.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file (TOML).", show_default=False)
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="DIR|URL[,URL…]",
        help="Model directory, or servers of one model; default: the embedded model.",
        show_default=False,
    ),
]
AdapterOption = Annotated[
    str | None,
    typer.Option(
        "--adapter",
        metavar="DIR",
        help="An adapter of the model, made by 'hornbeam tune'.",
        show_default=False,
    ),
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="local|ray",
        help="ray: read and extract on many machines or GPUs (settings of the section ray); the same result.",
        show_default=False,
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option("--device", metavar="auto|cpu|cuda", help="Where models run.", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any setting, e.g. chunk.max_tokens=200; repeatable.",
        show_default=False,
    ),
]
PriceOption = Annotated[
    float | None,
    typer.Option(
        "--gpu-hour-price",
        metavar="PRICE",
        help="Of the machine, for cost by document, chunk and token.",
        show_default=False,
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="LIMIT[,LIMIT…]",
        help="Stop in order when the run has used it up: 3h, 2Mtokens, 12.5 (money, with a price).",
        show_default=False,
    ),
]
PredictionsOption = Annotated[
    Path | None,
    typer.Option(
        "--predictions", metavar="FILE", help="One JSON line per item, to recompute from.", show_default=False
    ),
]
ProgressFileOption = Annotated[
    Path | None,
    typer.Option(
        "--progress-file",
        metavar="FILE",
        help="Append the progress as JSON lines, for another program that watches: stage, done, total, rate, "
        "time left, tokens, cost; the last line says how it ended.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def not_empty(text: str, argument: str) -> None:
    if not text.strip():
        raise typer.BadParameter("it is empty", param_hint=argument)


def settings_of(
    config: Path | None,
    changes: list[str] | None,
    flags: dict[str, Any],
    base: dict[str, Any] | None = None,
) -> Settings:
    """`base`, then file and environment, then `--set`, then named options."""
    overrides: dict[str, Any] = {}
    for change in changes or []:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"'{change}' is not KEY=VALUE", param_hint="--set")
        overrides[key.strip()] = value.strip()
    overrides |= {key: value for key, value in flags.items() if value is not None}
    return load_settings(config, overrides, base=base)


def quiet_libraries() -> None:
    """Before torch is loaded: no hub is asked, and libraries' warnings are not the user's."""
    import warnings

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if not os.environ.get("HORNBEAM_DEBUG"):
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        warnings.filterwarnings("ignore")


def passive_threads() -> None:
    """Before a library with threads is loaded: those that wait sleep.

    Threads that spin while they wait starve each other on shared cores (one question 172 → 18 ms beside two
    busy neighbours). Not where vLLM runs: there the waking costs more (64 chunks 81 → over 200 s).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
