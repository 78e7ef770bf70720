"""The engines that answer, and which one `auto` takes."""

from __future__ import annotations

from hornbeam.answer.shape import Shape, shape_of
from hornbeam.errors import UsageError
from hornbeam.retrieve.engines import BASELINE

#: engine → what it answers from
ENGINES: dict[str, str] = {
    "auto": "chosen by the shape of the question",
    BASELINE: "the nearest chunks alone: the baseline",
    "naive": "chunks alone, dense and lexical",
    "local": "entities, facts, paths and the chunks that the graph leads to",
    "global": "summaries of communities, map and reduce",
    "mix": "all routes",
    "plan": "sub-questions, and searches for what is still missing",
}
#: shape of a question → the engine for it, and the shape in words
_ENGINE_OF: dict[Shape, tuple[str, str]] = {
    "topic": ("global", "it asks about the whole"),
    "comparison": ("plan", "it compares things"),
    "nested": ("plan", "one thing hangs on another in it"),
    "simple": ("mix", "a simple question"),
}


def choose_engine(engine: str, question: str) -> tuple[str, str]:
    """The engine that answers, never `auto`, and why.

    Raises:
        UsageError: no such engine; names the engines.
    """
    if engine not in ENGINES:
        raise UsageError(f"no engine '{engine}': choose one of {', '.join(ENGINES)}")
    return _ENGINE_OF[shape_of(question)] if engine == "auto" else (engine, "as asked for")
