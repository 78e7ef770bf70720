"""The prompts of builds and answers: the shipped files, and those of the user that take their place."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from hornbeam.errors import UsageError, reason
from hornbeam.prompts.template import TASKS, PromptText, Use, parse_prompt
from hornbeam.prompts.worked import ExampleFile, TypeExample, parse_examples, parse_type_examples
from hornbeam.settings import PromptSettings

DEFAULT_LANGUAGE = "en"
_EXAMPLES, _TYPE_EXAMPLES = "examples.json", "type_examples.json"
_NAMES = (*(f"{task}.txt" for task in TASKS), _EXAMPLES, _TYPE_EXAMPLES)


class Prompts:
    """Prompts by task and language.

    Args:
        texts: by language and task; English has every task.
        examples: by language; English has some.
        type_examples: of types that a schema lacks, by language; English has some.
        language: that of every prompt, whatever it is about; None: the language of what it is about.
    """

    def __init__(
        self,
        texts: Mapping[tuple[str, str], PromptText],
        examples: Mapping[str, ExampleFile],
        type_examples: Mapping[str, Sequence[TypeExample]],
        language: str | None = None,
    ) -> None:
        self._texts = texts
        self._examples = examples
        self._type_examples = type_examples
        self._language = language

    @property
    def languages(self) -> tuple[str, ...]:
        """Those that may be chosen, the default first."""
        if self._language is not None:
            return (self._language,)
        known = {language for language, _ in self._texts}
        return (DEFAULT_LANGUAGE, *sorted(known - {DEFAULT_LANGUAGE}))

    @property
    def version(self) -> str:
        """Of every text of a build together, and of the choice among them; what asks for new types has a
        version of its own, and questions change nothing that is built."""
        digest = hashlib.sha256((self._language or "").encode())
        for (language, task), text in sorted(self._texts.items()):
            if TASKS[task].use == "build":
                digest.update(f"{language}/{task}\n{text.content}\n".encode())
        for language, examples in sorted(self._examples.items()):
            digest.update(f"{language}\n{examples.model_dump_json()}\n".encode())
        return digest.hexdigest()[:16]

    def listed(self) -> list[dict[str, str]]:
        """What there is, for people."""
        return [
            {
                "language": language,
                "task": task,
                "use": TASKS[task].use,
                "version": text.version,
                "origin": text.origin,
            }
            for (language, task), text in sorted(self._texts.items(), key=_by_use)
        ]

    def language_of(self, language: str) -> str:
        """The language to ask in about what is written in `language`."""
        return language if language in self.languages else self.languages[0]

    def text(self, task: str, language: str) -> PromptText:
        """The task's prompt for what is written in `language`; a task that it has none for is asked in
        English."""
        wanted = self.language_of(language)
        return self._texts.get((wanted, task)) or self._texts[DEFAULT_LANGUAGE, task]

    def examples(self, language: str) -> ExampleFile:
        return self._examples.get(self.language_of(language)) or self._examples[DEFAULT_LANGUAGE]

    def type_examples(self, language: str) -> Sequence[TypeExample]:
        wanted = self.language_of(language)
        return self._type_examples.get(wanted, self._type_examples[DEFAULT_LANGUAGE])


#: In the order in which they are shown.
_USES: tuple[Use, ...] = ("build", "evolve", "answer")


def _by_use(entry: tuple[tuple[str, str], PromptText]) -> tuple[int, str, str]:
    (language, task), _ = entry
    return _USES.index(TASKS[task].use), language, task


@cache
def shipped_prompts() -> Prompts:
    return load_prompts(PromptSettings())


def load_prompts(settings: PromptSettings, *, embedded: bool = False) -> Prompts:
    """The shipped prompts with the user's in place of those of the same names.

    Args:
        embedded: they are for the embedded model.

    Raises:
        UsageError: the folder or a file of it cannot be read, a file has a name that means nothing, a
            placeholder is missing or unknown, or there is no prompt in the language that is asked for.
    """
    texts: dict[tuple[str, str], PromptText] = {}
    examples: dict[str, ExampleFile] = {}
    type_examples: dict[str, Sequence[TypeExample]] = {}
    own = _files_of(Path(settings.directory)) if settings.directory is not None else ()
    for language, name, written, origin in (*_shipped(), *own):
        if name == _EXAMPLES:
            examples[language] = parse_examples(written, origin)
        elif name == _TYPE_EXAMPLES:
            type_examples[language] = parse_type_examples(written, origin)
        else:
            task = name.removesuffix(".txt")
            texts[language, task] = parse_prompt(task, written, origin)
    if settings.language == "auto" and embedded:
        return Prompts(texts, examples, type_examples, DEFAULT_LANGUAGE)
    if settings.language in ("auto", "document"):
        return Prompts(texts, examples, type_examples)
    known = sorted({language for language, _ in texts})
    if settings.language not in known:
        raise UsageError(
            f"prompts.language '{settings.language}': no prompt is written in it; there are "
            + ", ".join(known)
        )
    return Prompts(texts, examples, type_examples, settings.language)


def write_prompts(folder: Path) -> list[Path]:
    """Write the shipped files into a folder, one below it a language, to be edited.

    Raises:
        UsageError: a file of such a name is there already (nothing is written then), or cannot be written.
    """
    targets = {folder / language / name: written for language, name, written, _ in _shipped()}
    for target in targets:
        if target.exists():
            raise UsageError(f"{target} is there already; name another folder")
    try:
        for target, written in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(written, "utf-8")
    except OSError as error:
        raise UsageError(f"prompts cannot be written to {folder}: {error.strerror}") from error
    return list(targets)


@cache
def _shipped() -> tuple[tuple[str, str, str, str], ...]:
    """(language, file name, content, origin) of every shipped file."""
    found = []
    for folder in sorted(files(__package__).iterdir(), key=lambda entry: entry.name):
        if not folder.is_dir():
            continue
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if file.name in _NAMES:
                written = file.read_text("utf-8")
                found.append((folder.name, file.name, written, "shipped"))
    return tuple(found)


def _files_of(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    if not folder.is_dir():
        raise UsageError(f"prompts {folder}: there is no such folder")
    for file in sorted(folder.glob("*/*")):
        if file.name.startswith("."):
            continue
        if file.name not in _NAMES:
            near = difflib.get_close_matches(file.name, _NAMES, n=1, cutoff=0.0)[0]
            raise UsageError(f"prompts: {file} is no prompt's name; did you mean '{near}'?")
        try:
            written = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"prompt {file} cannot be read: {reason(error)}") from error
        yield file.parent.name, file.name, written, str(file)
