"""The command line. Only light modules are imported here; each command imports what it uses.

Exit codes: 0 done, 1 done with degraded or rejected items or stopped in order, 2 usage, 3 a gate refused,
4 failed, 130 stopped at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from hornbeam import __version__
from hornbeam.commands import (
    answer_evaluation,
    asking,
    audit,
    benchmarks,
    entities,
    estimating,
    evaluation,
    exchange,
    prompts,
    purging,
    questions,
    schemas,
    serving,
    tuning,
    updating,
    versions,
)
from hornbeam.commands.options import (
    AdapterOption,
    BudgetOption,
    ConfigOption,
    DeviceOption,
    ExecutorOption,
    IndexOption,
    JsonOption,
    ModelOption,
    PriceOption,
    ProgressFileOption,
    SetOption,
    not_empty,
    passive_threads,
    quiet_libraries,
    settings_of,
)
from hornbeam.errors import HornbeamError, Interrupted
from hornbeam.printing import has_written_json, print_json, say
from hornbeam.records import Retry

app = typer.Typer(
    name="hornbeam",
    help="Index documents into a schema-bounded knowledge graph, offline, and ask it questions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("update")(updating.update)
app.command("delete")(updating.delete)
app.command("purge")(purging.purge)
app.command("tune")(tuning.tune)
app.add_typer(schemas.app, name="schema")
app.add_typer(prompts.app, name="prompts")
app.add_typer(entities.app, name="entities")
app.add_typer(benchmarks.app, name="bench")
evaluation.app.command("qa")(answer_evaluation.evaluate_qa)
evaluation.app.add_typer(answer_evaluation.anonymity, name="anonymity")
app.add_typer(evaluation.app, name="evaluate")
app.add_typer(exchange.import_app, name="import")
app.add_typer(serving.app, name="keys")
app.add_typer(questions.app, name="questions")
for command in (
    asking.query,
    versions.versions,
    versions.promote,
    versions.rollback,
    versions.diff,
    audit.audit,
    exchange.export,
    serving.serve,
    serving.mcp,
):
    app.command()(command)

#: What typer makes of Ctrl-C.
_INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
) -> None:
    if debug:
        os.environ["HORNBEAM_DEBUG"] = "1"
    if version:
        say(__version__)
        raise typer.Exit


@app.command()
def doctor(
    as_json: JsonOption = False,
    config: ConfigOption = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    changes: SetOption = None,
) -> None:
    """Show what is installed, which backend serves each part and why, and what is missing."""
    settings = settings_of(config, changes, {"model.path": model, "device": device})
    from hornbeam.doctor import examine, render

    diagnosis = examine(settings, config)
    if as_json:
        print_json(diagnosis.to_json())
    else:
        from rich.console import Console

        render(diagnosis, Console())
    raise typer.Exit(4 if diagnosis.problems else 0)


@app.command()
def index(
    index_directory: IndexOption,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH…", help="Folders, files or globs.", show_default=False),
    ] = None,
    retry: Annotated[
        list[Retry] | None,
        typer.Option(
            "--retry",
            help="In place of PATH: take up chunks again that failed, or that lost something, and read "
            "nothing; repeatable.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="FILE", help="A schema file or the name of a seed schema.", show_default=False
        ),
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option(
            "--tier",
            metavar="model|fast",
            help="fast: no model; names and phrases that share a sentence, in a schema of its own. A later "
            "run without it extracts the same chunks by the model.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    adapter: AdapterOption = None,
    device: DeviceOption = None,
    executor: ExecutorOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    gpu_hour_price: PriceOption = None,
    budget: BudgetOption = None,
    repro: Annotated[
        bool,
        typer.Option(
            "--repro",
            help="The same input gives the same version, also on a GPU (slower there): see the README.",
        ),
    ] = False,
    evolve: Annotated[
        bool,
        typer.Option(
            "--evolve",
            help="Ask for types that the schema lacks, too; 'hornbeam schema proposals' shows them.",
        ),
    ] = False,
    reextract: Annotated[
        str | None,
        typer.Option(
            "--reextract",
            metavar="touched|all",
            help="After a type was accepted: the chunks that it could touch (default), or all.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Write nothing: tell what it would cost, from --sample files and a dozen chunks.",
        ),
    ] = False,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Files that --dry-run reads.")] = 40,
    progress_file: ProgressFileOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
) -> None:
    """Read documents, extract the graph, organise it, and publish it as a version.

    Run again, it goes on where it was stopped; without changes it makes no model call. It adds to what the
    index has; 'update' also lets go of what is gone.
    """
    if dry_run and retry:
        raise typer.BadParameter(
            "--dry-run estimates the reading of a PATH, not --retry", param_hint="--dry-run"
        )
    if not paths and not retry:
        raise typer.BadParameter(
            "give the folders, files or patterns to read, or --retry to take up chunks again",
            param_hint="PATH…",
        )
    if paths and retry:
        raise typer.BadParameter(
            "--retry takes up chunks of the index again and reads no PATH; leave one of the two out",
            param_hint="--retry",
        )
    settings = settings_of(
        config,
        changes,
        {
            "schema_file": schema,
            "extract.tier": tier,
            "model.path": model,
            "model.adapter": adapter,
            "device": device,
            "executor": executor,
            "cost.gpu_hour_price": gpu_hour_price,
            "cost.budget": budget,
            "repro": repro or None,
            "evolve.enabled": evolve or None,
            "evolve.reextract": reextract,
        },
    )
    from hornbeam.opening import open_schema

    loaded, note = open_schema(index_directory, settings)
    if dry_run:
        estimating.run_estimate(paths or [], settings, loaded, sample, as_json=as_json, quiet=quiet)
        return
    updating.run_build(
        index_directory,
        settings,
        loaded,
        lambda build: build.run(paths or [], retry or []),
        as_json=as_json,
        quiet=quiet,
        note=note,
        progress_file=progress_file,
    )


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    index_directory: IndexOption,
    top_k: Annotated[
        int | None, typer.Option("--top-k", min=1, help="How many items.", show_default=False)
    ] = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say for every item what each route gave to its score.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Retrieve entities, triples, attributes, paths, communities and chunks; no model call.

    A text that has nothing to do with the index finds nothing (retrieve.floor).
    """
    not_empty(text, "TEXT")
    settings = settings_of(config, changes, {"device": device, "retrieve.top_k": top_k})
    quiet_libraries()
    passive_threads()
    from hornbeam.opening import open_knowledge_base
    from hornbeam.retrieve.search import search as retrieve
    from hornbeam.store.damage import naming_damage

    kb, version = open_knowledge_base(index_directory, settings)
    with naming_damage(version):
        result = retrieve(kb, text, settings.retrieve)
    if as_json:
        print_json(result.to_json() | {"version": version.version_id})
        return
    from hornbeam.retrieve.listing import lines

    say("\n".join(lines(result, settings.retrieve.floor, explain=explain)))


