"""`hornbeam evaluate`: measure against known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hornbeam.commands.options import (
    AdapterOption,
    ConfigOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    ModelOption,
    PredictionsOption,
    SetOption,
    passive_threads,
    quiet_libraries,
    settings_of,
)
from hornbeam.printing import print_json, say

app = typer.Typer(help="Measure against known answers.", no_args_is_help=True)


@app.command("communities")
def evaluate_communities(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="A graph with known communities or a folder of them (*.gml, *.edges.tsv beside "
            "*.labels.tsv); none: planted graphs only.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Entities of a planted graph; 0: none planted.")
    ] = 2000,
    mixing: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of edges to anywhere; 1: edges say nothing.", show_default=False
        ),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Length of the vectors' noise beside a centre of length 1; inf: they say nothing.",
            show_default=False,
        ),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Planted graphs of each setting.")] = 3,
    max_size: Annotated[int, typer.Option(min=2, help="Entities of a community, at most.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of every method and the first draw.")] = 42,
    predictions: PredictionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Dual perception, Leiden and K-means side by side: ARI, NMI, modularity, coherence."""
    quiet_libraries()
    from hornbeam.evaluate.community_report import run

    report = run(path, nodes, mixing, noise, draws, max_size, seed, predictions)
    if as_json:
        print_json(report)
    else:
        from rich.console import Console

        from hornbeam.evaluate.community_report import render

        render(report, Console())


@app.command("resolution")
def evaluate_resolution(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Documents with known aliases: DocRED (*.json), or a list of names (*.entities.json) beside "
            "its text (*.raw.txt).",
            show_default=False,
        ),
    ],
    half: Annotated[
        str, typer.Option(metavar="all|even|odd", help="All documents, or every second one.")
    ] = "all",
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also with each kind of evidence left out.")
    ] = False,
    config: ConfigOption = None,
    changes: SetOption = None,
    predictions: PredictionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Which names are one thing: precision and recall over pairs of mentions, and of different names."""
    halves: dict[str, Literal["all", "even", "odd"]] = {"all": "all", "even": "even", "odd": "odd"}
    if half not in halves:
        raise typer.BadParameter(f"'{half}' is not one of {', '.join(halves)}", param_hint="--half")
    settings = settings_of(config, changes, {})
    quiet_libraries()
    from hornbeam.evaluate.resolution_report import run

    report = run(path, settings, half=halves[half], ablation=ablation, predictions=predictions)
    if as_json:
        print_json(report)
    else:
        from rich.console import Console

        from hornbeam.evaluate.resolution_report import render

        render(report, Console())


@app.command("retrieval")
def evaluate_retrieval(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Questions with their supporting passages or claims (JSON Lines, or a JSON list).",
            show_default=False,
        ),
    ],
    index_directory: IndexOption,
    engines: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="mix, naive, local, global, bm25 or dense; repeatable. Dense is always there to compare "
            "with. Default: mix, naive, bm25.",
            show_default=False,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="ROUTE",
            help="Leave a route out, e.g. community; repeatable.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="The first N questions.", show_default=False)
    ] = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    predictions: PredictionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recall@k, all gold@k, MRR, evidence recall and milliseconds of retrieval; no model call."""
    settings = settings_of(config, changes, {"device": device})
    quiet_libraries()
    passive_threads()
    from hornbeam.evaluate.retrieval_report import run
    from hornbeam.opening import open_knowledge_base

    kb, version = open_knowledge_base(index_directory, settings)
    report = run(
        file,
        kb,
        settings.retrieve,
        engines=engines or (),
        without=without or (),
        limit=limit,
        predictions=predictions,
    )
    report |= {"version": version.version_id, "embedder": kb.embedder.name}
    if as_json:
        print_json(report)
    else:
        from rich.console import Console

        from hornbeam.evaluate.retrieval_report import render

        render(report, Console())


