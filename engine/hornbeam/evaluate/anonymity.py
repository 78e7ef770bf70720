"""`hornbeam evaluate anonymity`: make the anonymised corpus and its questions; score answers to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.errors import UsageError
from hornbeam.evaluate.anonymised import TAG, Anonymiser, choose
from hornbeam.evaluate.anonymity_tasks import make_tasks
from hornbeam.evaluate.answer_metrics import abstention, auroc, exact_match, normalised
from hornbeam.evaluate.asking import Ask, Reply, Variant, ask_all
from hornbeam.evaluate.gold_passages import Gold
from hornbeam.evaluate.question_files import read_questions
from hornbeam.progress import Progress

if TYPE_CHECKING:
    from hornbeam.answer.inquiry import Style
    from hornbeam.llm.shared import SharedModel
    from hornbeam.retrieve.knowledge_base import KnowledgeBase
    from hornbeam.settings import AnswerSettings

DOCUMENTS, QUESTIONS, TAGS = "documents.jsonl", "questions.jsonl", "tags.json"


def make(kb: KnowledgeBase, out: Path, *, entities: int, questions: int, seed: int) -> dict[str, Any]:
    """Write `out`/documents.jsonl, questions.jsonl and tags.json; returns what is in them.

    Raises:
        UsageError: `out` cannot be written; the index names nothing that could be anonymised.
    """
    texts, titles = _documents(kb)
    tagged = choose(kb, entities, seed, texts)
    if not tagged:
        raise UsageError(
            f"{kb.directory}: no entity with a name of its own is mentioned in two chunks: there is nothing "
            "to anonymise"
        )
    anonymiser = Anonymiser(tagged)
    hidden = [anonymiser.text(text) for text in texts]
    documents = [
        {"title": anonymiser.text(title), "text": text} for title, text in zip(titles, hidden, strict=True)
    ]
    tasks = make_tasks(kb, tagged, questions, seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
        _write_lines(out / DOCUMENTS, documents)
        _write_lines(out / QUESTIONS, [task.to_json(number) for number, task in enumerate(tasks, start=1)])
        tags = {one.tag: {"name": one.name, "aliases": list(one.forms[1:])} for one in tagged}
        (out / TAGS).write_text(json.dumps(tags, ensure_ascii=False, indent=1), "utf-8")
    except OSError as error:
        raise UsageError(f"--out {out} cannot be written: {error.strerror}") from error
    return {
        "documents": len(documents),
        "entities": len(tagged),
        "names_replaced": sum(len(TAG.findall(text)) for text in hidden),
        "tag_questions": sum(task.task == "tag" for task in tasks),
        "reversion_questions": sum(task.task == "reversion" for task in tasks),
        "files": {name: str(out / name) for name in (DOCUMENTS, QUESTIONS, TAGS)},
    }


def score(
    folder: Path,
    kb: KnowledgeBase,
    model: SharedModel,
    variant: Variant,
    answer: AnswerSettings,
    style: Style,
    *,
    limit: int | None = None,
    concurrency: int = 1,
    predictions: Path | None = None,
) -> dict[str, Any]:
    """Ask the questions of `folder` of an index of its documents.

    Args:
        limit: of each task.

    Raises:
        UsageError: the folder is none that `make` wrote.
    """
    tasks: dict[str, list[Ask]] = {"tag": [], "reversion": []}
    for question in read_questions(folder / QUESTIONS):
        task = question.question_id.partition("-")[0]
        if task not in tasks:
            raise UsageError(f"{folder / QUESTIONS}: '{question.question_id}' is of no task that is known")
        tasks[task].append(Ask(question, ()))
    asks = [ask for of_task in tasks.values() for ask in of_task[:limit]]
    with Progress() as progress, progress.stage("anonymity", len(asks), "questions") as stage:
        replies = ask_all(
            kb,
            model,
            asks,
            Gold("chunk", ((),) * len(asks), ()),
            variant,
            answer,
            style,
            concurrency=concurrency,
            on_reply=lambda reply: stage.advance(),
        )
    if predictions is not None:
        _write_lines(predictions, [_prediction(reply) for reply in replies])
    return {
        "engine": variant.name,
        "mode": answer.mode,
        "style": style,
        "tag": _tag_row([reply for reply in replies if reply.ask.answerable]),
        "reversion": _reversion_row([reply for reply in replies if not reply.ask.answerable]),
        "abstention": _abstention(replies, answer) if answer.mode == "reject" and replies else None,
    }


def tags_answered(reply: Reply) -> list[str]:
    """The tags of an answer that the question did not give, in order, each once."""
    given = set(TAG.findall(reply.ask.question.text))
    return [tag for tag in dict.fromkeys(TAG.findall(reply.final.answer)) if tag not in given]


def _tag_row(replies: Sequence[Reply]) -> dict[str, Any]:
    """exact: the right tag and no other; named: the right one among those that were said."""
    said = [([] if reply.final.rejected else tags_answered(reply), reply) for reply in replies]
    return {
        "questions": len(replies),
        "exact": _share([tags == list(reply.ask.question.answers) for tags, reply in said]),
        "named": _share([reply.ask.question.answers[0] in tags for tags, reply in said]),
        "declined": _share([reply.final.rejected for reply in replies]),
    }


def _reversion_row(replies: Sequence[Reply]) -> dict[str, Any]:
    """reverted: a name or alias was said; exact: nothing but it. Both are knowledge from elsewhere."""
    return {
        "questions": len(replies),
        "reverted": _share([_names(reply) for reply in replies]),
        "exact": _share([exact_match(reply.answer, reply.ask.question.answers) > 0 for reply in replies]),
        "declined": _share([reply.final.rejected for reply in replies]),
    }


def _names(reply: Reply) -> bool:
    said = f" {normalised(reply.answer)} "
    names = [normalised(name) for name in reply.ask.question.answers]
    # Names of unspaced scripts have no blanks around them.
    return any(name and (f" {name} " in said or (not name.isascii() and name in said)) for name in names)


def _abstention(replies: Sequence[Reply], answer: AnswerSettings) -> dict[str, Any]:
    answerable = [reply.ask.answerable for reply in replies]
    decided = [reply for reply in replies if reply.final.answerable is not None]
    area = auroc(
        [float(one.final.answerable or 0.0) for one in decided if one.ask.answerable],
        [float(one.final.answerable or 0.0) for one in decided if not one.ask.answerable],
    )
    found: dict[str, Any] = dict(abstention([not reply.final.rejected for reply in replies], answerable))
    return found | {
        "auroc": None if area is None else round(area, 4),
        "threshold": answer.answerable_threshold,
    }


def _share(hits: Sequence[bool]) -> float | None:
    return round(sum(hits) / len(hits), 4) if hits else None


def _documents(kb: KnowledgeBase) -> tuple[list[str], list[str]]:
    import pyarrow.parquet as pq

    table = pq.read_table(kb.directory / "tables" / "documents.parquet", columns=["text", "title"])
    return table.column("text").to_pylist(), table.column("title").to_pylist()


def _prediction(reply: Reply) -> dict[str, Any]:
    return {
        "id": reply.ask.question.question_id,
        "question": reply.ask.question.text,
        "answers": list(reply.ask.question.answers),
        "answer": reply.answer,
        "tags": tags_answered(reply),
        "rejected": reply.final.rejected,
        "answerable": reply.final.answerable,
    }


def _write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
