"""`hornbeam questions`: what was asked of a served index and how it was rated."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from hornbeam.commands.options import IndexOption, JsonOption
from hornbeam.printing import print_json, say

app = typer.Typer(help="Questions that a served index was asked, and their ratings.", no_args_is_help=True)

RatingOption = Annotated[
    Literal["up", "down"] | None, typer.Option("--rating", help="These alone.", show_default=False)
]


@app.command("list")
def questions_list(
    index_directory: IndexOption, rating: RatingOption = None, as_json: JsonOption = False
) -> None:
    """What is kept, the newest first."""
    from hornbeam.store.ledger import check_is_index
    from hornbeam.store.question_log import QuestionLog

    check_is_index(index_directory)
    entries = QuestionLog(index_directory).entries(rating)
    if as_json:
        print_json({"questions": [entry.to_json() for entry in entries]})
        return
    for entry in entries:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.asked))
        say(f"{entry.question_id}  {when}  {entry.rating or '-':<4}  {entry.question}")
        if entry.note:
            say(f"    {entry.note}")
    if not entries:
        say("no questions are kept")


@app.command("export")
def questions_export(
    index_directory: IndexOption,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines.", show_default=False)],
    rating: Annotated[
        Literal["up", "down", "all"], typer.Option("--rating", help="Of the questions that are taken.")
    ] = "up",
) -> None:
    """Write questions with the documents that their answers cite: a probe set for `gates.probes`."""
    from hornbeam.errors import UsageError
    from hornbeam.store.ledger import check_is_index
    from hornbeam.store.question_log import QuestionLog, probes_of

    check_is_index(index_directory)
    probes = probes_of(QuestionLog(index_directory).entries(None if rating == "all" else rating))
    if not probes:
        raise UsageError(f"{index_directory} keeps no question with a citation and that rating")
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(probe, ensure_ascii=False) + "\n" for probe in probes)
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror or error}") from error
    say(f"{len(probes)} questions in {output}; use them with --set gates.probes={output}")


@app.command("forget")
def questions_forget(
    index_directory: IndexOption,
    question_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID…]", help="As `list` shows them.", show_default=False)
    ] = None,
    older_than_days: Annotated[
        float | None, typer.Option("--older-than-days", min=0, help="Those alone.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Erase questions, answers and ratings; nothing of them stays in the file."""
    if sum((bool(question_ids), older_than_days is not None, everything)) != 1:
        raise typer.BadParameter("give ids, --older-than-days or --all", param_hint="ID")
    from hornbeam.store.ledger import check_is_index
    from hornbeam.store.question_log import QuestionLog

    check_is_index(index_directory)
    before = None if older_than_days is None else time.time() - older_than_days * 86_400
    say(f"{QuestionLog(index_directory).forget(question_ids or None, before)} questions erased")
