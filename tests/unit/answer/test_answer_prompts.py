"""Prompts of answers: every task has one in a question's language, and a user's file takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hornbeam.answer.inquiry import language_of, question_prompts
from hornbeam.errors import UsageError
from hornbeam.prompts import TASKS

ANSWERING = [task for task, form in TASKS.items() if form.use == "answer"]


@pytest.mark.parametrize("task", ANSWERING)
@pytest.mark.parametrize("language", ["en", "zh", "fr"])
def test_every_task_has_a_prompt_in_every_language(task: str, language: str) -> None:
    values = {name: f"<{name}>" for name in TASKS[task].question}
    prompt = question_prompts(None).text(task, language)
    asked = prompt.ask(**values)
    assert all(value in asked for value in values.values())
    assert prompt.instruct()
    assert "$" not in prompt.instruct() + asked


def test_a_file_of_the_user_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "short.txt").write_text("Be brief.\n---\n$question\n$evidence", "utf-8")
    own, shipped = question_prompts(str(tmp_path)), question_prompts(None)
    assert own.text("short", "en").instruct() == "Be brief."
    assert own.text("short", "en").ask(evidence="[1] Warsaw.", question="Where?") == "Where?\n[1] Warsaw."
    assert own.text("extract", "en") == shipped.text("extract", "en")
    with pytest.raises(UsageError, match="no such folder"):
        question_prompts(str(tmp_path / "missing"))


def test_a_chinese_question_is_asked_in_chinese() -> None:
    assert language_of("澜碧港在哪里？") == "zh"
    assert language_of("Where is Warsaw?") == "en"
