"""Hornbeam: a GraphRAG indexing engine with a streaming query loop.

    import hornbeam

    with hornbeam.open("papers-index") as kb:
        for event in kb.ask("Who invented the tide gauge?"):
            print(event)

Importing this package is cheap on purpose (no torch, vLLM, FAISS or Arrow): heavy libraries are
imported by the functions that use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hornbeam.answer.session import Session
    from hornbeam.llm.protocol import LanguageModel
    from hornbeam.settings import Settings

__version__ = "0.1.0"


def open(index: str | Path, settings: Settings | None = None, model: LanguageModel | None = None) -> Session:
    """Open an index for questions: `with` or `async with`; see `hornbeam.answer.session`.

    Args:
        index: the index directory.
        settings: None: those of `hornbeam.toml` and the environment (`hornbeam.settings.load_settings`).
        model: None: the one that the settings name. It is closed with the session.
    """
    from hornbeam.answer.session import open_session

    return open_session(index, settings, model)
