"""The engines that answer, and which one `auto` takes."""

from __future__ import annotations

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
}


def choose_engine(engine: str, question: str) -> tuple[str, str]:
    """The engine that answers, never `auto`, and why.

    Raises:
        UsageError: no such engine; names the engines.
    """
    if engine not in ENGINES:
        raise UsageError(f"no engine '{engine}': choose one of {', '.join(ENGINES)}")
    if engine != "auto":
        return engine, "as asked for"
    return "mix", "all routes"
