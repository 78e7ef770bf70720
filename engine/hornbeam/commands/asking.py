"""The command that answers a question."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from hornbeam.commands.options import (
    ConfigOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    ModelOption,
    SetOption,
    not_empty,
    quiet_libraries,
    settings_of,
)
from hornbeam.printing import print_json

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}


def query(
    question: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    index_directory: IndexOption,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="auto|local|global|naive|mix|plan|dense",
            help="auto: by the shape of the question; mix: all routes; local: entities and facts; global: "
            "summaries of communities; plan: sub-questions and further searches; naive: "
            "chunks alone; dense: nearest chunks alone.",
        ),
    ] = "auto",
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="open|reject",
            help="reject: decline when the evidence does not answer.",
            show_default=False,
        ),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="extract|short|sentences",
            help="extract: a passage of the evidence, word for word; short: a few words; sentences: a full "
            "answer.",
            show_default=False,
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="TIME",
            help="Give the best answer after this time, e.g. 3s, 500ms, 2m; a bare number is seconds.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Write the answer as it comes, and what leads to it.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say why each piece of evidence was kept, and what it all cost."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the index, with citations of document and character span."""
    not_empty(question, "QUESTION")
    seconds = None if deadline is None else _seconds(deadline)
    settings = settings_of(
        config,
        changes,
        {"model.path": model, "device": device, "answer.mode": mode, "answer.style": style},
    )
    from hornbeam.answer.engines import ENGINES

    if engine not in ENGINES:
        raise typer.BadParameter(f"'{engine}' is not one of {', '.join(ENGINES)}", param_hint="--engine")
    quiet_libraries()
    import hornbeam
    from hornbeam.answer.terminal import AnswerPrinter, answer_json

    printer = None if as_json else AnswerPrinter(stream=stream, explain=explain)
    events = []
    with hornbeam.open(index_directory, settings) as kb:
        for event in kb.ask(question, engine=engine, deadline=seconds):
            events.append(event)
            if printer is not None:
                printer.take(event)
        version = kb.version.version_id
    if as_json:
        print_json(answer_json(events, settings.answer.mode, version))


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|)", text.strip())
    if found is None or float(found[1]) == 0:
        raise typer.BadParameter(f"'{text}' is no time such as 3s, 500ms or 2m", param_hint="--deadline")
    return float(found[1]) * _SECONDS[found[2]]