@app.command("extraction")
def evaluate_extraction(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH…]", help="Documents whose chunks are extracted.", show_default=False),
    ] = None,
    adversarial: Annotated[
        int, typer.Option(min=0, metavar="N", help="Hostile chunks, made up, beside those of PATH.")
    ] = 0,
    strings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A JSON list of naughty strings to use in them.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Chunks of PATH, at most.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the hostile chunks.")] = 7,
    schema: Annotated[str, typer.Option(help="A schema file or the name of a seed schema.")] = "general",
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count what is not clean in answers and results: unreadable, out of schema, dangling, ungrounded.

    Chunks are extracted as `hornbeam index` does it, guided with --set extract.known_facts=FILE. Exit code 1
    if anything is not clean.
    """
    if not paths and not adversarial:
        raise typer.BadParameter("give a PATH, or --adversarial N", param_hint="[PATH…]")
    settings = settings_of(config, changes, {"model.path": model, "device": device})
    quiet_libraries()
    from itertools import islice

    from hornbeam.evaluate.adversarial import adversarial_texts
    from hornbeam.evaluate.cleanliness import FAULTS, corpus_texts, measure_cleanliness, naughty_strings
    from hornbeam.llm.opening import open_model
    from hornbeam.opening import open_embedder
    from hornbeam.schema import load_schema

    loaded = load_schema(schema)
    language_model = open_model(settings)
    try:
        texts = list(islice(corpus_texts(paths, settings, language_model), limit)) if paths else []
        texts += adversarial_texts(adversarial, seed, naughty_strings(strings) if strings else ())
        embedder = open_embedder(settings)
        report = measure_cleanliness(texts, language_model, loaded, settings.extract, embedder, quiet=False)
    finally:
        language_model.close()
    if as_json:
        print_json(report)
    else:
        say("\n".join(f"{name:16} {value}" for name, value in report.items()))
    raise typer.Exit(1 if any(report[fault] for fault in FAULTS) else 0)


@app.command("text2kg")
def evaluate_text2kg(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Sets of Text2KGBench's form: ontologies/, train/, ground_truth/.",
            show_default=False,
        ),
    ],
    ontologies: Annotated[
        str | None,
        typer.Option(metavar="N,N", help="Numbers of the ontologies; all by default.", show_default=False),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            metavar="test|held-out",
            help="held-out: training sentences of ontologies without a ground truth, about subjects that "
            "are not among the known ones.",
        ),
    ] = "test",
    method: Annotated[
        str,
        typer.Option(
            metavar="guided|staged|staged-known",
            help="guided: one call, guided by the training sentences; staged: entities, then relations, "
            "without them; staged-known: with them as worked examples (extract.examples, "
            "extract.example_choice).",
        ),
    ] = "guided",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Sentences of each ontology.", show_default=False)
    ] = None,
    model: ModelOption = None,
    adapter: AdapterOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    predictions: PredictionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Triples found in sentences under an ontology: precision, recall, F1, conformance, hallucination."""
    splits: dict[str, Literal["test", "held-out"]] = {"test": "test", "held-out": "held-out"}
    methods: dict[str, Literal["guided", "staged", "staged-known"]] = {
        "guided": "guided",
        "staged": "staged",
        "staged-known": "staged-known",
    }
    for name, value, allowed in (("--split", split, splits), ("--method", method, methods)):
        if value not in allowed:
            raise typer.BadParameter(f"'{value}' is not one of {', '.join(allowed)}", param_hint=name)
    numbers = _numbers(ontologies)
    settings = settings_of(config, changes, {"model.path": model, "model.adapter": adapter, "device": device})
    quiet_libraries()
    from hornbeam.evaluate.text2kg_report import run
    from hornbeam.llm.opening import open_model
    from hornbeam.opening import open_embedder

    language_model = open_model(settings)
    try:
        report = run(
            folder,
            language_model,
            open_embedder(settings),
            settings.extract,
            ontologies=numbers,
            split=splits[split],
            method=methods[method],
            limit=limit,
            predictions=predictions,
        )
    finally:
        language_model.close()
    if as_json:
        print_json(report)
    else:
        from rich.console import Console

        from hornbeam.evaluate.text2kg_report import render

        render(report, Console())


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is not numbers between commas", param_hint="--ontologies"
        ) from None
