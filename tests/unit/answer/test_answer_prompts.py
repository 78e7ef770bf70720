"""Prompts of answers: every shipped file has its placeholders, and a user's file takes one's place."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.answer.prompts import TASKS, AnswerPrompts, language_of, shipped_prompts
from hornbeam.errors import UsageError
from support.walker import GrammarWalker

SHORT = {"evidence": "[1] Warsaw.", "question": "Where?"}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("language", ["en", "zh", "fr"])
def test_every_task_has_a_prompt_in_every_language(task: str, language: str) -> None:
    values = {name: f"<{name}>" for name in TASKS[task]}
    prompt = shipped_prompts().chat(GrammarWalker(), task, language, **values)
    assert all(value in prompt for value in values.values())
    assert "$" not in prompt


def test_a_file_of_the_user_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "short.txt").write_text("Be brief.\n---\n$question\n$evidence", "utf-8")
    prompts = AnswerPrompts(tmp_path)
    own = prompts.chat(GrammarWalker(), "short", "en", **SHORT)
    assert "Be brief." in own
    assert own.index("Where?") < own.index("[1] Warsaw.")
    shipped = shipped_prompts().chat(GrammarWalker(), "extract", "en", **SHORT)
    assert prompts.chat(GrammarWalker(), "extract", "en", **SHORT) == shipped


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("brief.txt", "x\n---\n$question $evidence", "no task"),
        ("short.txt", "$question $evidence", "parted by one line"),
        ("short.txt", "x\n---\n$question", r"\$evidence"),
        ("short.txt", "x\n---\n$question $evidence $age", "no other placeholder"),
    ],
)
def test_a_file_that_cannot_be_used_is_said(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / name).write_text(text, "utf-8")
    with pytest.raises(UsageError, match=said):
        AnswerPrompts(tmp_path)
    with pytest.raises(UsageError, match="no such folder"):
        AnswerPrompts(tmp_path / "missing")


def test_a_chinese_question_is_asked_in_chinese() -> None:
    assert language_of("澜碧港在哪里？") == "zh"
    assert language_of("Where is Warsaw?") == "en"
