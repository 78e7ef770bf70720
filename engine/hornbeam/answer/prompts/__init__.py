"""What is put to the model about a question: text files, one per task, each in the languages that it has.

A file holds the instructions, a line of three dashes, and what follows them, with `$placeholders`. A folder
of the user's takes the shipped files' place, file by file (`answer.prompts`): `en/plan.txt`, `zh/plan.txt` …
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from hornbeam.errors import UsageError, reason
from hornbeam.llm.protocol import LanguageModel

DEFAULT_LANGUAGE = "en"
#: task → its placeholders
TASKS: dict[str, frozenset[str]] = {
    "extract": frozenset({"evidence", "question"}),
    "short": frozenset({"evidence", "question"}),
    "sentences": frozenset({"evidence", "question"}),
    "answerable": frozenset({"evidence", "question"}),
    "points": frozenset({"evidence", "question"}),
    "plan": frozenset({"types", "question"}),
    "step": frozenset({"evidence", "found", "question"}),
    "standalone": frozenset({"history", "question"}),
}
_DASHES = "---"


@dataclass(frozen=True, slots=True)
class PromptFile:
    instructions: str
    user: Template


class AnswerPrompts:
    """
    Args:
        directory: of the user's files; None: the shipped ones alone.

    Raises:
        UsageError: a file cannot be read, has an unknown name, or lacks or mistakes a placeholder.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._files = dict(_shipped())
        if directory is not None:
            self._files |= _read_folder(directory)

    def chat(self, model: LanguageModel, task: str, language: str, **values: str) -> str:
        """The prompt of one turn; `values` must be neutralised already."""
        file = self._files.get((language, task)) or self._files[DEFAULT_LANGUAGE, task]
        return model.chat_prompt(file.instructions, file.user.substitute(values))


@cache
def shipped_prompts() -> AnswerPrompts:
    return AnswerPrompts()


def language_of(question: str) -> str:
    """The language that a question is asked in, as far as there are prompts in it: "zh" or "en"."""
    import regex

    return "zh" if regex.search(r"\p{Han}", question) else DEFAULT_LANGUAGE


@cache
def _shipped() -> tuple[tuple[tuple[str, str], PromptFile], ...]:
    found = []
    for folder in sorted(files(__package__).iterdir(), key=lambda entry: entry.name):
        if folder.is_dir() and not folder.name.startswith("_"):
            for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
                task = file.name.removesuffix(".txt")
                found.append(((folder.name, task), _parse(file.read_text("utf-8"), task, file.name)))
    return tuple(found)


def _read_folder(directory: Path) -> dict[tuple[str, str], PromptFile]:
    if not directory.is_dir():
        raise UsageError(f"answer.prompts {directory}: there is no such folder")
    found = {}
    for path in sorted(directory.glob("*/*.txt")):
        if path.stem not in TASKS:
            raise UsageError(f"answer.prompts: {path} is no task; tasks are {', '.join(TASKS)}")
        try:
            found[path.parent.name, path.stem] = _parse(path.read_text("utf-8"), path.stem, str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"prompt {path} cannot be read: {reason(error)}") from error
    return found


def _parse(text: str, task: str, origin: str) -> PromptFile:
    lines = text.splitlines()
    if lines.count(_DASHES) != 1:
        raise UsageError(f"prompt {origin}: instructions and question must be parted by one line '{_DASHES}'")
    place = lines.index(_DASHES)
    user = Template("\n".join(lines[place + 1 :]).strip())
    if not user.is_valid() or set(user.get_identifiers()) != TASKS[task]:
        wanted = ", ".join(f"${name}" for name in sorted(TASKS[task]))
        raise UsageError(f"prompt {origin}: below the line it must hold {wanted}, and no other placeholder")
    return PromptFile("\n".join(lines[:place]).strip(), user)
