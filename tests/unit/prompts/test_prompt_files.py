"""Prompts in files: what is shipped is whole, the user's take its place, a fault is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.errors import UsageError
from hornbeam.prompts import TASKS, load_prompts, shipped_prompts, write_prompts
from hornbeam.settings import PromptSettings, Settings

GUIDED = "List facts.\n\n$examples\n---\nText: $text\n"


def folder_with(folder: Path, name: str, written: str) -> PromptSettings:
    file = folder / name
    file.parent.mkdir(parents=True)
    file.write_text(written, "utf-8")
    return PromptSettings(directory=str(folder))


def test_every_task_is_shipped_in_every_language() -> None:
    prompts = shipped_prompts()
    assert prompts.languages == ("en", "zh")
    listed = {(entry["language"], entry["task"]): entry["use"] for entry in prompts.listed()}
    assert listed == {
        (language, task): form.use
        for language in prompts.languages
        for task, form in TASKS.items()
        if (language, task) in listed or language == "en" or form.use != "answer"
    }
    for task, form in TASKS.items():
        if form.use != "answer":  # some questions to answer one are in English alone
            assert prompts.text(task, "zh") != prompts.text(task, "en")


def test_a_text_is_asked_about_in_its_language_and_in_english_where_there_is_none() -> None:
    prompts = shipped_prompts()
    assert "文本" in prompts.text("extraction", "zh").question
    assert prompts.text("extraction", "ru") == prompts.text("extraction", "en")
    assert prompts.text("extraction", "und") == prompts.text("extraction", "en")


def test_the_embedded_model_is_asked_in_english_unless_the_documents_language_is_asked_for() -> None:
    assert load_prompts(PromptSettings(), embedded=True).languages == ("en",)
    assert load_prompts(PromptSettings()).languages == ("en", "zh")
    assert load_prompts(PromptSettings(language="document"), embedded=True).languages == ("en", "zh")


def test_one_language_for_all_can_be_asked_for() -> None:
    chinese = load_prompts(PromptSettings(language="zh"))
    assert chinese.text("extraction", "en") == shipped_prompts().text("extraction", "zh")
    assert chinese.version != shipped_prompts().version
    with pytest.raises(UsageError, match="no prompt is written in it; there are en, zh"):
        load_prompts(PromptSettings(language="fr"))


def test_what_is_written_out_is_what_is_shipped(tmp_path: Path) -> None:
    written = write_prompts(tmp_path / "mine")
    files = {"examples.json", "type_examples.json", *(f"{task}.txt" for task in TASKS)}
    assert {path.name for path in written} == files
    own = load_prompts(PromptSettings(directory=str(tmp_path / "mine")))
    assert own.version == shipped_prompts().version
    with pytest.raises(UsageError, match="is there already"):
        write_prompts(tmp_path / "mine")


def test_an_edited_prompt_takes_the_place_of_its_namesake_alone(tmp_path: Path) -> None:
    own = load_prompts(folder_with(tmp_path, "en/guided.txt", GUIDED))
    assert own.text("guided", "en").instruct(examples="E") == "List facts.\n\nE"
    assert own.text("guided", "zh") == shipped_prompts().text("guided", "zh")
    assert own.version != shipped_prompts().version


def test_a_language_of_the_users_needs_no_more_than_one_file(tmp_path: Path) -> None:
    own = load_prompts(folder_with(tmp_path, "ru/guided.txt", GUIDED))
    assert own.languages == ("en", "ru", "zh")
    assert own.text("guided", "ru").instructions.startswith("List facts.")
    assert own.text("naming", "ru") == own.text("naming", "en")
    assert own.examples("ru") == own.examples("en")


@pytest.mark.parametrize(
    ("name", "written", "told"),
    [
        ("en/guided.txt", GUIDED.replace("$text", ""), r"question lacks the placeholder \$text"),
        ("en/guided.txt", GUIDED.replace("$examples", ""), r"instructions lack the placeholder \$examples"),
        ("en/guided.txt", GUIDED + "$schema", r"unknown placeholder \$schema; known: \$text"),
        ("en/guided.txt", GUIDED + "5 $ a day", r"begins no placeholder; write '\$\$'"),
        ("en/guided.txt", GUIDED.replace("---", ""), "parted by one line '---'"),
        ("en/giuded.txt", GUIDED, "did you mean 'guided.txt'"),
        ("en/guided.txt", "\udcff", "cannot be read"),
        ("en/examples.json", "{", "Invalid JSON"),
        ("en/type_examples.json", '[{"text": "a", "things": [], "kinds": []}]', "0.kinds"),
        ("en/short.txt", "Be brief.\n---\n$question", r"question lacks the placeholder \$evidence"),
        ("en/short.txt", "In $n words.\n---\n$question $evidence", r"unknown placeholder \$n"),
        ("en/examples.json", '{"names": [], "fact": "$head", "bare": "$name"}', "names"),
    ],
)
def test_a_fault_in_a_file_is_one_line_that_names_it(
    name: str, written: str, told: str, tmp_path: Path
) -> None:
    settings = PromptSettings(directory=str(tmp_path))
    (tmp_path / "en").mkdir()
    (tmp_path / name).write_bytes(written.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=told) as fault:
        load_prompts(settings)
    assert name in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        load_prompts(PromptSettings(directory=str(tmp_path / "none")))


def test_prompts_that_build_nothing_do_not_change_the_version_of_builds(tmp_path: Path) -> None:
    own = load_prompts(folder_with(tmp_path, "en/short.txt", "Be brief.\n---\n$question $evidence"))
    assert own.text("short", "en").instruct() == "Be brief."
    assert own.version == shipped_prompts().version


def test_questions_take_the_folder_of_builds_unless_they_have_their_own() -> None:
    assert Settings().answer.prompts is None
    assert Settings(prompts=PromptSettings(directory="a")).answer.prompts == "a"
    own = Settings.model_validate({"prompts": {"directory": "a"}, "answer": {"prompts": "b"}})
    assert own.answer.prompts == "b"


def test_the_command_line_lists_shows_and_writes(tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["prompts", "list", "--set", "prompts.language=document"])
    assert listed.exit_code == 0
    assert f"{shipped_prompts().version}" in listed.output
    assert {"zh/entity_types", "en/fact_types", "en/plan", "zh/extract"} <= set(listed.output.split())
    shown = runner.invoke(app, ["prompts", "show", "verification", "--language", "zh"])
    assert "$statement" in shown.output
    shown = runner.invoke(app, ["prompts", "show", "entity_types", "--language", "zh"])
    assert "已知类型" in shown.output
    written = runner.invoke(app, ["prompts", "write", str(tmp_path / "mine")])
    assert written.exit_code == 0
    assert (tmp_path / "mine/zh/extraction.txt").is_file()
