"""`hornbeam tune`: train an adapter for this engine's questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hornbeam.commands.options import (
    ConfigOption,
    DeviceOption,
    JsonOption,
    ModelOption,
    SetOption,
    quiet_libraries,
    settings_of,
)
from hornbeam.printing import print_json, say


def tune(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE…",
            help="Annotated sets (folders that `evaluate text2kg` reads), files of worked examples, or "
            "indexes whose promoted version a person has checked.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", metavar="DIR", help="The adapter; its checkpoints stay in DIR/training."),
    ],
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="guided|entities|relations",
            help="Questions to learn; repeatable. Default: guided.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="Of files of examples: a schema file or a seed schema.", show_default=False),
    ] = None,
    never: Annotated[
        list[Path] | None,
        typer.Option(
            "--never",
            metavar="DIR",
            help="A set whose test texts, and near copies of them, are not trained on; repeatable. Those of "
            "the sources are left out in any case.",
            show_default=False,
        ),
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            "--hold-out",
            metavar="NAME",
            help="A set for the early stop and the scores, repeatable; default: the last ones.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Texts of each set.", show_default=False)] = None,
    method: Annotated[
        str, typer.Option(metavar="lora|full", help="full: all weights, a model directory of its own.")
    ] = "lora",
    rank: Annotated[int, typer.Option(min=1, max=512, help="Of the low-rank weights.")] = 16,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0, help="Default: 5e-4 for lora, 3e-5 for full.", show_default=False),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 2,
    max_steps: Annotated[
        int | None, typer.Option(min=1, help="Of the optimiser, at most.", show_default=False)
    ] = None,
    step_tokens: Annotated[int, typer.Option(min=64, help="Tokens behind one step, at least.")] = 4096,
    patience: Annotated[
        int, typer.Option(min=1, help="Looks at what is held out without a better loss, then it ends.")
    ] = 4,
    evaluate_every: Annotated[int, typer.Option(min=1, help="Steps between looks.")] = 25,
    seed: int = 42,
    licence: Annotated[
        str, typer.Option(metavar="ID", help="Of the adapter, for its card: the data's allow it?")
    ] = "",
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train an adapter on annotated texts, for `--adapter`. Run again after a stop, it goes on."""
    from hornbeam.tune.examples import TASKS, Task

    chosen: list[Task] = [task for task in TASKS if task in (tasks or ["guided"])]
    unknown = [name for name in tasks or () if name not in TASKS]
    if unknown:
        raise typer.BadParameter(f"'{unknown[0]}' is not one of {', '.join(TASKS)}", param_hint="--task")
    if method not in ("lora", "full"):
        raise typer.BadParameter(f"'{method}' is not one of lora, full", param_hint="--method")
    settings = settings_of(config, changes, {"model.path": model, "device": device})
    quiet_libraries()
    from hornbeam.tune.run import Sources, tune_adapter
    from hornbeam.tune.training import TrainingSettings

    full = method == "full"
    training = TrainingSettings(
        method="full" if full else "lora",
        rank=rank,
        alpha=2 * rank,
        learning_rate=learning_rate or (3e-5 if full else 5e-4),
        epochs=epochs,
        max_steps=max_steps,
        step_tokens=step_tokens,
        patience=patience,
        evaluate_every=evaluate_every,
        seed=seed,
    )
    from_where = Sources(tuple(sources), schema, tuple(never or ()), tuple(hold_out or ()), limit)
    report = tune_adapter(from_where, chosen, output, settings, training, licence)
    if as_json:
        print_json(report)
        return
    progress = report["progress"]
    say(
        f"{output}: step {progress['best_step']} of {progress['step']}, held-out loss "
        f"{progress['best_loss']:.3f}; ended: {progress['ended']}"
    )
    for name, value in report["scores"].items():
        say(f"{name:40} {value}")
