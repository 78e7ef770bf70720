"""`hornbeam update` and `hornbeam delete`: follow documents that change, forget those that must go.

Both go on with the settings, the schema and the model that the index was built with, unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hornbeam.commands.options import (
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
    quiet_libraries,
    settings_of,
)
from hornbeam.errors import GateRefused, HornbeamError, Interrupted, UsageError
from hornbeam.printing import print_json

if TYPE_CHECKING:
    from hornbeam.build import Build, BuildReport
    from hornbeam.llm.protocol import LanguageModel
    from hornbeam.pipeline.executing import Executor
    from hornbeam.pipeline.recipe import Recipe
    from hornbeam.progress import Progress
    from hornbeam.progress_record import ProgressRecord
    from hornbeam.schema import GraphSchema
    from hornbeam.settings import Settings
    from hornbeam.stopping import StopRequest

SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="Another schema file or seed schema than the index has.",
        show_default=False,
    ),
]
FullOption = Annotated[
    bool,
    typer.Option(
        "--full", help="Embed and organise everything anew: the version that 'index' would have made."
    ),
]
EmptyOption = Annotated[
    bool,
    typer.Option("--allow-empty", help="Also if no document would be left of the index or of a folder."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]


def update(
    index_directory: IndexOption,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH…]",
            help="Look only there; a path that is new is added. None: all that the index was built from.",
            show_default=False,
        ),
    ] = None,
    full: FullOption = False,
    allow_empty: EmptyOption = False,
    schema: SchemaOption = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    executor: ExecutorOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    gpu_hour_price: PriceOption = None,
    budget: BudgetOption = None,
    progress_file: ProgressFileOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find new, changed, moved and removed documents, and publish a version that follows them.

    Only changed chunks are read by the model; only the communities that they touch are found and described
    anew, until these have drifted too far (update.max_drift).
    """
    flags = {
        "schema_file": schema,
        "model.path": model,
        "device": device,
        "executor": executor,
        "cost.gpu_hour_price": gpu_hour_price,
        "cost.budget": budget,
    }
    run_build(
        index_directory,
        *_as_built(index_directory, config, changes, flags),
        lambda build: build.update(paths or (), full=full, allow_empty=allow_empty),
        as_json=as_json,
        quiet=quiet,
        progress_file=progress_file,
    )


