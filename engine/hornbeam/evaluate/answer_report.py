"""`hornbeam evaluate qa`: the run, its JSON document, its table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hornbeam.errors import UsageError
from hornbeam.evaluate.answer_checks import COUNTS
from hornbeam.evaluate.answer_metrics import abstention, auroc
from hornbeam.evaluate.answer_records import Records, asked_in_turn
from hornbeam.evaluate.asking import Ask, Reply, Variant, ask_all, asks_of
from hornbeam.evaluate.gold_passages import find_gold
from hornbeam.evaluate.judging import ToJudge, judged
from hornbeam.evaluate.question_files import read_questions
from hornbeam.evaluate.retrieval_metrics import confidence_interval, percentiles
from hornbeam.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from hornbeam.answer.inquiry import Style
    from hornbeam.llm.protocol import LanguageModel
    from hornbeam.llm.shared import SharedModel
    from hornbeam.retrieve.knowledge_base import KnowledgeBase
    from hornbeam.settings import AnswerSettings

_MEASURES = ("em", "f1", "evidence_recall")
_LEAST_WIDTH = 150


def run(
    file: Path,
    kb: KnowledgeBase,
    model: SharedModel,
    variants: Sequence[Variant],
    answer: AnswerSettings,
    style: Style,
    *,
    limit: int | None = None,
    concurrency: int = 1,
    predictions: Path | None = None,
    resume: bool = False,
    made_by: str = "",
) -> tuple[dict[str, Any], dict[str, list[Reply]]]:
    """The report, and the replies of every variant for a judge.

    In reject mode every question whose evidence is known is asked twice: as it is, and with its evidence out
    of sight.

    Args:
        predictions: a line is written there as soon as a question is answered.
        resume: what that file holds already is not asked again.
        made_by: the version and the model, for telling another run's file.

    Raises:
        UsageError: a file that cannot be used; no question in it has an answer to compare with.
        ModelError: the model failed.
    """
    questions = read_questions(file, limit)
    if not any(question.answers for question in questions):
        raise UsageError(f"questions {file}: none has an 'answer' to compare with")
    gold = find_gold(kb, questions)
    asks = asks_of(questions, gold, removed=answer.mode == "reject")
    rows: dict[str, Any] = {}
    replies: dict[str, list[Reply]] = {}
    with ExitStack() as open_things:
        progress = open_things.enter_context(Progress())
        records = open_things.enter_context(Records(predictions, resume=resume))
        for one in variants:
            stage = open_things.enter_context(progress.stage(one.name, len(asks), "questions"))

            def ask(some: list[Ask], on_reply: Callable[[Reply], None], one: Variant = one) -> list[Reply]:
                return ask_all(
                    kb, model, some, gold, one, answer, style, concurrency=concurrency, on_reply=on_reply
                )

            run_id = _run_id(made_by, one, answer, style)
            replies[one.name] = asked_in_turn(records, one.name, run_id, asks, ask, stage.advance)
            rows[one.name] = _row(replies[one.name], answer)
    report = {
        "file": str(file),
        "questions": len(questions),
        "without_evidence": sum(not ask.answerable for ask in asks),
        "passages_not_in_index": len(gold.missing),
        "mode": answer.mode,
        "style": style,
        "concurrency": concurrency,
        "engines": rows,
    }
    return report, replies


def add_judge(report: dict[str, Any], replies: dict[str, list[Reply]], judge: LanguageModel) -> None:
    """Put what the judge says into each row: right, of those that it could decide about."""
    for name, of_variant in replies.items():
        wanted = [reply for reply in of_variant if reply.ask.answerable and reply.ask.question.answers]
        verdicts = judged(
            judge,
            [ToJudge(one.ask.question.text, one.ask.question.answers, one.answer) for one in wanted],
        )
        valid = [verdict for verdict in verdicts if verdict is not None]
        report["engines"][name]["judge"] = {
            "right": round(sum(verdict >= 0.5 for verdict in valid) / len(valid), 4) if valid else None,
            "valid": len(valid),
            "of": len(verdicts),
            "model": judge.identity.name,
        }


def _row(replies: Sequence[Reply], answer: AnswerSettings) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for measure in _MEASURES:
        values = [reply.measures[measure] for reply in replies if measure in reply.measures]
        if values:
            row[measure] = round(float(np.mean(values)), 4)
            bounds = [round(bound, 4) for bound in confidence_interval(values)]
            row.setdefault("interval_95", {})[measure] = bounds
            row.setdefault("of", {})[measure] = len(values)
    if answer.mode == "reject":
        answered, answerable = (
            [not reply.final.rejected for reply in replies],
            [reply.ask.answerable for reply in replies],
        )
        row["abstention"] = abstention(answered, answerable)
        decided = [
            (reply.final.answerable, reply.ask.answerable)
            for reply in replies
            if reply.final.answerable is not None
        ]
        area = auroc([p for p, can in decided if can], [p for p, can in decided if not can])
        row["abstention"]["auroc"] = None if area is None else round(area, 4)
    steps = dict.fromkeys(step for reply in replies for step in reply.final.milliseconds)
    row["milliseconds"] = {
        step: percentiles([reply.final.milliseconds.get(step, 0.0) for reply in replies]) for step in steps
    }
    row["tokens"] = {
        kind: round(float(np.mean([reply.final.tokens.get(kind, 0) for reply in replies])), 1)
        for kind in ("calls", "prompt", "cached", "output")
    }
    row["cut"] = sum(reply.final.cut for reply in replies)
    row["checks"] = {name: sum(reply.counts[name] for reply in replies) for name in COUNTS}
    return row


def _run_id(made_by: str, variant: Variant, answer: AnswerSettings, style: Style) -> str:
    """What an answer depends on beside its question, as a short name."""
    parts = [made_by, variant.engine, variant.retrieve.model_dump_json(), answer.model_dump_json(), style]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def render(report: dict[str, Any], console: Console) -> None:
    """A line per engine."""
    from rich.table import Table

    console.width = max(console.width, _LEAST_WIDTH)
    table = Table(box=None, pad_edge=False)
    rows = report["engines"]
    table.add_column("engine", no_wrap=True)
    shown = [measure for measure in _MEASURES if any(measure in row for row in rows.values())]
    deciding = report["mode"] == "reject"
    judged_rows = any("judge" in row for row in rows.values())
    columns = [
        *shown,
        *(("accuracy", "false answers", "false rejections", "AUROC") if deciding else ()),
        *(("judge",) if judged_rows else ()),
        "p50 ms",
        "p99 ms",
        "calls",
        "prompt",
        "output",
    ]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for engine, row in rows.items():
        cells = []
        for measure in shown:
            low, high = row.get("interval_95", {}).get(measure, (0.0, 0.0))
            cells.append(f"{row[measure]:.3f} \\[{low:.2f}, {high:.2f}]" if measure in row else "")
        if deciding:
            found = row["abstention"]
            for key in ("accuracy", "false_answers", "false_rejections", "auroc"):
                cells.append(f"{found[key]:.3f}" if found.get(key) is not None else "")
        if judged_rows:
            judge = row["judge"]
            right = "" if judge["right"] is None else f"{judge['right']:.3f} "
            cells.append(f"{right}({judge['valid']} valid of {judge['of']})")
        total, tokens = row["milliseconds"]["total"], row["tokens"]
        cells += [f"{total['p50']:.0f}", f"{total['p99']:.0f}"]
        cells += [f"{tokens[kind]:.1f}" for kind in ("calls", "prompt", "output")]
        table.add_row(engine, *cells)
    console.print(table)
    for engine, row in rows.items():
        checks = row["checks"]
        planned = f"{checks['plans_valid']} of {checks['plans']} plans valid, " if checks["plans"] else ""
        console.print(
            f"{engine}: {planned}{checks['citations_resolving']} of {checks['citations']} citations resolve, "
            f"{checks['answers_citing']} of {checks['answers']} answers cite"
        )
    console.print(
        f"{report['questions']} questions, mode {report['mode']}, style {report['style']}; "
        f"{report['without_evidence']} asked without evidence; in brackets: 95 % intervals (bootstrap over "
        "questions); tokens are means a question"
    )
