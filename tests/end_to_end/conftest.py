"""The real thing, once for the whole session: the embedded model under vLLM, the embedder, an index."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hornbeam.build import Build
from hornbeam.index.embedder import Embedder
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel
from hornbeam.opening import open_embedder
from hornbeam.progress import Progress
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.schema import load_schema
from hornbeam.settings import Settings, load_settings
from hornbeam.store.versions import Version, open_current

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
#: English prose, Markdown, HTML-free formats and the Chinese document: small enough for two cores.
DOCUMENTS = ("ilsabet-corvane.txt", "tolvemere.md", "selkie-turbine.md", "hu-lanting.zh.txt")


@dataclass(frozen=True)
class Indexed:
    corpus: Path
    index: Path
    version: Version
    report: dict[str, Any]
    kb: KnowledgeBase


@pytest.fixture(scope="session")
def settings() -> Settings:
    return load_settings(environment={})


@pytest.fixture(scope="session")
def model(settings: Settings) -> Iterator[LanguageModel]:
    opened = open_model(settings)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def embedder(settings: Settings) -> Embedder:
    return open_embedder(settings)


def build(
    paths: list[Path], index: Path, settings: Settings, model: LanguageModel, embedder: Embedder
) -> Build:
    run = Build(index, settings, load_schema("general"), model, embedder, Progress(quiet=True))
    run.run(paths)
    return run


@pytest.fixture(scope="session")
def indexed(
    settings: Settings, model: LanguageModel, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory
) -> Indexed:
    """Four documents of the demo corpus and a file that cannot be read."""
    folder = tmp_path_factory.mktemp("corpus")
    for name in DOCUMENTS:
        (folder / name).write_bytes((CORPUS / name).read_bytes())
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    index = tmp_path_factory.mktemp("index")
    run = build([folder], index, settings, model, embedder)
    version = open_current(index)
    return Indexed(folder, index, version, run.to_json(), KnowledgeBase.open(version.directory, embedder))


def _command() -> list[str]:
    return [sys.executable, "-c", "from hornbeam.cli import main; main()"]


@pytest.fixture(scope="session")
def hornbeam() -> list[str]:
    """The command line as a subprocess starts it."""
    return _command()