def delete(
    index_directory: IndexOption,
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="DOC…",
            help="Document ids, paths of files or folders, records (path#3), patterns.",
            show_default=False,
        ),
    ],
    full: FullOption = False,
    allow_empty: EmptyOption = False,
    schema: SchemaOption = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Take documents out of the index, with every fact that no other document states.

    A later update leaves them out as long as their text is the same; 'index' brings them back.
    """
    flags = {"schema_file": schema, "model.path": model, "device": device}
    run_build(
        index_directory,
        *_as_built(index_directory, config, changes, flags),
        lambda build: build.delete(documents, full=full, allow_empty=allow_empty),
        as_json=as_json,
        quiet=quiet,
    )


def _as_built(
    index: Path, config: Path | None, changes: list[str] | None, flags: dict[str, Any]
) -> tuple[Settings, GraphSchema]:
    """The settings that the index was built with, with what the user changes in them, and its schema."""
    from hornbeam.errors import StoreError
    from hornbeam.opening import open_schema
    from hornbeam.pipeline.text_recipe import text_recipe
    from hornbeam.store.ledger import Ledger
    from hornbeam.store.schemas import accepted_schema
    from hornbeam.store.versions import current_version_id, list_versions, read_version

    with Ledger(index, create=False, read_only=True) as ledger:
        texts = text_recipe(ledger)
    current = current_version_id(index)
    versions = [read_version(index, current)] if current else list_versions(index)
    if not versions:
        raise StoreError(
            f"{index} has no version yet, so it is not known what it is built with; "
            "run the command again that builds it"
        )
    built: dict[str, Any] = versions[-1].manifest["settings"]
    if "cost" in built:
        built = built | {"cost": built["cost"] | {"budget": None}}  # it was that run's
    settings = settings_of(config, changes, flags, built)
    # The schema as it was then or accepted since, wherever its file is now; unless the user names another,
    # or the tier that has one of its own.
    same = settings.schema_file == built["schema_file"] and settings.extract.tier == built["extract"]["tier"]
    if texts and same:
        accepted = None if settings.extract.tier == "fast" else accepted_schema(index)
        return settings, accepted or texts.schema
    return settings, open_schema(index, settings)[0]


def run_build(
    index: Path,
    settings: Settings,
    schema: GraphSchema,
    work: Callable[[Build], BuildReport],
    *,
    as_json: bool,
    quiet: bool,
    note: str = "",
    progress_file: Path | None = None,
) -> None:
    """Open the model, let `work` run the build, say what it did, and exit with its code.

    Args:
        note: a line to say before.
        progress_file: see `hornbeam.progress_record`.
    """
    quiet_libraries()
    from hornbeam.report import render_report

    with ExitStack() as open_things:
        record = None
        if progress_file is not None:
            record = open_things.enter_context(_recording(progress_file))
        report = _built(index, settings, schema, work, quiet, note, record)
        if record is not None:
            record.end(
                "refused" if report.exit_code == GateRefused.exit_code else "done",
                version=report.version,
                promoted=report.promoted,
                unchanged=report.unchanged,
                exit_code=report.exit_code,
            )
    if as_json:
        print_json(report.to_json())
    else:
        render_report(report.to_json(), index)
    raise typer.Exit(report.exit_code)


def _built(
    index: Path,
    settings: Settings,
    schema: GraphSchema,
    work: Callable[[Build], BuildReport],
    quiet: bool,
    note: str,
    record: ProgressRecord | None,
) -> BuildReport:
    from hornbeam.build import Build
    from hornbeam.opening import open_build_model, open_embedder
    from hornbeam.progress import Progress
    from hornbeam.stopping import stop_on_signal

    if record is not None:
        record.say("opening the model")
    language_model = open_build_model(settings)
    try:
        with Progress(quiet=quiet, record=record) as progress, stop_on_signal() as stop:
            for line in filter(None, (note, _fast_tier_note(settings))):
                progress.say(line)
            build = Build(
                index,
                settings,
                schema,
                language_model,
                open_embedder(settings),
                progress,
                stop,
                _executor(settings, schema, language_model, progress, stop),
            )
            return work(build)
    finally:
        language_model.close()


def _executor(
    settings: Settings, schema: GraphSchema, model: LanguageModel, progress: Progress, stop: StopRequest
) -> Callable[[Recipe], Executor] | None:
    """None: reading and extraction stay in this process."""
    if settings.executor == "local":
        return None
    from hornbeam.distributed.executor import RayExecutor
    from hornbeam.distributed.worker import WorkerPlan

    return lambda recipe: RayExecutor(WorkerPlan(settings, schema), model, recipe, stop, progress.say)


def _fast_tier_note(settings: Settings) -> str:
    if settings.extract.tier != "fast" or settings.model.path is None:
        return ""
    return f"fast tier: of the model {settings.model.path} the tokenizer alone is used, to cut the chunks"


@contextmanager
def _recording(path: Path) -> Iterator[ProgressRecord]:
    """Its last line tells of an error, too."""
    from hornbeam.progress_record import ProgressRecord

    try:
        record = ProgressRecord(path)
    except OSError as error:
        raise UsageError(f"--progress-file {path}: {error.strerror or error}") from error
    with record:
        try:
            yield record
        except Interrupted as error:
            record.end("stopped", str(error))
            raise
        except KeyboardInterrupt:
            record.end("stopped", "stopped at once; what was finished is kept")
            raise
        except Exception as error:
            record.end("failed", str(error) if isinstance(error, HornbeamError) else repr(error))
            raise
