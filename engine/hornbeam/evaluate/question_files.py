"""Questions with their known supporting passages: JSON Lines, or one JSON list.

    {"id": "q1", "question": "…",
     "supporting": [{"pid": 6, "title": "…"}], "passages": [{"pid": 6, "title": "…", "text": "…"}],
     "evidence": ["a claim that the answer rests on", …]}

A supporting passage is named by the `pid` of one of the row's `passages`, by its own `title` and `text`, by a
`title` alone, or by a `document_id` or `chunk_id` of the index. `evidence` holds claims in words, as
GraphRAG-Bench has them. `answer` with `aliases`, or a list `answers`, is what `evaluate qa` compares with;
`"answerable": false` says that there is none; `question_type` or `type` names its kind. Every other
field is ignored, and a question may lack any.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hornbeam.errors import UsageError, reason


@dataclass(frozen=True, slots=True)
class Supporting:
    """One passage that a question needs; what is not known is empty."""

    title: str = ""
    text: str = ""
    document_id: str = ""
    chunk_id: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    question_id: str
    text: str
    supporting: tuple[Supporting, ...]  # each once
    claims: tuple[str, ...]
    answers: tuple[str, ...] = ()  # any of them is right
    answerable: bool = True
    kind: str = ""  # as the file names it: "comparison", "Fact Retrieval", …


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """The first `limit` questions of a file, all of them by default.

    Raises:
        UsageError: a file that cannot be read or holds no question; a row that is none, with its number.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"questions {path} cannot be read: {reason(error)}") from error
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else _lines(text)
    except ValueError as error:
        raise UsageError(f"questions {path}: not JSON: {reason(error)}") from error
    questions = [_question(path, number, row) for number, row in enumerate(rows[:limit], start=1)]
    if not questions:
        raise UsageError(f"questions {path}: it holds no question")
    return questions


def _lines(text: str) -> list[Any]:
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {reason(error)}") from error
    return rows


def _question(path: Path, number: int, row: Any) -> Question:
    where = f"questions {path}, item {number}"
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not row["question"].strip():
        raise UsageError(f"{where}: no 'question'")
    passages = {
        passage.get("pid"): passage
        for passage in _list(row, "passages", where)
        if isinstance(passage, dict) and "pid" in passage
    }
    supporting = []
    for named in _list(row, "supporting", where):
        if not isinstance(named, dict):
            raise UsageError(f"{where}: a supporting passage is {named!r}, not an object")
        if "pid" in named:
            if named["pid"] not in passages:
                raise UsageError(f"{where}: supporting passage {named['pid']!r} is not in its passages")
            named = passages[named["pid"]]
        one = Supporting(
            **{field: str(named.get(field) or "") for field in ("title", "text", "document_id", "chunk_id")}
        )
        if one == Supporting():
            raise UsageError(f"{where}: a supporting passage has no pid, title, text or identifier")
        supporting.append(one)
    claims = [claim for claim in _list(row, "evidence", where) if isinstance(claim, str) and claim.strip()]
    return Question(
        str(row.get("id", number)),
        row["question"],
        tuple(dict.fromkeys(supporting)),
        tuple(claims),
        _answers(row, where),
        row.get("answerable") is not False,
        str(row.get("question_type") or row.get("type") or ""),
    )


def _answers(row: dict[str, Any], where: str) -> tuple[str, ...]:
    named = [row["answer"]] if row.get("answer") is not None else []
    values = [*named, *_list(row, "aliases", where), *_list(row, "answers", where)]
    if not all(isinstance(value, str | int | float) for value in values):
        raise UsageError(f"{where}: an answer is not a text")
    return tuple(dict.fromkeys(text for value in values if (text := str(value).strip())))


def _list(row: dict[str, Any], key: str, where: str) -> list[Any]:
    value = row.get(key) or []
    if not isinstance(value, list):
        raise UsageError(f"{where}: '{key}' is not a list")
    return value
