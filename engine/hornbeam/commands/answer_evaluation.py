"""`hornbeam evaluate qa|anonymity`: measure answers against known ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hornbeam.commands.options import (
    ConfigOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    ModelOption,
    PredictionsOption,
    SetOption,
    quiet_libraries,
    settings_of,
)
from hornbeam.errors import UsageError
from hornbeam.printing import print_json, say

if TYPE_CHECKING:
    from hornbeam.answer.inquiry import Style
    from hornbeam.settings import Settings

ConcurrencyOption = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Questions under way at once; times are then those of a crowd."),
]


def evaluate_qa(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Questions with answers and supporting passages (JSON Lines, or a JSON list).",
            show_default=False,
        ),
    ],
    index_directory: IndexOption,
    engines: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="An engine of `hornbeam query`; repeatable. Dense is always there to compare with. "
            "Default: auto.",
            show_default=False,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="community|agent|schema",
            help="Leave a part out of every engine but dense; repeatable. agent: no planning, no reflection.",
            show_default=False,
        ),
    ] = None,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also a row for the first engine without each part.")
    ] = False,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="open|reject",
            help="reject: decline where the evidence does not answer; each question is asked again with its "
            "evidence out of sight.",
        ),
    ] = "open",
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="extract|short|sentences",
            help="Default: short; of the embedded model extract.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="same|DIR|URL",
            help="A model that says yes or no to each answer; same: the one that answers.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="The first N questions.", show_default=False)
    ] = None,
    concurrency: ConcurrencyOption = 1,
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    predictions: PredictionsOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with the run that wrote --predictions: no question is asked again."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """EM, F1, evidence recall, abstention, milliseconds by stage, calls and tokens of answers."""
    flags = {"model.path": model, "device": device, "answer.mode": mode, "answer.style": style}
    settings = settings_of(config, changes, flags)
    if resume and predictions is None:
        raise UsageError("--resume: name the file that it goes on with: --predictions FILE")
    quiet_libraries()
    from hornbeam.answer.session import open_session
    from hornbeam.evaluate.answer_report import add_judge, render, run
    from hornbeam.evaluate.asking import PARTS, variant
    from hornbeam.retrieve.engines import BASELINE

    named = engines or ["auto"]
    left_out = without or []
    variants = [variant(engine, left_out, settings.retrieve) for engine in named]
    if ablation:
        variants += [variant(named[0], [*left_out, part], settings.retrieve) for part in PARTS]
    if BASELINE not in named:
        variants.append(variant(BASELINE, (), settings.retrieve))
    with open_session(index_directory, settings) as session:
        report, replies = run(
            file,
            session.kb,
            session.model,
            variants,
            settings.answer,
            _short_style(settings),
            limit=limit,
            concurrency=concurrency,
            predictions=predictions,
            resume=resume,
            made_by=f"{session.version.version_id} {session.model.model.identity.fingerprint}",
        )
        report |= {"version": session.version.version_id, "model": session.model.model.identity.name}
        if judge == "same":
            add_judge(report, replies, session.model.caller(None))
    if judge not in (None, "same"):
        from hornbeam.llm.opening import open_model

        other = open_model(settings_of(config, changes, flags | {"model.path": judge}))
        try:
            add_judge(report, replies, other)
        finally:
            other.close()
    if as_json:
        print_json(report)
    else:
        from rich.console import Console

        render(report, Console())


anonymity = typer.Typer(
    help="A corpus whose names are tags: what is answered comes from the text, not from a model's memory.",
    no_args_is_help=True,
)


@anonymity.command("make")
def make_anonymity(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder for corpus and questions.", show_default=False)
    ],
    index_directory: IndexOption,
    entities: Annotated[
        int, typer.Option(min=1, metavar="N", help="Entities that become tags, the most mentioned first.")
    ] = 200,
    questions: Annotated[int, typer.Option(min=1, metavar="N", help="Of each task, at most.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of tags and questions.")] = 42,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the documents of an index with tags in place of names, and questions about them."""
    settings = settings_of(config, changes, {})
    quiet_libraries()
    from hornbeam.evaluate.anonymity import make
    from hornbeam.opening import open_knowledge_base

    kb, version = open_knowledge_base(index_directory, settings)
    report = make(kb, out, entities=entities, questions=questions, seed=seed)
    if as_json:
        print_json(report | {"version": version.version_id})
        return
    say("\n".join(f"{name:20} {value}" for name, value in report.items() if name != "files"))
    say(
        f"now: hornbeam index {report['files']['documents.jsonl']} --index DIR, and `score {out} --index DIR`"
    )


@anonymity.command("score")
def score_anonymity(
    folder: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder that `make` wrote.", show_default=False)
    ],
    index_directory: IndexOption,
    engine: Annotated[str, typer.Option(metavar="NAME", help="An engine of `hornbeam query`.")] = "auto",
    mode: Annotated[
        str,
        typer.Option(metavar="open|reject", help="reject: decline where the evidence does not answer."),
    ] = "open",
    style: Annotated[
        str | None,
        typer.Option(
            metavar="extract|short|sentences",
            help="Default: short; of the embedded model extract.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Questions of each task.", show_default=False)
    ] = None,
    concurrency: ConcurrencyOption = 1,
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    predictions: PredictionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tags that were found, names that were given away, questions that were declined."""
    flags = {"model.path": model, "device": device, "answer.mode": mode, "answer.style": style}
    settings = settings_of(config, changes, flags)
    quiet_libraries()
    from hornbeam.answer.session import open_session
    from hornbeam.evaluate.anonymity import score
    from hornbeam.evaluate.asking import variant

    with open_session(index_directory, settings) as session:
        report = score(
            folder,
            session.kb,
            session.model,
            variant(engine, (), settings.retrieve),
            settings.answer,
            _short_style(settings),
            limit=limit,
            concurrency=concurrency,
            predictions=predictions,
        )
        report |= {"version": session.version.version_id, "model": session.model.model.identity.name}
    if as_json:
        print_json(report)
        return
    for name in ("tag", "reversion", "abstention"):
        if report[name] is not None:
            say(f"{name:12}" + "  ".join(f"{key} {value}" for key, value in report[name].items()))


def _short_style(settings: Settings) -> Style:
    """What `auto` stands for where answers are compared with short ones."""
    from hornbeam.answer.session import answer_style

    style = answer_style(settings)
    return "short" if settings.answer.style == "auto" and style == "sentences" else style
