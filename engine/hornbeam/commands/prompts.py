"""`hornbeam prompts`: look at what is put to the model, and write it out to change it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hornbeam.commands.options import ConfigOption, JsonOption, SetOption, settings_of
from hornbeam.printing import print_json, say

app = typer.Typer(
    help="Look at the prompts of builds and answers, write them out to change them.", no_args_is_help=True
)


@app.command("list")
def prompts_list(config: ConfigOption = None, changes: SetOption = None, as_json: JsonOption = False) -> None:
    """Name the prompts by task and language, with what a build reads under these settings."""
    from hornbeam.prompts import load_prompts

    settings = settings_of(config, changes, {})
    prompts = load_prompts(settings.prompts, embedded=settings.model.path is None)
    listed = prompts.listed()
    if as_json:
        print_json({"version": prompts.version, "languages": prompts.languages, "prompts": listed})
        return
    for entry in listed:
        say(
            f"{entry['use']:<7} {entry['language']}/{entry['task']:<14} {entry['version']}  {entry['origin']}"
        )
    say(f"{'all of builds':<25} {prompts.version}")


@app.command("show")
def prompts_show(
    task: Annotated[str, typer.Argument(help="As `hornbeam prompts list` names it.", show_default=False)],
    language: Annotated[str, typer.Option("--language", metavar="CODE", help="Of the text.")] = "en",
    config: ConfigOption = None,
    changes: SetOption = None,
) -> None:
    """Print the prompt that a build reads for a text in a language."""
    from hornbeam.errors import UsageError
    from hornbeam.prompts import TASKS, load_prompts

    if task not in TASKS:
        raise UsageError(f"no task '{task}'; there are {', '.join(TASKS)}")
    say(load_prompts(settings_of(config, changes, {}).prompts).text(task, language).content)


@app.command("write")
def prompts_write(
    folder: Annotated[Path, typer.Argument(help="A folder, made if it is not there.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Write the shipped prompts and examples into a folder, to be edited and used as `prompts.directory`.

    Files that are left as they are may be deleted: what is not there is taken from the shipped ones.
    """
    from hornbeam.prompts import write_prompts

    written = write_prompts(folder)
    if as_json:
        print_json({"written": [str(path) for path in written]})
        return
    say(f"{len(written)} files below {folder}; use them with --set prompts.directory={folder}")
