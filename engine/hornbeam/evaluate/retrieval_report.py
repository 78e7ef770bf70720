"""`hornbeam evaluate retrieval`: the run, its JSON document, its table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.errors import UsageError
from hornbeam.evaluate.gold_passages import Gold, find_gold
from hornbeam.evaluate.question_files import Question, read_questions
from hornbeam.evaluate.retrieval import COMPARED, Ranking, evaluate
from hornbeam.progress import Progress
from hornbeam.retrieve.engines import BASELINE, routes_of
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import ROUTES
from hornbeam.settings import RetrieveSettings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Engines of the table unless others are asked for; the first is the one that predictions list first.
DEFAULT_ENGINES = ("mix", "naive", "bm25")
_SHOWN = ("recall@2", "recall@5", "all_gold@5", "recall@10", "mrr", "evidence_recall@5")
_LEAST_WIDTH = 130


def run(
    file: Path,
    kb: KnowledgeBase,
    settings: RetrieveSettings,
    *,
    engines: Sequence[str] = DEFAULT_ENGINES,
    without: Sequence[str] = (),
    limit: int | None = None,
    predictions: Path | None = None,
) -> dict[str, Any]:
    """The report: an object per engine, the dense baseline always among them.

    Args:
        without: routes left out of every engine but the baseline, for ablations.

    Raises:
        UsageError: a file, engine or route that cannot be used; none of the passages is in the index.
    """
    unknown = [route for route in without if route not in ROUTES]
    if unknown:
        raise UsageError(f"no route '{unknown[0]}': choose among {', '.join(ROUTES)}")
    chosen = {engine: routes_of(engine) - frozenset(without) for engine in (engines or DEFAULT_ENGINES)}
    chosen[BASELINE] = routes_of(BASELINE)
    questions = read_questions(file, limit)
    gold = find_gold(kb, questions)
    with ExitStack() as open_things:
        progress = open_things.enter_context(Progress())
        out = None
        if predictions is not None:
            try:
                out = open_things.enter_context(predictions.open("w", encoding="utf-8"))
            except OSError as error:
                reason = error.strerror
                raise UsageError(f"--predictions: {predictions} cannot be written: {reason}") from error
        stage = open_things.enter_context(progress.stage("evaluate", len(questions), "questions"))

        def on_question(question: Question, found: dict[str, Ranking]) -> None:
            stage.advance()
            if out is not None:
                out.write(json.dumps(_prediction(kb, gold, questions, question, found)) + "\n")

        rows, kinds = evaluate(kb, questions, gold, chosen, settings, on_question)
    passages = sum(len(question.supporting) for question in questions)
    return {
        "file": str(file),
        "questions": len(questions),
        "with_passages": sum(bool(question.supporting) for question in questions),
        "with_claims": sum(bool(question.claims) for question in questions),
        "passages": passages,
        "passages_not_in_index": len(gold.missing),
        "unit": gold.unit,
        "without": list(without),
        "engines": rows,
        "kinds": kinds,
    }


def _prediction(
    kb: KnowledgeBase,
    gold: Gold,
    questions: list[Question],
    question: Question,
    found: dict[str, Ranking],
) -> dict[str, Any]:
    """One line: what the first engine retrieved, in order, and beside it what the others did."""
    passages = gold.units_of[questions.index(question)]
    of_engine = {
        engine: {
            "retrieved": [
                {**_unit(kb, gold, unit), "score": score}
                for unit, score in zip(ranking.units, ranking.scores, strict=True)
            ],
            "measures": ranking.measures,
            "milliseconds": ranking.milliseconds,
        }
        for engine, ranking in found.items()
    }
    first, *others = of_engine
    return {
        "id": question.question_id,
        "question": question.text,
        "gold": [[_unit(kb, gold, unit) for unit in sorted(units)] for units in passages],
        "engine": first,
        **of_engine[first],
        "others": {engine: of_engine[engine] for engine in others},
    }


def _unit(kb: KnowledgeBase, gold: Gold, unit: int) -> dict[str, str]:
    if gold.unit == "document":
        return {column: kb.documents.text(column, unit) for column in ("document_id", "title")}
    where = kb.document_of(unit)
    return {
        "chunk_id": kb.chunks.text("chunk_id", unit),
        "document_id": where["document_id"],
        "title": where["title"],
    }


def _kinds_table(kinds: dict[str, Any]) -> Table:
    """recall@5, of claims evidence recall@5, by kind of question and engine."""
    from rich.table import Table

    engines = list(next(iter(kinds.values())))
    table = Table(box=None, pad_edge=False)
    for column in ("recall@5 by kind", "questions", *engines):
        table.add_column(column, justify="left" if column.startswith("recall") else "right", no_wrap=True)
    for kind, rows in kinds.items():
        shares = [row.get("recall@5", row.get("evidence_recall@5")) for row in rows.values()]
        cells = ["" if share is None else f"{share:.3f}" for share in shares]
        table.add_row(kind or "(none)", str(rows[engines[0]]["questions"]), *cells)
    return table


def render(report: dict[str, Any], console: Console) -> None:
    """A line per engine, with 95 % intervals, the difference to the baseline, and milliseconds."""
    from rich.table import Table

    console.width = max(console.width, _LEAST_WIDTH)
    table = Table(box=None, pad_edge=False)
    table.add_column("engine", no_wrap=True)
    rows = report["engines"]
    shown = [measure for measure in _SHOWN if any(measure in row for row in rows.values())]
    for measure in (*shown, "p50 ms", "p99 ms"):
        table.add_column(measure, justify="right", no_wrap=True)
    for engine, row in rows.items():
        cells = []
        for measure in shown:
            cell = f"{row[measure]:.3f}" if measure in row else ""
            if measure in COMPARED and measure in row:
                cell += " [{:.2f}, {:.2f}]".format(*row["interval_95"][measure])
            cells.append(cell.replace("[", r"\["))
        total = row["milliseconds"]["total"]
        table.add_row(engine, *cells, f"{total['p50']:.1f}", f"{total['p99']:.1f}")
    console.print(table)
    if report["kinds"]:
        console.print(_kinds_table(report["kinds"]))
    missing = report["passages_not_in_index"]
    console.print(
        f"{report['questions']} questions, {report['passages']} supporting passages"
        + (f", {missing} of them not in the index" if missing else "")
        + f"; ranked: {report['unit']}s; in brackets: 95 % intervals (bootstrap over questions)"
    )