@app.command()
def status(
    index_directory: IndexOption, gpu_hour_price: PriceOption = None, as_json: JsonOption = False
) -> None:
    """Show documents, chunks by state, tokens, cost, throughput and coverage."""
    from hornbeam.report import render_status
    from hornbeam.status import index_status

    found = index_status(index_directory, gpu_hour_price)
    if as_json:
        print_json(found)
    else:
        render_status(found)


def main() -> None:
    """Entry point: errors become one line and an exit code; after --json, one JSON document as well."""
    with _one_line_errors():
        try:
            app()
        except SystemExit as stop:
            if stop.code == _INTERRUPTED:
                kept = "; what was finished is kept, run the same command again to go on"
                builds = {"index", "update", "delete"} & set(sys.argv[1:3])
                said = "interrupted" + (kept if builds else "")
                say(said, file=sys.stderr, flush=True)
                _tell_program("stopped", said, _INTERRUPTED)
                # The ledger is closed. Threads that wait for a server would hold the process for minutes.
                os._exit(_INTERRUPTED)
            if stop.code and (usage := getattr(stop.__context__, "format_message", None)):
                _tell_program("error", usage(), int(stop.code))  # people were told by typer
            sys.stdout.flush()  # a reader that has gone (`| head`) is met here, not in the interpreter's end
            raise


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except HornbeamError as error:
        _fail(error, error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the last place where an unforeseen fault can become one line
        _fail(error, 4)


def _fail(error: Exception, code: int) -> None:
    foreseen, stopped = isinstance(error, HornbeamError), isinstance(error, Interrupted)
    kind = "" if foreseen else f"unexpected {type(error).__name__}: "
    message = " ".join(str(error).split()) or "no message"
    if os.environ.get("HORNBEAM_DEBUG"):
        traceback.print_exception(error)
    else:
        hint = "" if foreseen else " (run 'hornbeam --debug …' for a traceback)"
        said = message if stopped else f"error: {kind}{message}{hint}"
        say(said, file=sys.stderr, flush=True)
    _tell_program("stopped" if stopped else "error", kind + message, code)
    if stopped:
        # Threads that wait for a server would hold the process for minutes; everything is closed.
        os._exit(code)
    sys.exit(code)


def _tell_program(what: str, said: str, code: int) -> None:
    """The document that a program waits for, where the command came to none of its own."""
    arguments = sys.argv[1:]
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in options and not has_written_json():
        print_json({what: said, "exit_code": code})
