"""`hornbeam bench`: measure this machine."""

from __future__ import annotations

import typer

from hornbeam.commands.options import quiet_libraries

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)
#: The scripts of bench/ read their own arguments, `--help` included.
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command("extraction", context_settings=_PASSED_ON)
def bench_extraction(arguments: typer.Context) -> None:
    """Throughput of extraction: [PATH] --limit N --schema S --host --recording FILE --json."""
    _run_benchmark("extraction", arguments)


@app.command("verification", context_settings=_PASSED_ON)
def bench_verification(arguments: typer.Context) -> None:
    """Whether P(yes) tells right relations from wrong ones: FILE --limit N --json."""
    _run_benchmark("verification", arguments)


@app.command("extraction-baselines", context_settings=_PASSED_ON)
def bench_extraction_baselines(arguments: typer.Context) -> None:
    """Free text, JSON schema, grounded, no model: [PATH] --limit N --schema S --json."""
    _run_benchmark("extraction_baselines", arguments)


@app.command("text2kg-baselines", context_settings=_PASSED_ON)
def bench_text2kg_baselines(arguments: typer.Context) -> None:
    """The same and ours where the right facts are known: DIR --limit N --ontologies N,N --json."""
    _run_benchmark("text2kg_baselines", arguments)


@app.command("prompt-shapes", context_settings=_PASSED_ON)
def bench_prompt_shapes(arguments: typer.Context) -> None:
    """Tokens of our calls and of three other prompt shapes: [PATH] --limit N --ask --costs --json."""
    _run_benchmark("prompt_shapes", arguments)


@app.command("type-growth", context_settings=_PASSED_ON)
def bench_type_growth(arguments: typer.Context) -> None:
    """Which texts a new type touches, what is proposed for a hidden one: DIR --proposals N --json."""
    _run_benchmark("type_growth", arguments)


@app.command("extraction-forms", context_settings=_PASSED_ON)
def bench_extraction_forms(arguments: typer.Context) -> None:
    """Names or indices, JSON or lines, two calls or one: DIR --sentences N --json."""
    _run_benchmark("extraction_forms", arguments)


@app.command("resolution-calls", context_settings=_PASSED_ON)
def bench_resolution_calls(arguments: typer.Context) -> None:
    """The model's yes or no about names, its sentence for descriptions: FILE --pairs N --piles N --json."""
    _run_benchmark("resolution_calls", arguments)


@app.command("index", context_settings=_PASSED_ON)
def bench_index(arguments: typer.Context) -> None:
    """Build, update, delete and open an index at size, without a model: --sizes N,N --keep DIR --json."""
    _run_benchmark("index", arguments)


@app.command("consolidation", context_settings=_PASSED_ON)
def bench_consolidation(arguments: typer.Context) -> None:
    """Millions of mentions into a graph, in bounded memory: --mentions N --memory-mib N --json."""
    _run_benchmark("consolidation", arguments)


@app.command("kernels", context_settings=_PASSED_ON)
def bench_kernels(arguments: typer.Context) -> None:
    """How the kernels grow: --sizes N,N --only NAME,NAME --plots DIR --json."""
    _run_benchmark("kernels", arguments)


@app.command("query", context_settings=_PASSED_ON)
def bench_query(arguments: typer.Context) -> None:
    """Milliseconds of retrieval: --sizes N,N --index DIR --from FILE --plots DIR --json."""
    _run_benchmark("query", arguments)


@app.command("serve", context_settings=_PASSED_ON)
def bench_serve(arguments: typer.Context) -> None:
    """Requests per second of a served index: --entities N --callers N,N --seconds S --keep DIR --json."""
    _run_benchmark("serve", arguments)


@app.command("page", context_settings=_PASSED_ON)
def bench_page(arguments: typer.Context) -> None:
    """The page in headless Chromium: when it can be used, frames a second: --entities N --keep DIR --json."""
    _run_benchmark("page", arguments)


def _run_benchmark(name: str, arguments: typer.Context) -> None:
    quiet_libraries()
    from hornbeam.benchmarks import run_benchmark

    raise typer.Exit(run_benchmark(name, arguments.args))
